"""No file of ours is opened through a symbolic link, be it the file or the directory that it lies in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_lib.system.files import nofollow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"content")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "real" / "link").symlink_to("file")
    return tmp_path


def test_a_file_of_its_own_is_read(place: Path) -> None:
    assert nofollow.read(place / "real/file") == b"content"
    assert nofollow.read(place / "real/file", 3) == b"con"


@pytest.mark.parametrize("name", ["real/link", "linked/file", "linked/link"])
def test_nothing_is_read_or_made_through_a_link(place: Path, name: str) -> None:
    with pytest.raises(OSError, match="symbolic links"):
        nofollow.read(place / name)
    with pytest.raises(OSError, match="symbolic links"):
        nofollow.descriptor(place / name, os.O_WRONLY | os.O_TRUNC)
    assert (place / "real/file").read_bytes() == b"content"


def test_nothing_is_made_in_a_directory_that_a_link_names(place: Path) -> None:
    with pytest.raises(OSError, match="symbolic links"):
        nofollow.descriptor(place / "linked/new", os.O_WRONLY | os.O_CREAT)
    assert not (place / "real/new").exists()


def test_a_new_file_is_for_us_alone(place: Path) -> None:
    old = os.umask(0)
    try:
        os.close(nofollow.descriptor(place / "real/new", os.O_WRONLY | os.O_CREAT))
    finally:
        os.umask(old)
    assert (place / "real/new").stat().st_mode & 0o777 == 0o600
