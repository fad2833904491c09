"""What confines a command by nono loads little, as each command waits for it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.run_to_end import run_to_end

PROGRAM = (
    "import sys; sys.path += {path!r}; from harness_lib.system.processes import confine; "
    "print(confine._nono_py(sys.path).CapabilitySet.__name__, *sys.modules)"
)


def test_confining_loads_nono_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-c", PROGRAM.format(path=sys.path)]
    done = run_to_end(command, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    found, *modules = done.stdout.split()
    assert found == "CapabilitySet"
    assert {"importlib", "importlib.util", "contextlib", "nono_py", "pydantic"}.isdisjoint(modules)


def test_without_nono_the_package_is_named(tmp_path: Path) -> None:
    own = [str(Path(__file__).parents[3])]
    done = run_to_end([sys.executable, "-I", "-S", "-c", PROGRAM.format(path=own)], cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ImportError: nono_py"
