"""Remove lock files of a killed git where only we and our agents work, once nobody can hold them.

Crash model: a lock file is made by a git process that lived before it. So whoever has seen every git process
end that was there at the first look, and still finds the very same file, knows that nobody holds it. No
clock is asked, which somebody may set. What does not come to that proof in a few seconds is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from harness_lib.system.files import listing
from harness_lib.system.git import living
from harness_lib.system.git.repository import Git
from harness_lib.system.locks import family_lock

# Beside git's own files: two that remove locks at once could take a new one for the one they have seen.
GUARD = "harness-dead-locks.lock"
PATIENCE_SECONDS = 3.0
POLL_SECONDS = 0.1
# Programs that are no git process (an editor's own library) hold a lock for milliseconds.
LOOKS = 3

_Seen = dict[Path, tuple[int, int]]


def remove(git: Git) -> list[Path]:
    """Remove the dead locks of this linked work tree and of the refs that all share; return what was removed.

    The caller knows that no person works in this work tree.
    """
    removed = []
    if git.git_dir != git.common_dir:
        removed += _remove(git, listing.below(git.git_dir, "*.lock"), living.own_places(git))
    if any(True for _ in _shared(git)):
        removed += _remove(git, _shared(git), living.places(git))
    return removed


def _shared(git: Git) -> Iterable[Path]:
    """Yield the locks that stand in what all work trees have in common."""
    common = git.common_dir
    yield from (place for name in ("packed-refs", "config") if (place := common / f"{name}.lock").exists())
    yield from listing.below(common / "refs", "*.lock")


def _remove(git: Git, locks: Iterable[Path], places: tuple[str, ...]) -> list[Path]:
    standing = _identities(path for path in locks if not path.name.startswith("harness-"))
    if not standing:
        return []
    with family_lock.alone(git.common_dir / GUARD):
        left = _without_owner(standing, places)
        for path in left:
            path.unlink(missing_ok=True)
        return list(left)


def _without_owner(standing: _Seen, places: tuple[str, ...]) -> _Seen:
    """Return those of `standing` that still stand when no git process of the first look lives any more."""
    suspects = living.living(places)
    end, looks = time.monotonic() + PATIENCE_SECONDS, 1
    while standing and (suspects or looks < LOOKS):
        if time.monotonic() >= end:
            return {}
        time.sleep(POLL_SECONDS)
        looks += 1
        suspects &= living.living(places)
        standing = {path: seen for path, seen in _identities(standing).items() if seen == standing[path]}
    return standing


def _identities(paths: Iterable[Path]) -> _Seen:
    identities = {}
    for path in paths:
        try:
            known = path.stat()
        except FileNotFoundError:
            continue
        identities[path] = (known.st_ino, known.st_mtime_ns)
    return identities
