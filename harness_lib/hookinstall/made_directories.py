"""The directories that `harness hooks install` has made for a host's file, so that they can go with it.

Whether a person had an empty directory there before cannot be seen later, so it is noted in the data
directory: `hook-directories/<hash of the file's path>` holds a line per directory, the innermost first.
Without the note they stay.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness_lib import sha256
from harness_lib.system.files import atomic
from harness_lib.system.place import data_home

NOTES = "hook-directories"


def missing(file: Path) -> list[Path]:
    """Return the directories that have to be made for `file`, the innermost first."""
    above = Path(os.path.realpath(file)).parents
    return [directory for directory in above if not directory.exists()]


def note(env: Mapping[str, str], file: Path, made: Sequence[Path]) -> None:
    """Note that we have `made` these directories for `file`; those of an earlier time stay noted."""
    path = _note(env, file)
    if not made or path is None:
        return
    data_home.make(data_home.directory(env))
    lines = [*(f"{_identity(each)} {each}" for each in made), *_lines(path)]
    atomic.make_directory(path.parent)
    atomic.write(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def remove(env: Mapping[str, str], file: Path) -> None:
    """Remove the directories that we made for `file`, which is gone, as far as nothing else is in them."""
    path = _note(env, file)
    if path is None:
        return
    for line in _lines(path):
        identity, _, name = line.partition(" ")
        # One that is gone, one in which something lies, one that belongs to another by now.
        with suppress(OSError):
            if _identity(Path(name)) == identity:
                Path(name).rmdir()
    atomic.remove(path)
    with suppress(OSError):
        path.parent.rmdir()


def _note(env: Mapping[str, str], file: Path) -> Path | None:
    """Return where the note about `file` is; None where we have no place of our own."""
    data = Path(data_home.directory(env))
    if not data.is_absolute():
        return None
    return Path(data, NOTES, sha256.digest(os.fsencode(os.path.realpath(file)))[:20])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return []


def _identity(directory: Path) -> str:
    """Return what tells `directory` itself from another one that was made later in its place."""
    status = directory.lstat()
    return f"{status.st_dev}:{status.st_ino}"
