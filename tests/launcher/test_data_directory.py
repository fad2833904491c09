"""`bin/harness` keeps what it runs with where nobody else can write, and refuses any other place."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from harness_lib.system.place import data_home
from tests.conftest import for_release
from tests.launcher.launching import run


class TestDataDirectory:
    def test_a_symlink_is_refused(self, launcher: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "data").symlink_to(tmp_path / "elsewhere")
        self.refused(launcher, tmp_path / "data", "is a symbolic link")

    def test_one_that_others_can_write_is_refused(self, launcher: Path, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "data").chmod(0o777)
        self.refused(launcher, tmp_path / "data", "can be written by other users")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
    def test_one_of_another_user_is_refused(self, launcher: Path, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        os.chown(tmp_path / "data", 65534, 65534)
        self.refused(launcher, tmp_path / "data", "belongs to another user")

    def test_a_relative_one_is_refused(self, launcher: Path, tmp_path: Path) -> None:
        """It would lie in the project."""
        self.refused(launcher, Path("data"), "is not an absolute path")
        assert not (tmp_path / "data").exists()

    def refused(self, launcher: Path, data: Path, why: str) -> None:
        done = run(launcher, env={"HARNESS_HOME": str(data)})
        assert (done.code, done.out) == (7, "")
        assert why in done.err
        assert len(done.err.splitlines()) == 1

    @pytest.mark.parametrize(
        ("env", "expected"),
        [
            ({"XDG_DATA_HOME": "{home}/data"}, "data/harness"),
            *for_release(
                ({"XDG_DATA_HOME": "relative"}, ".local/share/harness"),
                ({"XDG_DATA_HOME": ""}, ".local/share/harness"),
            ),
        ],
    )
    def test_without_harness_home_it_is_in_the_users_data(
        self,
        launcher: Path,
        offline: dict[str, str],
        tmp_path: Path,
        env: dict[str, str],
        expected: str,
    ) -> None:
        home = tmp_path / "person"
        home.mkdir()
        own = {name: value.format(home=home) for name, value in env.items()}
        run(launcher, env={**offline, "PIP_NO_INDEX": "1", "HARNESS_HOME": "", "HOME": str(home), **own})
        assert (home / expected / "lock").exists()


def test_an_empty_home_is_not_the_root_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")

    home = pwd.getpwuid(os.getuid()).pw_dir
    assert data_home.directory({}) == f"{home}/.local/share/harness"
