"""`bin/harness` from a bare checkout passes everything through, and leaves nothing in the checkout."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.system.place import data_home
from tests.conftest import for_release
from tests.launcher.launching import REAL_ENVIRON, run
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put

STOPPED_AT_ITS_SECOND_FILE = """\
import builtins, os, runpy, signal, sys
builtins.open = lambda *_: os.kill(os.getpid(), signal.SIGINT)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def listing(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*"))


class TestPassingThrough:
    def test_all_is_passed_through(self, launcher: Path, shared: dict[str, str], tmp_path: Path) -> None:
        words = ["a b", "", "two\nlines", "--flag=$HOME `id` *", "ünï", "'\"\\"]
        done = run(launcher, *words, env=shared, cwd=tmp_path, stdin="sent\n")
        assert done.code == 9
        assert done.json["argv"] == words
        assert done.json["stdin"] == "sent\n"
        assert done.json["cwd"] == str(tmp_path.resolve())
        assert done.err.endswith("talk\n")

    def test_it_stays_one_process(self, launcher: Path, shared: dict[str, str]) -> None:
        """A session belongs to the process that started us; a shell in between would be in the way."""
        nothing, env = subprocess.DEVNULL, {**REAL_ENVIRON, **shared}
        process = subprocess.Popen([launcher], env=env, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing)
        out, _ = process.communicate(timeout=280)
        # A version manager may stand between sh and Python, but as an exec as well.
        assert json.loads(out)["pid"] == process.pid

    def test_ctrl_c_while_it_loads_ends_it_without_a_word(self, launcher: Path, tmp_path: Path) -> None:
        stopped = put(tmp_path / "stopped.py", STOPPED_AT_ITS_SECOND_FILE)
        shown = f'#!/bin/sh\nexec "{sys.executable}" "{stopped}" "$3"\n'
        put(tmp_path / "python3", shown, executable=True)
        done = run(launcher, "status", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
        assert (done.code, done.text) == (130, "")

    def test_its_pins_are_read_once(self, shared: dict[str, str]) -> None:
        code = (
            "import os, sys; opened = []\n"
            "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
            "from harness_lib.system.install import launcher, private_env; launcher.enter(os.environ, '')\n"
            "print(opened.count(str(private_env.REQUIREMENTS)))"
        )
        done = run_to_end([sys.executable, "-c", code], env={**os.environ, **shared}, check=True)
        assert done.stdout == "1\n"

    def test_the_path_has_no_project(self, launcher: Path, shared: dict[str, str], tmp_path: Path) -> None:
        hostile = tmp_path / "hostile"
        for module in ("json", "rich", "harness_lib", "sitecustomize", "zlib"):
            put(hostile / module / "__init__.py", "raise SystemExit('hijacked')\n")
        env = {**shared, "PYTHONPATH": f"{hostile}:", "PYTHONSTARTUP": str(hostile / "json/__init__.py")}
        done = run(launcher, env=env, cwd=hostile)
        assert done.code == 9, done.err
        assert not [entry for entry in done.json["path"] if entry in ("", ".") or "hostile" in entry]
        private = [module for module in done.json["modules"] if shared["HARNESS_HOME"] in module]
        assert len(private) == 2

    def test_a_link_of_links_finds_it(self, launcher: Path, shared: dict[str, str], tmp_path: Path) -> None:
        (tmp_path / "one").mkdir()
        (tmp_path / "one/link").symlink_to(os.path.relpath(launcher, tmp_path / "one"))
        (tmp_path / "harness").symlink_to("one/link")
        done = run("harness", "x", env={**shared, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
        assert done.json["argv"] == ["x"]

    def test_nothing_is_written_into_it(self, checkout: Path, launcher: Path, shared: dict[str, str]) -> None:
        before = listing(checkout)
        assert run(launcher, env=shared).code == 9
        assert run(launcher, env=shared).code == 9
        assert listing(checkout) == before
        for name in ("main", "launcher", "private_env"):
            assert list(Path(shared["HARNESS_HOME"], "pycache").rglob(f"{name}.*.pyc")), name


# -- it keeps what it runs with where nobody else can write, and refuses any other place


GIVEN_AWAY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


@pytest.mark.parametrize(
    ("how", "data", "why"),
    [
        ("mkdir elsewhere; ln -s elsewhere data", "{}/data", "is a symbolic link"),
        ("mkdir -m 777 data", "{}/data", "can be written by other users"),
        pytest.param("mkdir data; chown 65534 data", "{}/data", "belongs to another user", marks=GIVEN_AWAY),
        # It would lie in the project.
        ("true", "data", "is not an absolute path"),
    ],
)
def test_it_is_refused(launcher: Path, tmp_path: Path, how: str, data: str, why: str) -> None:
    subprocess.run(["sh", "-c", how], check=True)
    made = sorted(tmp_path.iterdir())

    done = run(launcher, env={"HARNESS_HOME": data.format(tmp_path)})

    assert (done.code, done.out) == (7, "")
    assert why in done.err
    assert len(done.err.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == made


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("{}/data", "data/harness"),
        *for_release(("relative", ".local/share/harness"), ("", ".local/share/harness")),
    ],
)
def test_without_harness_home_it_is_in_the_users_data(
    launcher: Path, offline: dict[str, str], tmp_path: Path, named: str, expected: str
) -> None:
    home = tmp_path / "person"
    home.mkdir()
    own = {"HOME": str(home), "XDG_DATA_HOME": named.format(home)}
    run(launcher, env={**offline, "PIP_NO_INDEX": "1", "HARNESS_HOME": "", **own})
    assert (home / expected / "lock").exists()


def test_an_empty_home_is_not_the_root_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")

    home = pwd.getpwuid(os.getuid()).pw_dir
    assert data_home.directory({}) == f"{home}/.local/share/harness"
