"""Move what no commit can hold (a repository inside the work tree) to where nobody takes it away.

That is `<data home>/set-aside/<project>-<hash of its root>/<run>-<worker>-<number>`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from harness_lib import sha256
from harness_lib.core.context import Context
from harness_lib.system.files import atomic
from harness_lib.system.git import submodules as nested
from harness_lib.system.git.repository import Git
from harness_lib.system.place import data_home

# In git's directory of a work tree from which something was taken: nobody works there before it is made anew.
INCOMPLETE = "harness-incomplete"


def project(ctx: Context) -> str:
    """Return what the directories of this list are called in the data home."""
    root = os.fsencode(ctx.root.path)
    return f"{ctx.root.path.name or 'root'}-{sha256.digest(root)[:10]}"


def whole(ctx: Context, path: Path, git: Git | None) -> Path | None:
    """Move the directory `path` aside, which is the work tree of `git` if it still is one.

    Return where it is now; None if nothing is in it.
    """
    if path.is_symlink() or not path.is_dir() or not any(path.iterdir()):
        return None
    if git is not None:
        nested.take_all_in(git)
    kept = _free_place(ctx, path)
    path.rename(kept)
    ctx.say(f"what an agent has made of {path} is kept in {kept}")
    return kept


def parts(ctx: Context, repositories: Sequence[str], submodules: Sequence[str]) -> Path | None:
    """Move what stands at these paths out of the work tree; return the directory where it is now.

    None if nothing stands at any of them.
    """
    git = ctx.git
    present = [path for path in (*repositories, *submodules) if os.path.lexists(git.top / path / ".git")]
    if not present:
        return None
    (git.git_dir / INCOMPLETE).touch()
    kept = _free_place(ctx, git.top)
    for path in present:
        nested.move(git, path, kept / path)
        if path in submodules:
            # Empty it is one that nobody has fetched; without the directory it would be one that was removed.
            (git.top / path).mkdir()
    ctx.say(f"{', '.join(present)} of {git.top}: kept in {kept}")
    return kept


def _free_place(ctx: Context, path: Path) -> Path:
    above = Path(data_home.directory(ctx.env)) / "set-aside" / project(ctx)
    atomic.make_directory(above)
    places = (above / f"{path.parent.name}-{path.name}-{number}" for number in count(1))
    return next(place for place in places if not place.exists())
