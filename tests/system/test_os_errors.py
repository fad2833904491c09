"""What the operating system refuses is said; each effect on files is known, and no renaming replaces one."""

from __future__ import annotations

import ast
import errno
import os
import re
from pathlib import Path

import pytest

from harness_lib import errors
from harness_lib.system import mkdir_lock
from tests.conftest import CHECKOUT

EVERY = sorted(errno.errorcode)


def error(number: int, path: object = None) -> OSError:
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize("number", EVERY, ids=errno.errorcode.get)
def test_space_is_wanted_only_where_there_is_none(number: int) -> None:
    assert ("space" in errors.cure(error(number))) == (number in (errno.ENOSPC, errno.EDQUOT))


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ELOOP])
def test_what_is_wrong_in_one_place_is_not_the_machine_s(number: int) -> None:
    assert not errors.is_of_the_machine(error(number))
    assert errors.is_of_the_machine(error(errno.ENOSPC))


def test_the_file_is_named_where_there_is_one() -> None:
    assert errors.describe(error(errno.ENOENT)) == "The system said: No such file or directory."
    for path in ("/a/file", b"/a/file"):
        assert errors.describe(error(errno.ENOENT, path)).endswith("directory (/a/file).")
    assert errors.describe(OSError("odd")) == "The system said: odd."


def test_what_is_gone_is_not_called_full() -> None:
    assert "removes files" in errors.cure(error(errno.ENOENT))
    assert "permission to" in errors.cure(error(errno.EACCES))
    assert "stands where a directory has to be" in errors.cure(error(errno.ENOTDIR))


# -- only `system` and hs start, end and replace processes, by `os` too, where import-linter cannot see it


LIBRARY = CHECKOUT / "harness_lib"
# hs ends with its tools, which are its own.
ROOMS = {"hs", "loop", "system"}
EFFECTS = {"abort", "fork", "forkpty", "kill", "killpg", "popen", "posix_spawn", "posix_spawnp", "system"}
# `harness` as a package manager installs it becomes the launcher.
ALLOWED = {"__main__.py: execv"}


def is_effect(name: str) -> bool:
    return name in EFFECTS or name.startswith(("exec", "spawn"))


def effects(path: Path) -> list[str]:
    """Return the functions of `os` that `path` uses on processes."""
    used: list[str] = []
    text = path.read_text()
    if not re.search(r"\bos\.\w|from os import", text):
        return used
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            used.append(node.attr)
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            used += [each.name for each in node.names]
    return [name for name in used if is_effect(name)]


def test_no_other_room_forks_or_kills() -> None:
    places = {path.relative_to(LIBRARY): effects(path) for path in LIBRARY.rglob("*.py")}
    assert any(names for place, names in places.items() if place.parts[0] == "system")
    others = {place: names for place, names in places.items() if place.parts[0] not in ROOMS}
    assert {f"{place}: {name}" for place, names in others.items() for name in names} == ALLOWED


# -- a rename that never replaces anything


@pytest.fixture(params=["by one call", "where the kernel has none"])
def signed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a file in it."""
    if request.param != "by one call":
        monkeypatch.setattr(mkdir_lock, "_renamed", lambda *_names: errno.ENOSYS)
    (tmp_path / "signed").mkdir()
    (tmp_path / "signed/pid").write_text("1", "ascii")
    return tmp_path / "signed"


def test_a_directory_comes_with_what_is_in_it(signed: Path, tmp_path: Path) -> None:
    mkdir_lock.rename(signed, tmp_path / "lock")

    assert (tmp_path / "lock/pid").read_text("ascii") == "1"
    assert not signed.exists()


def test_not_even_an_empty_directory_is_replaced(signed: Path, tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()

    with pytest.raises(FileExistsError):
        mkdir_lock.rename(signed, tmp_path / "lock")

    assert list((tmp_path / "lock").iterdir()) == []
    assert (signed / "pid").exists()


def test_what_is_not_there_cannot_be_renamed(signed: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mkdir_lock.rename(signed / "missing", tmp_path / "lock")
    assert not (tmp_path / "lock").exists()
