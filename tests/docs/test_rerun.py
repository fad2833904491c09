"""CONTRIBUTING says: a test that fails among the others is tried once more, and named with what failed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

_TOP = Path(__file__).resolve().parents[2]
_UNSTEADY = """
from pathlib import Path

def test_unsteady():
    seen = Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError("met a race")

def test_broken():
    raise AssertionError("always")
"""


def _options() -> list[str]:
    """Return what `bin/test` gives pytest about tests that fail."""
    script = (_TOP / "bin" / "test").read_text(encoding="utf-8")
    step = re.search(r'^step python -m pytest -n auto (.*) "\$@"$', script, re.MULTILINE)
    assert step is not None
    return shlex.split(step[1])


def test_one_that_passes_the_second_time_is_named_and_a_broken_one_fails(tmp_path: Path) -> None:
    file = tmp_path / "test_file.py"
    file.write_text(_UNSTEADY, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *_options(), str(file)]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    _, _, summary = done.stdout.partition("rerun test summary info")
    assert "RERUN test_file.py::test_unsteady" in summary
    assert "met a race" in summary
    assert "1 failed, 1 passed, 2 rerun" in done.stdout
