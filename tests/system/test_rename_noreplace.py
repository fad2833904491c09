"""A rename that never replaces anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.system import mkdir_lock


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    """Return a directory with a file in it."""
    (tmp_path / "signed").mkdir()
    (tmp_path / "signed" / "pid").write_text("1", "ascii")
    return tmp_path / "signed"


def test_a_directory_comes_with_what_is_in_it(signed: Path, tmp_path: Path) -> None:
    mkdir_lock.rename(signed, tmp_path / "lock")

    assert (tmp_path / "lock" / "pid").read_text("ascii") == "1"
    assert not signed.exists()


def test_not_even_an_empty_directory_is_replaced(signed: Path, tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()

    with pytest.raises(FileExistsError):
        mkdir_lock.rename(signed, tmp_path / "lock")

    assert list((tmp_path / "lock").iterdir()) == []
    assert (signed / "pid").exists()


def test_what_is_not_there_cannot_be_renamed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mkdir_lock.rename(tmp_path / "missing", tmp_path / "lock")
