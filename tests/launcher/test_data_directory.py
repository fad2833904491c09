"""`bin/harness` keeps what it runs with where nobody else can write, and refuses any other place."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from harness_lib.system.place import data_home
from tests.conftest import for_release
from tests.launcher.launching import run

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
