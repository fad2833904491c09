"""Which Python the launchers and hooks start: one that is new enough, behind the shim of pyenv its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.agents import claude
from harness_lib.hookinstall import entries
from tests.conftest import for_release
from tests.launcher.launching import CHECKOUT, run
from tests.system.git.gitrepo import put


def old_pythons() -> Iterator[str]:
    """Yield Pythons before 3.10 on this machine, as version managers and the PATH have them."""
    names = ["python2.7", *(f"python3.{minor}" for minor in range(6, 10))]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for name in names:
        for candidate in [*sorted(versions.glob(f"*/bin/{name}")), shutil.which(name)]:
            if candidate and run(candidate, "-c", "", env={}).code == 0:
                yield str(candidate)
                break


OLD = [*old_pythons()]


@pytest.mark.skipif(not OLD, reason="none on this machine")
@pytest.mark.parametrize("python", [*OLD[:1], *for_release(*OLD[1:])])
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
        put(broken / "python3.14", "#!/bin/sh\nexit 127\n", executable=True)
        (good / "python3.11").symlink_to(sys.executable)
        env = {**shared, "PATH": f"{broken}:{good}:/usr/bin:/bin"}
        done = run(python, launcher, "a b", "--x", env=env)
        assert done.code == 9, done.err
        assert done.json["argv"] == ["a b", "--x"]


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
    assert done.json["argv"] == ["x"], done.err


@pytest.mark.skipif(shutil.which("python3", path="/usr/bin:/bin") is None, reason="none without a PATH")
def test_without_a_path_python_knows_where_it_is(launcher: Path, shared: dict[str, str]) -> None:
    """As `env -i` starts it: workers and the private environment are started by that path."""
    done = run("env", "-u", "PATH", launcher, env=shared)
    assert done.code == 9, done.err
    assert Path(done.json["python"]).is_file()


class Pyenv:
    """A directory as pyenv has it, whose shim notes that it was asked and then starts Python all the same."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked = root / "asked"
        self.env = {"PATH": f"{root}/shims:/usr/bin:/bin", "PYENV_VERSION": ""}
        (root / "shims").mkdir(parents=True)
        shim = root / "shims/python3"
        put(shim, f'#!/bin/sh\n: >"{self.asked}"\nexec "{sys.executable}" "$@"\n', executable=True)
        (root / "version").write_text("3.11.7\n")
        self.install("3.11.7")

    def install(self, version: str) -> Path:
        """Let `version` be installed: it says so, and is this Python."""
        python = self.root / "versions" / version / "bin/python3"
        python.parent.mkdir(parents=True)
        text = f'#!/bin/sh\n: >"{self.root}/started-{version}"\nexec "{sys.executable}" "$@"\n'
        put(python, text, executable=True)
        return python

    def started(self) -> list[str]:
        """Return the versions that were started since this was asked last."""
        notes = sorted(self.root.glob("started-*"))
        names = [note.name.partition("-")[2] for note in notes]
        for note in [*notes, *self.root.glob("asked")]:
            note.unlink()
        return names


@pytest.fixture
def pyenv(tmp_path: Path) -> Pyenv:
    return Pyenv(tmp_path / "a pyenv")


@pytest.mark.parametrize("program", ["harness", *for_release("hs")])
def test_a_verb_starts_the_version_that_the_shim_would(
    pyenv: Pyenv, tmp_path: Path, shared: dict[str, str], program: str
) -> None:
    """The version of the environment comes before that of the project, and that before the user's."""
    project = tmp_path / "project/deep"
    project.mkdir(parents=True)
    for version in ("3.12.1", "3.13.0"):
        pyenv.install(version)

    def start(version: str = "") -> list[str]:
        env = {**pyenv.env, **shared, "PYENV_VERSION": version}
        run(CHECKOUT / "bin" / program, "version" if program == "hs" else "--help", env=env, cwd=project)
        assert not pyenv.asked.exists()
        return pyenv.started()

    assert start() == ["3.11.7"]
    (tmp_path / "project/.python-version").write_text("3.12.1")
    assert start() == ["3.12.1"]
    assert start("3.13.0") == ["3.13.0"]


@pytest.mark.parametrize(
    "version", ["3.10.99", "system", "3.11.7:3.12.1", "../../evil", "3.11.7/../../../evil", "..", ""]
)
def test_what_is_no_installed_version_is_left_to_the_shim(pyenv: Pyenv, tmp_path: Path, version: str) -> None:
    """A clone could bring along a version that leads out of the versions."""
    for place in (tmp_path / "evil", pyenv.root):
        put(place / "bin/python3", "#!/bin/sh\n", executable=True)
    (tmp_path / ".python-version").write_text(f"{version}\n")

    env = {**pyenv.env, "HARNESS_HOME": str(tmp_path / "data")}
    run(CHECKOUT / "bin/hs", "version", env=env, cwd=tmp_path)

    assert pyenv.asked.exists()
    assert pyenv.started() == []


def test_a_hook_starts_the_version_of_the_user_as_long_as_it_is_there(pyenv: Pyenv, tmp_path: Path) -> None:
    command = entries.command(CHECKOUT / "hooks/harness-stop.py", claude.HOOKS)
    (tmp_path / ".python-version").write_text("2.7")

    def ring(**env: str) -> list[str]:
        done = run("sh", "-c", command, env={**pyenv.env, **env}, cwd=tmp_path, stdin="{}")
        assert (done.code, done.out, done.err) == (0, "", "")
        shim = ["shim"] if pyenv.asked.exists() else []
        return [*pyenv.started(), *shim]

    assert ring() == ["3.11.7"]
    pyenv.install("3.12.1")
    assert ring(PYENV_VERSION="3.12.1") == ["3.12.1"]
    (pyenv.root / "version").write_text("3.12.1\n")
    assert ring() == ["3.12.1"]
    (pyenv.root / "versions/3.12.1/bin/python3").unlink()
    assert ring() == ["shim"]
    (pyenv.root / "version").unlink()
    assert ring() == ["shim"]


def test_the_two_launchers_differ_in_their_name_only() -> None:
    harness, hs = (
        (CHECKOUT / "bin" / name).read_text().replace(f'"{name}"', "").replace(f'"{name}:', "")
        for name in ("harness", "hs")
    )
    assert harness == hs
