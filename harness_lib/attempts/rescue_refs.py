"""Keep the work of a failed attempt, and files that were untracked before it, under refs of harness."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from harness_lib import sha256, typed
from harness_lib.attempts import check
from harness_lib.core.context import Context
from harness_lib.rules import recovery
from harness_lib.system.files import atomic
from harness_lib.system.git import checkout, locks, snapshot, trees
from harness_lib.system.git import submodules as nested
from harness_lib.system.git.calls import covers
from harness_lib.system.git.repository import Git
from harness_lib.system.place import data_home
from harness_lib.task import Task
from harness_lib.text import some

RESCUE_REFS = recovery.RESCUES
BEFORE_REFS = "refs/harness/before/"
NAMED = 5
# In git's directory of a work tree from which files were moved: it is made again before anybody works there.
INCOMPLETE = "harness-incomplete"


def rescue_only(ctx: Context, task: Task) -> str:
    """Save the content of the work tree without changing it, and return the ref."""
    git = ctx.git
    with locks.hold(git):
        tree = snapshot.capture(git, ctx.excluded_paths)
        ref = free_ref(git, task)
        head = git.head()
        message = f"harness: rescued work of {task.id}\n"
        git.set_ref(ref, git.commit(tree, [head] if head else [], message))
    return ref


def staged_alone(git: Git, head: str, tree: str, excluded_paths: Sequence[str]) -> str | None:
    """Return the tree of `head` with staged content that is neither in it nor in `tree`, the work tree's.

    None if there is none.
    """
    with trees.private_index(git, copy=True) as env:
        staged = trees.write_tree(git, env)
    standing = trees.entries(git, tree)
    alone = {
        path: new
        for path, (_, new) in trees.changed(git, git.tree_of(head), staged).items()
        if new and new[0] != trees.GITLINK and standing.get(path) != new and not covers(excluded_paths, path)
    }
    return trees.edited(git, head, alone) if alone else None


def free_ref(git: Git, task: Task, suffix: str = "") -> str:
    """Return an unused rescue ref for the attempt in progress, which has not been counted yet."""
    return free(git, f"{RESCUE_REFS}{check.safe_name(task.id)}/{task.attempts + 1}{suffix}")


def free(git: Git, name: str) -> str:
    """Return `name`, or the first unused of `name.2`, `name.3`, …: `retry` counts attempts from one again."""
    taken = {ref for ref, _oid in git.refs(name.rpartition("/")[0] + "/")}
    candidates = (name if n == 1 else f"{name}.{n}" for n in range(1, len(taken) + 2))
    return next(ref for ref in candidates if ref not in taken)


def show_command(ref: str) -> str:
    """Return the command that shows the work kept in a rescue ref."""
    short = ref.removeprefix(RESCUE_REFS)
    # The name of an odd id differs in a ref.
    return typed.harness("rescue", "show", ref if "%" in short else short)


def branch(git: Git, task: Task) -> str | None:
    """Return the ref of HEAD at the claim; claims of the legacy protocol do not record it."""
    return task.gate.branch if task.gate else git.branch()


def branch_tip(git: Git, task: Task) -> str | None:
    """Return the commit that this ref points at now; None if there is none."""
    claimed_on = branch(git, task)
    return git.ref(claimed_on) if claimed_on else None


def before(git: Git, task: Task) -> snapshot.Before | None:
    """Return the files that were untracked at the claim; None if that was not recorded.

    Only a ref of harness counts: the list may have come with a clone, and files are written from this.
    """
    if task.gate is None:
        return None
    copy = task.gate.before
    if copy is None:
        return snapshot.Before()
    return snapshot.read_untracked(git, copy) if git.ref(BEFORE_REFS + copy) == copy else None


def changed_before(git: Git, task: Task) -> list[str]:
    """Keep files that were untracked at the claim and have changed or gone; return sentences about them."""
    copy = before(git, task)
    if copy is None or not copy.protected:
        return []
    entries = trees.entries(git, copy.tree)
    kept = {path: entries[f"content/{path}"] for path in copy.protected}
    standing = checkout.hashed(git, kept, store=False)
    changed = {path: entry for path, entry in kept.items() if standing.get(path) != entry}
    if not changed:
        return []
    base = task.started_at_commit
    tree = trees.edited(git, git.tree_of(base) if base else git.empty_tree(), changed)
    ref = _before_ref(git, task, tree)
    with locks.hold(git):
        message = f"harness: files that were untracked before {task.id}, as they were\n"
        git.set_ref(ref, git.commit(tree, [base] if base else [], message))
    names = f"{len(changed)} untracked file{'s' if len(changed) > 1 else ''} that {task.id} did not make"
    paths = some([repr(path) for path in sorted(changed)], NAMED)
    return [f"{names} changed or went: {paths}. As before they are kept: {show_command(ref)}"]


def _before_ref(git: Git, task: Task, tree: str) -> str:
    """Return the ref for `tree`; what a killed command has kept already is not kept twice."""
    ref = free_ref(git, task, suffix="-before")
    last = ref.rpartition(".")[0] if "." in ref.rpartition("/")[2] else ref
    return last if git.ref(last) and git.tree_of(last) == tree else ref


def still_untracked(git: Git, head: str, task: Task) -> list[str]:
    """Return the files that were untracked at the claim and that the attempt has not committed."""
    kept = before(git, task)
    if kept is None or not kept.paths:
        return []
    known = trees.entries(git, git.tree_of(head))
    return [path for path in (*kept.protected, *kept.unprotected) if path not in known]


def drop_before(git: Git, task: Task) -> None:
    """Delete the copies of files that were untracked before: the attempt has ended, the files exist."""
    if task.gate and task.gate.before:
        with locks.hold(git):
            # The outcome is recorded; a copy that cannot be deleted now is deleted by `garbage_collect`.
            git.run("update-ref", "-d", BEFORE_REFS + task.gate.before, check=False)


def project(ctx: Context) -> str:
    """Return the name of this list's directories in the data home."""
    root = os.fsencode(ctx.root.path)
    return f"{ctx.root.path.name or 'root'}-{sha256.digest(root)[:10]}"


def whole(ctx: Context, path: Path, git: Git | None) -> Path | None:
    """Move the directory `path` aside, which is the work tree of `git` if it still is one.

    Return its new path; None if it is empty.
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
    """Move these paths out of the work tree; return the directory where they are now.

    None if none of them exists.
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
            # An empty directory is a submodule that was not fetched; a missing one would count as removed.
            (git.top / path).mkdir()
    ctx.say(f"{', '.join(present)} of {git.top}: kept in {kept}")
    return kept


def _free_place(ctx: Context, path: Path) -> Path:
    above = Path(data_home.directory(ctx.env)) / "set-aside" / project(ctx)
    atomic.make_directory(above)
    places = (above / f"{path.parent.name}-{path.name}-{number}" for number in count(1))
    return next(place for place in places if not place.exists())
