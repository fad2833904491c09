"""Bring ignored files that checks need into the work trees of a run, and name those that are not brought.

Git does not have them, so only the user's checkout does: environments, packages, settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness_lib.core.context import Context
from harness_lib.system import fs
from harness_lib.system.git import status
from harness_lib.system.git.repository import Git
from harness_lib.system.place import find_root
from harness_lib.text import some_quoted

# Ignored files that checks need, and what a user tells Claude Code for a project: copied in if they exist.
_BROUGHT = """
    .env .env.local node_modules .venv venv vendor vendor/bundle .bundle deps _build
    go.work go.work.sum local.properties CLAUDE.local.md settings.local.json
"""
BROUGHT = tuple(_BROUGHT.split())
# It holds the path of the checkout that CMake builds: in a copy of its directory the user's would be built.
CMAKE = "CMakeCache.txt"
# The convention of Claude Code for its own work trees: one path or glob per line.
LIST = ".worktreeinclude"


def copy(ctx: Context, git: Git) -> None:
    """Copy the ignored files that checks need from the project into a new work tree."""
    top = ctx.main.top
    for name in _to_copy(ctx.main, ctx.root.path):
        if _is_free(git.top / name) and not (top / name / CMAKE).exists():
            (git.top / name).parent.mkdir(parents=True, exist_ok=True)
            fs.copy(top / name, git.top / name)
            _lead_out(git.top / name, top / name, top)


def _lead_out(copied: Path, source: Path, top: Path) -> None:
    """Let links of a copy that led out of the checkout `top`, as to a package beside it, lead there again."""
    below = (Path(folder, name) for folder, _, names in os.walk(copied) for name in names)
    for link in (copied, *below):
        real = "" if os.access(link, os.F_OK) else os.path.realpath(source / link.relative_to(copied))
        if os.access(real, os.F_OK) and top not in Path(real).parents:
            link.unlink()
            link.symlink_to(real)


def _is_free(path: Path) -> bool:
    """Return whether nothing is at `path` or in its way: a link of a commit may lead out of the work tree."""
    nearest = next(each for each in path.parents if os.path.lexists(each))
    return not os.path.lexists(path) and nearest.is_dir() and os.path.realpath(nearest) == str(nearest)


def _to_copy(main: Git, project: Path) -> Iterator[str]:
    """Yield the ignored files and directories to copy, as paths from the top of the repository."""
    places = list(dict.fromkeys((main.top, project)))
    listings = [place / LIST for place in places if (place / LIST).is_file()]
    if not listings:
        here = {place / name for place in places for name in BROUGHT}
        for path in map(main.top.joinpath, status.ignored(main)):
            if path in here or (project in path.parents and any(map(path.match, BROUGHT))):
                yield str(path.relative_to(main.top))
    for listing in listings:
        for line in listing.read_text("utf-8").splitlines():
            pattern = line.strip().strip("/")
            if pattern and not pattern.startswith(("#", "!")) and ".." not in pattern.split("/"):
                names = (str(path.relative_to(main.top)) for path in sorted(listing.parent.glob(pattern)))
                yield from (
                    name
                    for name in names
                    if not main.run("check-ignore", "--quiet", "--", name, check=False).returncode
                )


def lacked(ctx: Context, text: str) -> str:
    """Return what to do about ignored files that `text`, of a failed check, names and only the user has.

    "" if it names none.
    """
    words = {f"/{word}" for word in re.findall(r"[\w.@+/-]+", text)}
    ignored = [path for path in status.ignored(ctx.main) if path not in ctx.excluded_paths]
    found = [path for path in ignored if any(_is_lacked(ctx, path, word) for word in words)]
    if not found:
        return ""
    which = f"Git ignores {some_quoted(found)}, and only the user's checkout has it"
    way = f"make it in {find_root.INIT_SCRIPT}"
    is_cmakes = any((ctx.main.top / path / CMAKE).exists() for path in found)
    return f"{which}: {way}." if is_cmakes else f"{which}: {way}, or name it in {LIST}."


def _is_lacked(ctx: Context, path: str, word: str) -> bool:
    """Return whether `word` is the ignored `path`, or a path below it, that only the user's checkout has."""
    name = f"/{path.rpartition('/')[2]}"
    _, is_named, below = word.partition(name)
    if not is_named or below[:1] not in ("", "/"):
        return False
    named = f"{path}{below}"
    return (ctx.main.top / named).exists() and not os.path.lexists(ctx.git.top / named)
