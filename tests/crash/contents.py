"""What is in the project whose owner may lose nothing: before an attempt, and what it makes of it."""

from __future__ import annotations

# Of the project before any attempt.
TRACKED = {
    "README.md": b"# Project\n",
    "deleted.txt": b"to be deleted\n",
    "staged.txt": b"to be staged\n",
    "touched-by-check.txt": b"as committed\n",
    "src/run.sh": b"#!/bin/sh\n",
    ".gitignore": b"/ignored/\n",
}
BEFORE = {"notes.txt": b"the user's notes\n", "deep/er/untracked.bin": b"\0\xff old\n"}
IGNORED = {"ignored/cache.bin": b"made by a build\n"}

# What the attempt makes of it; None is a deleted file.
COMMITTED = {"own-commit.txt": b"committed by the attempt itself\n"}
MADE: dict[str, bytes | None] = {
    **COMMITTED,
    "README.md": b"# Project\nedited\n",
    "deleted.txt": None,
    "staged.txt": b"staged by the attempt\n",
    "new dir/odd \xc3\xa9 'name'\n.txt": b"untracked, oddly named\n",
    "new dir/sub/second.txt": b"untracked, too\n",
    "src/new.txt": b"beside a tracked file\n",
}
CHANGED_BEFORE = {"notes.txt": b"the user's notes, spoilt by the attempt\n"}
CHANGED_IGNORED = {"ignored/cache.bin": b"made by the build of the attempt\n"}

PASSES = "echo checked >> touched-by-check.txt; test -f own-commit.txt"
FAILS = "echo checked >> touched-by-check.txt; test -f solved"
CLEANUP = "echo cleaned >> ignored/cleaned"
SOLUTION = "solved"
