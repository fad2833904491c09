"""Note whose list this is in the git directory, where no clone can bring a note.

Without the note no check, no init script and no cleanup of the list is run.
Source: docs/design.md, "Trust".
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness_lib import sha256
from harness_lib.state.api import TaskCommands
from harness_lib.system.files import atomic
from harness_lib.system.state_lock import StateLock

_PRIVATE = 0o600

Note = Mapping[str, object]
"""What is noted on one list: of which commands."""


def fingerprint(commands: Sequence[TaskCommands], init_script: bytes | None) -> str:
    """Return the SHA-256 of everything that would be run: checks, where they run, cleanups, init script."""
    rows = sorted(commands)
    return sha256.digest(json.dumps([rows, _digest(init_script)]).encode())


def note(
    git_common_dir: Path, root: Path, commands: Sequence[TaskCommands], init_script: bytes | None
) -> None:
    """Note that the list in the directory `root` is this person's, with the commands it has now.

    Raises HeldError if another process keeps noting, OSError if the git directory cannot be written.
    """
    whole = {"fingerprint": fingerprint(commands, init_script)}
    file = _file(git_common_dir)
    # Several lists may share one git directory, each with a lock of its own: this file needs its own too.
    with StateLock(file.with_suffix(".lock")):
        notes = {**_notes(file), os.fspath(root): {**whole, **_parts(commands, init_script)}}
        text = json.dumps(notes, indent=2, sort_keys=True) + "\n"
        atomic.write(file, text.encode(), mode=_PRIVATE)


def _noted(git_common_dir: Path, root: Path) -> Note | None:
    entry = _notes(_file(git_common_dir)).get(os.fspath(root))
    return entry if isinstance(entry, Mapping) else None


def is_noted(git_common_dir: Path, root: Path) -> bool:
    """Tell whether the list at `root` has been this person's, whatever its commands are by now."""
    return _noted(git_common_dir, root) is not None


def trusted(git_common_dir: Path, root: Path, commands: str, *, is_tracked: Callable[[], bool]) -> bool:
    """Tell whether the list at `root` may run its commands, which have the fingerprint `commands`.

    A list that git does not track can only be changed by who may write here, so the note is enough;
    a tracked one changes with every pull, so the note covers only the commands it was made for.
    `is_tracked`, which takes a process of git, is asked only where the answer depends on it.
    """
    entry = _noted(git_common_dir, root)
    if entry is None:
        return False
    return entry.get("fingerprint") == commands or not is_tracked()


def changed(
    git_common_dir: Path, root: Path, commands: Sequence[TaskCommands], init_script: bytes | None
) -> frozenset[str]:
    """Return which of "commands" and "init_script" are others than the note covers.

    Empty if that is not known: there is no note, or one of before, which says less.
    """
    entry = _noted(git_common_dir, root)
    parts = _parts(commands, init_script)
    if entry is None:
        return frozenset()
    if entry.get("fingerprint") == parts["commands"]:
        # There was no script then.
        return frozenset(["init_script"])
    return frozenset(name for name, value in parts.items() if name in entry and entry[name] != value)


def _parts(commands: Sequence[TaskCommands], init_script: bytes | None) -> dict[str, str | None]:
    return {"commands": fingerprint(commands, None), "init_script": _digest(init_script)}


def _digest(init_script: bytes | None) -> str | None:
    return None if init_script is None else sha256.digest(init_script)


def _file(git_common_dir: Path) -> Path:
    return git_common_dir / "harness" / "trust.json"


def _notes(file: Path) -> dict[str, object]:
    """Return the notes of this user; a file that is not theirs (a shared machine) says nothing."""
    try:
        with file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_uid != os.geteuid():
                return {}
            notes = json.loads(stream.read())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        # Torn or edited by hand: asking again is the safe answer.
        return {}
    return notes if isinstance(notes, dict) else {}
