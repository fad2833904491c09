"""What confines a command by nono in a process of its own loads little, as each command waits for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib import typed
from harness_lib.system.install import launcher
from harness_lib.system.processes import engines, sandbox, sandbox_places
from tests.another_user import needs_root, told
from tests.conftest import CHECKOUT
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put


def isolated(code: str, *words: str, top: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
    """Run `code` where only the standard library and the `harness_lib` of `top` are found."""
    found = f"import os, sys; sys.path.append({str(top)!r}); "
    return run_to_end([sys.executable, "-I", "-S", "-c", found + code, *words])


def test_confining_loads_nono_alone() -> None:
    code = "from harness_lib.system.processes import confine; "
    code += "print(confine.load(sys.argv[1]).CapabilitySet.__name__, *sys.modules)"
    done = isolated(code, launcher.nono(os.environ))

    assert done.returncode == 0, done.stderr
    found, *modules = done.stdout.split()
    assert found == "CapabilitySet"
    assert {"importlib", "importlib.util", "contextlib", "nono_py", "pydantic"}.isdisjoint(modules)


def test_without_nono_the_package_is_named(tmp_path: Path) -> None:
    # Not a checkout, which would fetch it.
    shutil.copytree(
        CHECKOUT / "harness_lib", tmp_path / "harness_lib", ignore=shutil.ignore_patterns("__pycache__")
    )
    done = isolated("from harness_lib.system.install import launcher; launcher.nono({})", top=tmp_path)

    assert done.returncode == 1
    # Of an engine that does not start only the message is shown.
    add = f"uv pip install --python {typed.word(sys.executable)} 'harness-skill[sandbox]'"
    assert done.stderr.splitlines()[-1].endswith(f"EnvSetupError: nono-py is not installed: {add}")


def test_where_rules_belong_to_a_process_one_confines_itself_and_becomes_the_command(on_disk: Path) -> None:
    (on_disk / "own").mkdir()
    grants = engines.Grants(str(on_disk / "own"), (), (), (), (), str(on_disk))
    text = "touch own/made && ! touch outside && ls own"
    ready = engines.command("nono", ["sh", "-c", text], grants, os.environ, closed=False, platform="darwin")
    assert ready.starter is None
    done = subprocess.run(ready.argv, cwd=on_disk, capture_output=True, text=True, check=False)
    if done.returncode and "Landlock" in done.stderr:
        pytest.skip(done.stderr)
    # The file with the grants is gone.
    assert (done.returncode, done.stdout) == (0, "made\n"), done.stderr
    assert not (on_disk / "outside").exists()


@needs_root
def test_a_cache_in_a_home_that_may_not_be_looked_at_is_left_out(tmp_path: Path) -> None:
    """As of a user whose home is that of root, or `/`."""
    closed = tmp_path / ".local/share"
    closed.mkdir(parents=True)
    closed.chmod(0o700)
    put(tmp_path / "bin/pnpm", "", executable=True)
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin"}
    assert told(lambda: sandbox_places.caches_of(env))


def test_harness_and_its_python_can_be_read_wherever_they_are(tmp_path: Path) -> None:
    """Bubblewrap hides what is below /tmp, as a clone to try it."""
    grants = sandbox.Sandbox("bubblewrap", str(tmp_path)).grants(tmp_path, tmp_path, {}, ())
    assert {os.path.realpath(CHECKOUT), sys.prefix} <= set(grants.shown)
