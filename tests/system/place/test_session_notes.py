"""Notes about agent sessions are few and small, and none of them stays for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness_lib.system.files import atomic
from harness_lib.system.place import session_notes

OLD = 1_000_000.0

DIES = """
import os, sys
from harness_lib.system.place import session_notes as notes
sys.addaudithook(lambda event, args: os._exit(73) if event == "os.rename" else None)
notes.write(sys.argv[1], b"half")
"""


def age(path: str | Path, at: float = OLD) -> None:
    os.utime(path, (at, at))


def test_old_notes_go_and_young_ones_stay(tmp_path: Path) -> None:
    old, young = (
        [session_notes.path(str(tmp_path), kind, who) for kind in session_notes.KINDS]
        for who in ("old", "young")
    )
    other = tmp_path / ".harness" / "stops.txt"
    for note in (*old, *young, str(other)):
        session_notes.write(note, b"")
    for note in (*old, str(other)):
        age(note)

    session_notes.sweep(str(tmp_path), OLD + 1)

    assert [Path(note).exists() for note in (*old, *young)] == [False] * len(old) + [True] * len(young)
    assert other.exists()


def test_where_there_are_none_nothing_is_swept(tmp_path: Path) -> None:
    session_notes.sweep(str(tmp_path), OLD)

    assert not list(tmp_path.iterdir())


def test_what_a_dead_writer_leaves_is_swept_as_any_temporary_file(tmp_path: Path) -> None:
    note = Path(session_notes.path(str(tmp_path), "stops", "me"))
    assert subprocess.run([sys.executable, "-c", DIES, str(note)], check=False).returncode == 73
    (left,) = note.parent.iterdir()
    age(left)

    atomic.sweep(note.parent, "*")

    assert not list(note.parent.iterdir())
