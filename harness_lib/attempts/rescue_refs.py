"""Keep under refs the work of failed attempts, and files that were untracked before; remove leftovers.

A death costs no work, but it leaves temporary files, directories of locks that were just given up, copies of
untracked files for an attempt that never began or has ended, and notes about an agent that is gone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from harness_lib import sha256, typed
from harness_lib.core import rights
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.rules import recovery, stats
from harness_lib.rules.stats import Old
from harness_lib.system import fs, mkdir_lock
from harness_lib.system.git import calls, checkout, history, locks, restore, snapshot, trees
from harness_lib.system.git import submodules as nested
from harness_lib.system.git.repository import Git
from harness_lib.system.place import data_home, own_files
from harness_lib.task import Task
from harness_lib.text import Strings, counted, escape, safe_name, some_quoted

RESCUE_REFS = recovery.RESCUES
BEFORE_REFS = "refs/harness/before/"
# In git's directory of a work tree from which files were moved: it is made again before its next use.
INCOMPLETE = "harness-incomplete"


def rescue_only(ctx: Context, task: Task) -> str:
    """Save the content of the work tree without changing it, and return the ref."""
    git = ctx.git
    with locks.hold(git):
        return keep(git, attempt_ref(task), ctx.capture(), git.head(), f"rescued work of {task.id}")


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
        if new
        and new[0] != trees.GITLINK
        and standing.get(path) != new
        and not calls.covers(excluded_paths, path)
    }
    return trees.edited(git, head, alone) if alone else None


def keep_own_files(ctx: Context, task: Task, oid: str) -> list[str]:
    """Keep what the attempt of a run has written into files of harness itself, and its commit `oid` lacks.

    Return a sentence about it, if there is some.
    """
    git, base = ctx.git, task.started_at_commit
    # Few have such a file, and a look at the whole work tree takes several processes.
    if base is None or not any(os.path.lexists(git.top / path) for path in ctx.excluded_paths):
        return []
    with locks.hold(git):
        tree = snapshot.capture(git)
        # A branch of the user's that the agent has merged may have brought some.
        lacking = trees.changed(git, oid, tree).keys() & trees.changed(git, base, tree).keys()
        own = sorted(path for path in lacking if calls.covers(ctx.excluded_paths, path))
        if not own:
            return []
        ref = keep(git, attempt_ref(task, "-own"), tree, git.head(), f"files of harness that {task.id} wrote")
    return [f"wrote {some_quoted(own)}, which no attempt commits ({show_command(ref)})"]


def before_subject(root: Path) -> str:
    """Return the message of such a commit; it names the list, as a repository may hold several."""
    return f"harness: untracked files before an attempt of {escape(str(root))}"


def keep(git: Git, name: str, tree: str, head: str | None, what: str) -> str:
    """Keep `tree` as a commit on `head`, told by `what`; return its ref: `name`, or the next free one."""
    ref = free(git, name)
    git.set_ref(ref, git.commit(tree, [head] if head else [], f"harness: {what}\n"))
    return ref


def attempt_ref(task: Task, suffix: str = "") -> str:
    """Return the name of the rescue ref for the attempt in progress, which has not been counted yet.

    On many machines the fence is a part of its name, so that no two of them choose the same.
    """
    claim = f"-{task.fence}" if task.machine else ""
    return f"{RESCUE_REFS}{safe_name(task.id)}/{task.attempts + 1}{claim}{suffix}"


def keep_commit(git: Git, task: Task, commit: str, suffix: str = "") -> str:
    """Keep `commit` of the attempt in progress, and return the ref."""
    with locks.hold(git):
        ref = free(git, attempt_ref(task, suffix))
        git.set_ref(ref, commit)
    return ref


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
    """Return the ref of HEAD at the claim; claims of the legacy protocol do not record it.

    One that was renamed meanwhile has its name of now, but in a run, where only an agent can have renamed it.
    """
    if not task.gate:
        return git.branch()
    claimed_on = task.gate.branch
    return claimed_on if claimed_on is None or task.target else history.present_name(git, claimed_on)


def branch_tip(git: Git, task: Task) -> str | None:
    """Return the commit that this ref points at now; None if there is none."""
    claimed_on = branch(git, task)
    return git.ref(claimed_on) if claimed_on else None


def before(git: Git, task: Task) -> snapshot.Before | None:
    """Return the files that were untracked at the claim; None if that was not recorded.

    Only a ref of harness counts: the list may have come with a clone, and files are written from this.
    """
    if not task.gate:
        return None
    copy = task.gate.before
    if copy is None:
        return snapshot.Before()
    return snapshot.read_untracked(git, copy) if git.ref(BEFORE_REFS + copy) == copy else None


def changed_before(git: Git, task: Task, rescue: str | None = None) -> list[str]:
    """Keep files that were untracked at the claim and have changed or gone; return sentences about them.

    `rescue`: the ref of the attempt's own work, if the attempt is counted already.
    """
    copy = before(git, task)
    if not copy or not copy.kept:
        return []
    standing = checkout.hashed(git, copy.kept, store=False)
    changed = {path: entry for path, entry in copy.kept.items() if standing.get(path) != entry}
    if not changed:
        return []
    base = task.started_at_commit
    tree = trees.edited(git, git.tree_of(base) if base else git.empty_tree(), changed)
    ref = free(git, f"{rescue or attempt_ref(task)}-before")
    last = ref.rpartition(".")[0] if "." in ref.rpartition("/")[2] else ref
    if git.ref(last) and git.tree_of(last) == tree:
        # A killed command has kept it already.
        ref = last
    with locks.hold(git):
        message = f"harness: files that were untracked before {task.id}, as they were\n"
        git.set_ref(ref, git.commit(tree, [base] if base else [], message))
    names = f"{counted(len(changed), 'untracked file')} that {task.id} did not make"
    paths = some_quoted(sorted(changed))
    return [f"{names} changed or went: {paths}. As before they are kept: {show_command(ref)}"]


def still_untracked(git: Git, head: str, task: Task) -> list[str]:
    """Return the files that were untracked at the claim and that the attempt has not committed."""
    copy = before(git, task)
    if not copy or not copy.paths:
        return []
    known = trees.entries(git, git.tree_of(head))
    return [path for path in (*copy.kept, *copy.unprotected) if path not in known]


def drop_before(git: Git, task: Task) -> None:
    """Delete the copies of files that were untracked before: the attempt has ended, the files exist."""
    if task.gate and task.gate.before:
        with locks.hold(git):
            # The outcome is recorded; a copy that cannot be deleted now is deleted by `sweep`.
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
    if git:
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
    fs.make_directory(above)
    places = (above / f"{path.parent.name}-{path.name}-{number}" for number in count(1))
    return next(place for place in places if not place.exists())


# An agent may be left alone over a long week-end and be held no longer than before.
NOTES_SECONDS = 7 * 24 * 3600.0
MEGABYTE = 1024 * 1024
# Limits of logs: their age, and their size in megabytes together.
DAYS = 30.0
MEGABYTES = 500


def sweep(ctx: Context) -> Strings:
    """Remove what is older than an hour (notes: a week) and belongs to no living command; return warnings."""
    try:
        ctx.store.sweep()
        # Attempts are recovered from here in other work trees, too.
        git, others = ctx.git, ctx.git.common_dir / "worktrees"
        for directory in (git.git_dir, git.common_dir, *others.glob("*/")):
            fs.sweep(directory, "harness-*")
        mkdir_lock.SeedLock(ctx.root.path, ctx.clock).sweep()
        old = list(_old_copies(ctx))
        in_use = {task.gate.before for task in ctx.ask().in_progress() if task.gate} if old else ()
        # Held even if there is nothing to remove: this also clears the locks of a killed git.
        with locks.hold(git):
            for ref, oid in old:
                if oid not in in_use:
                    git.delete_ref(ref, oid)
        own_files.sweep_notes(os.fspath(ctx.root.path), ctx.clock.time() - NOTES_SECONDS)
    except (OSError, HarnessError) as error:
        # They do no harm: the next session tries again.
        return (f"What killed commands had left could not be removed: {error}",)
    return ()


def _old_copies(ctx: Context) -> Iterator[tuple[str, str]]:
    """Yield (ref, commit) of the copies for attempts of this list; a repository may hold several lists."""
    limit = ctx.clock.time() - fs.STALE_SECONDS
    copies = [] if ctx.git.is_absent(BEFORE_REFS) else restore.listed(ctx.git, BEFORE_REFS)
    for each in copies:
        if each.at < limit and each.subject == before_subject(ctx.root.path):
            yield each.ref, each.oid


def by_itself(ctx: Context) -> str | None:
    """Remove old logs at the end of a run; return a sentence that says how many.

    Rescued work is never removed without the user.
    """
    taken = old_logs(ctx)
    remove(ctx, taken, [])
    size = sum(each.size for each in taken) / MEGABYTE
    old = f"older than {DAYS:g} days, or the oldest beyond {MEGABYTES} MB in all"
    return f"{len(taken)} logs of {size:.1f} MB were removed: {old}" if taken else None


def old_logs(ctx: Context) -> tuple[Old, ...]:
    """Return the logs that are older than DAYS, or the oldest ones beyond MEGABYTES in all."""
    return stats.outdated(_logs(ctx), ctx.clock.time(), DAYS, MEGABYTES * MEGABYTE)


def _logs(ctx: Context) -> Iterator[Old]:
    """Yield every log, except those of tasks in progress."""
    questions = ctx.ask()
    busy = {safe_name(task.id) for task in questions.in_progress()}
    for path in fs.below(ctx.root.logs, "*"):
        name = path.relative_to(ctx.root.logs)
        if name.suffix == ".lock" or name.parts[0] in busy:
            continue
        # `.harness/` may be deleted at any time.
        with suppress(FileNotFoundError):
            info = path.lstat()
            if stat.S_ISREG(info.st_mode):
                yield Old(str(name), info.st_mtime, info.st_size)


def needed(tasks: Iterable[Task]) -> dict[str, Task]:
    """Return the tasks that are still to be done, by the ref with the work that they go on with.

    Some of it is finished, and waits for the user's answer.
    """
    return {task.handback.rescue or "": task for task in tasks if task.handback and not task.is_done}


def rescues(ctx: Context, now: float, days: float) -> list[restore.Rescue]:
    """Return the rescued work that is older than `days` at `now`, in seconds since the epoch."""
    rescued = restore.listed(ctx.git, RESCUE_REFS)
    return [each for each in rescued if now - each.at > days * stats.SECONDS_PER_DAY]


def remove(ctx: Context, logs: tuple[Old, ...], works: list[restore.Rescue]) -> None:
    """Remove these logs and refs; what the refs named is written to the log first."""
    if works:
        # The names bring the work back, so they are recorded before the refs are removed.
        with rights.change(ctx) as tx:
            for each in works:
                rights.log(tx, ctx, f"dropped {each.ref} {each.oid}")
    for each in works:
        ctx.git.delete_ref(each.ref, each.oid)
    for log in logs:
        fs.remove(Path(ctx.root.logs, log.name))
