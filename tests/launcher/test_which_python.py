"""`bin/harness` finds a Python that is new enough, or says in one line that there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launcher.launching import run


def old_pythons() -> Iterator[str]:
    """Yield Pythons before 3.10 on this machine, as version managers and the PATH have them."""
    names = ["python2.7", *(f"python3.{minor}" for minor in range(6, 10))]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for name in names:
        for candidate in [*sorted(versions.glob(f"*/bin/{name}")), shutil.which(name)]:
            if (
                candidate
                and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0
            ):
                yield str(candidate)
                break


OLD = [*old_pythons()]


@pytest.mark.skipif(not OLD, reason="none on this machine")
@pytest.mark.parametrize(
    "python", [*OLD[:1], *(pytest.param(later, marks=pytest.mark.release) for later in OLD[1:])]
)
class TestOldPython:
    def test_alone_it_says_one_clear_line(self, launcher: Path, python: str, tmp_path: Path) -> None:
        done = run(python, launcher, "status", env={"PATH": str(tmp_path)})
        assert (done.code, done.out) == (7, "")
        assert len(done.err.splitlines()) == 1
        assert "is too old" in done.err
        assert "3.10 or newer" in done.err

    def test_it_hands_over_to_a_newer_one(
        self, launcher: Path, python: str, shared: dict[str, str], tmp_path: Path
    ) -> None:
        """Past a name of a version manager that only complains."""
        broken, good = tmp_path / "broken", tmp_path / "good"
        for folder in (broken, good):
            folder.mkdir()
        (broken / "python3.14").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
        (broken / "python3.14").chmod(0o755)
        (good / "python3.11").symlink_to(sys.executable)
        env = {**shared, "PATH": f"{broken}:{good}:/usr/bin:/bin"}
        done = run(python, launcher, "a b", "--x", env=env)
        assert done.code == 9, done.err
        assert done.seen["argv"] == ["a b", "--x"]


def test_without_any_python_it_says_one_clear_line(launcher: Path, tmp_path: Path) -> None:
    done = run("/bin/sh", launcher, "status", env={"PATH": str(tmp_path)})
    assert (done.code, done.out) == (7, "")
    assert len(done.err.splitlines()) == 1
    assert "python3 was not found" in done.err


def test_a_python_by_version_only_is_enough(launcher: Path, shared: dict[str, str], tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3.10").symlink_to(sys.executable)
    # Made by the full PATH first: installers may need more of it.
    assert run(launcher, env=shared).code == 9
    done = run("/bin/sh", launcher, "x", env={**shared, "PATH": str(tools)})
    assert done.seen["argv"] == ["x"], done.err
