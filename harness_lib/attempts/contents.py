"""Inspect what the commit of an attempt adds: its size, and what the user must see first."""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import rescue_refs
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import RefusedError
from harness_lib.rules import vacuous
from harness_lib.system.files import nofollow
from harness_lib.system.git import checkout, clones, history, locks, status, submodules, trees
from harness_lib.system.git.calls import covers
from harness_lib.system.git.repository import Git
from harness_lib.task import Task
from harness_lib.text import some

# Only the beginning of a file is searched for keys: later content is data.
MOST_BYTES = 1_000_000
TARGET_LENGTH = 200
NAMED = 5
EXECUTABLE = "100755"
Changes = Mapping[str, tuple[trees.Entry | None, trees.Entry | None]]
MEGABYTE = 1_000_000
FILES = ("100644", "100755")


class Contents(NamedTuple):
    """The files that a commit changes: how many, which new ones are named like secrets, and what to review.

    `files` is None where nobody knows what the attempt began with. `look_at` is part of a sentence each:
    what seems to be a key in a file, links that lead out of the repository, repositories inside, and caches
    that commits of the attempt had.
    """

    files: int | None = None
    secrets: tuple[str, ...] = ()
    look_at: tuple[str, ...] = ()


def of(ctx: Context, task: Task, head: str, commit: str) -> Contents:
    """Return what `commit`, made on `head`, adds to the base of `task`.

    Files that the user has accepted are no longer reported.
    """
    git = ctx.git
    base = git.commit_called(task.started_at_commit)
    if base is None:
        return Contents()
    changed = trees.changed(git, git.tree_of(base), git.tree_of(commit))
    put = {path: new for path, (_, new) in changed.items() if new and new[0] in FILES}
    moved = {old for old, new in changed.values() if old and not new}
    added = {path: new for path, new in put.items() if not changed[path][0] and new not in moved}
    secrets = {_secret(git, path, entry) for path, entry in added.items()}
    keys = ((path, _key(git, path, changed[path][0])) for path in put)
    look_at = [f"{path!r} seems to hold {kind}" for path, kind in keys if kind]
    look_at += _links(git, changed)
    look_at += _repositories(git, changed, commit)
    if base != head:
        # A file that one commit adds and a later one removes stays in the history.
        committed = history.added(git, base, head)
        secrets |= {vacuous.secret(path) for path in committed}
        if caches := status.caches_above(git, committed):
            look_at.append(
                f"{some(caches, NAMED)} was left out of its commits; a `!` rule in .gitignore takes it in"
            )
    found = sorted(path for path in secrets if path and not covers(task.accepted, path))
    return Contents(len(changed), tuple(found), tuple(look_at))


def _links(git: Git, changed: Changes) -> Iterator[str]:
    for path, (_, new) in changed.items():
        if new and new[0] == trees.SYMLINK and _leads_out(path, target := os.fsdecode(_stored(git, new[1]))):
            shown = quoting.one_line(repr(target), TARGET_LENGTH)
            yield f"the link {path!r} leads out of the repository, to {shown}"


def _repositories(git: Git, changed: Changes, commit: str) -> Iterator[str]:
    """Yield what to say of each new repository inside: a chat commits of it what `git add` does."""
    tree = git.tree_of(commit)
    for path, (old, new) in changed.items():
        is_new = new is not None and new[0] == trees.GITLINK and not (old and old[0] == trees.GITLINK)
        if is_new and not submodules.is_submodule(git, tree, path):
            yield f"{path!r} is a repository of its own, and the commit has none of its files"


def _leads_out(path: str, target: str) -> bool:
    """Return whether a link at `path` to `target` leads out of the repository."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return f"{place}/".startswith(("/", "../", ".git/"))


def _secret(git: Git, path: str, entry: trees.Entry) -> str | None:
    mode, oid = entry
    if path.rpartition("/")[2] == vacuous.NPM:
        return path if vacuous.has_npm_token(_stored(git, oid)) else None
    return vacuous.secret(path, executable=mode == EXECUTABLE)


def _key(git: Git, path: str, old: trees.Entry | None) -> str | None:
    """Return what kind of key the attempt seems to have put into the file at `path`."""
    try:
        kind = vacuous.key_in(nofollow.read(git.top / path, MOST_BYTES))
    except OSError:
        return None
    return None if kind is None or (old and vacuous.key_in(_stored(git, old[1]))) else kind


def _stored(git: Git, oid: str) -> bytes:
    return git.run("cat-file", "blob", oid).stdout


def refuse(ctx: Context, task: Task, tree: str, most: float) -> None:
    """Raise RefusedError if `tree` adds a file of more than `most` megabytes; 0 is no limit."""
    git = ctx.git
    base = git.commit_called(task.started_at_commit)
    if not most or base is None:
        return
    new = {
        path: entry[1]
        for path, (_, entry) in trees.changed(git, git.tree_of(base), tree).items()
        if entry is not None and entry[0] != trees.GITLINK
    }
    sizes = trees.sizes(git, new.values())
    large = [(path, sizes[oid] / MEGABYTE) for path, oid in new.items() if sizes[oid] > most * MEGABYTE]
    if not large:
        return
    shown = some([f"{path} ({size:.1f} MB)" for path, size in large], NAMED)
    raise RefusedError(
        f"The check passed, but the work has files of more than {most:g} MB: {shown}. Should they be "
        f"committed? Then type: {typed.harness('retry', task.id)}, and harness run with a larger --max-file; "
        "if not, say so in the task's description (harness edit) before you retry it.",
    )


class Converted(NamedTuple):
    """The git `settings` that an attempt has changed, and the `files` that they would commit differently.

    `ref` keeps these files as they would be committed without that change.
    """

    settings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    ref: str = ""


def recorded(settings: clones.Settings) -> str:
    """Return those of git's `settings` that convert files, as a claim records them."""
    return json.dumps(checkout.conversions(settings), sort_keys=True)


def find(ctx: Context, task: Task, tree: str) -> Converted:
    """Compare `tree`, just captured from the work tree, with the files under the settings of the claim."""
    git, then = ctx.git, task.gate.conversion if task.gate else None
    if then is None:
        return Converted()
    wanted = json.loads(then)
    now = checkout.conversions(git.settings())
    settings = tuple(sorted(key for key in {*wanted, *now} if wanted.get(key) != now.get(key)))
    if not settings:
        return Converted()
    # All files: a filter can also hide that one was changed.
    entries = {
        path: entry
        for path, entry in trees.entries(git, tree).items()
        if entry[0] in FILES and checkout.mode(git.top, path) in FILES
    }
    if any("=" in key for key in settings):
        # It cannot be tried as it was at the claim, and nobody adds one for a good reason.
        return Converted(settings, settings)
    unconverted = checkout.hashed_by(git, list(entries), wanted, settings)
    edits = {path: (entries[path][0], oid) for path, oid in unconverted.items() if oid != entries[path][1]}
    return Converted(settings, tuple(sorted(edits)), _kept(ctx, task, tree, edits) if edits else "")


def _kept(ctx: Context, task: Task, tree: str, edits: dict[str, trees.Entry]) -> str:
    """Keep `tree` with `edits`, and return the ref."""
    git = ctx.git
    with locks.hold(git):
        content, what = trees.edited(git, tree, edits), f"files of {task.id} as its attempt left them"
        name = rescue_refs.attempt_ref(task, "-unconverted")
        return rescue_refs.keep(git, name, content, git.head(), what)
