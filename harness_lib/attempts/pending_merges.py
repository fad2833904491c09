"""Stack the commits that wait for their branch into a batch, and say why work waits for the user.

A batch is checked once, and its branch moves once. Crash model: before the branch moves, one write of the
list says of each task which commit it will be and what that begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import outcome, snapshots, target_branch
from harness_lib.core import quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.rules import recovery, transitions
from harness_lib.state.api import Tx
from harness_lib.system.git import advance, merge, status, submodules, trees, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.task import Task
from harness_lib.text import Strings

PATH_LENGTH = 200


def describe(ctx: Context, target: str) -> outcome.Waits | None:
    """Return why work waits and how to take it over; None if none waits."""
    git, ours = ctx.git, target_branch.waiting(target)
    target_tip, waiting_tip = git.ref(target), git.ref(ours)
    if waiting_tip is None or target_tip is None or git.is_ancestor(waiting_tip, target_tip):
        return None
    name = target_branch.short(ours)
    if _is_for_others(ctx):
        others = f"Finished work waits on the branch {name} until others have merged it"
        return outcome.Waits(others, "To take it over yourself", typed.git("merge", name))
    reasons = "; ".join(_reasons(ctx, target, target_tip, waiting_tip))
    sentence = f"Finished work waits on the branch {name}{reasons and f': {reasons}'}"
    return outcome.Waits(sentence, "Take it over with", typed.git("merge", name))


def _is_for_others(ctx: Context) -> bool:
    """Return whether what waits was proposed in a pull request, which has not been merged."""
    return any(task.halt_kind == "MERGE" for task in ctx.ask().halted())


def bring_over(ctx: Context, target: str, checked: str | None = None) -> str | None:
    """Merge what waits for `target` if nothing is in the way; return a sentence if it was merged.

    `checked`: as `target_branch.deliver` has it.
    """
    git, ours = ctx.git, target_branch.waiting(target)
    before, waiting_tip = git.ref(target), git.ref(ours)
    if waiting_tip is None or _is_for_others(ctx):
        return None
    target_branch.deliver(ctx, target, checked)
    after = git.ref(target)
    # Others may have moved it.
    if not after or before in (None, after) or not git.is_ancestor(waiting_tip, after):
        return None
    log = typed.git("log", "--oneline", f"{before}..{after}")
    waiting_name, target_name = target_branch.short(ours), target_branch.short(target)
    return f"What waited on the branch {waiting_name} has gone to {target_name}: {log}"


def _reasons(ctx: Context, target: str, target_tip: str, waiting_tip: str) -> Iterator[str]:
    """Yield what blocks the merge of `waiting_tip` into `target`, which is at `target_tip`."""
    if not ctx.git.is_ancestor(target_tip, waiting_tip):
        yield f"{target_branch.short(target)} has commits of its own"
    try:
        holder = worktrees.holder(ctx.main, target)
        found = list(_obstacles(ctx.at(Git.open(holder)), target_tip, waiting_tip)) if holder else []
    except (HarnessError, OSError):
        # A full disk or a read-only repository: report the waiting work all the same.
        return
    yield from found


def _obstacles(checkout: Context, target_tip: str, waiting_tip: str) -> Iterator[str]:
    """Yield what is in the way of `waiting_tip` in the user's `checkout`, which is at `target_tip`."""
    git = checkout.git
    if locks := advance.blocking_locks(git):
        yield (
            f"git's lock {quoting.one_line(str(locks[0]), PATH_LENGTH)} stands there: let the command that "
            "made it end; if none runs, delete that file"
        )
    if operation := status.under_way(git):
        yield f"a {operation} of yours is under way there: end it first"
    paths = advance.obstacles(git, target_tip, waiting_tip, checkout.excluded_paths)
    changed = set(checkout.changes().tracked if paths else ())
    # As long as these have changes, git merges nothing; the others it would carry along.
    refused = changed and changed.intersection(_merged(git, target_tip, waiting_tip))
    if kept := [path for path in paths if path in refused]:
        pronoun = "that" if len(kept) == 1 else "them"
        yield (
            f"you have changes in {quoting.named(kept, 3)}, for which git would not merge: "
            f"commit {pronoun} first, or put {pronoun} away"
        )
    if carried := [path for path in paths if path in changed and path not in refused]:
        yield f"you have changes in {quoting.named(carried, 3)}"
    if standing := [path for path in paths if path not in changed]:
        # A plain `git merge` would overwrite it if git ignores it.
        stands = "stands where it has a file" if len(standing) == 1 else "stand where it has files"
        pronoun = "that" if len(standing) == 1 else "them"
        yield f"your own {quoting.named(standing, 3)} {stands}: move {pronoun} away first"


def _merged(git: Git, target_tip: str, waiting_tip: str) -> set[str]:
    """Return the files that must be unchanged for `git merge` of `waiting_tip` into `target_tip`."""
    base = merge.parted(git, target_tip, waiting_tip)
    theirs = set(trees.changed(git, base or git.empty_tree(), waiting_tip))
    if base == target_tip:
        return theirs
    # A merge commit is made from the index, so nothing may be staged.
    return theirs.union(trees.staged(git))


class Blockers(NamedTuple):
    """Why some work cannot be merged; all are paths from the top.

    `repositories` are new and of their own; `submodules` name a commit that nobody else has; `marked` have
    conflict marks that harness wrote, or those of a merge that the agent has left unresolved.
    """

    repositories: Strings = ()
    submodules: Strings = ()
    marked: Strings = ()


def find(ctx: Context, target: str, task: Task, tree: str, *, lacks_some: bool) -> Blockers | None:
    """Return what blocks the merge of `tree`, just captured from the work tree, into `target`; None: nothing.

    `lacks_some`: something could not be taken into it, which may be a repository without a commit.
    Called before the check runs: files that the check makes are not merged.
    """
    git = ctx.git
    before = git.tree_of(git.commit_called(task.started_at_commit) or "HEAD")
    changed = trees.changed(git, before, tree)
    known = {path for path, (old, _) in changed.items() if old and old[0] == trees.GITLINK}
    links = {path: new[1] for path, (_, new) in changed.items() if new and new[0] == trees.GITLINK}
    new = {*links, *(submodules.untracked(git) if lacks_some else ())} - known
    new -= {path for path in new if path in links and submodules.is_submodule(git, tree, path)}
    moved = sorted(links.keys() - new)
    lost = [path for path in moved if not _is_held(ctx, target, path, links[path])]
    marked = {*merge.left(git, before, tree), *merge.unresolved(git, tree)}
    blockers = Blockers(tuple(sorted(new)), tuple(lost), tuple(sorted(marked)))
    return blockers if any(blockers) else None


def _is_held(ctx: Context, target: str, path: str, commit: str) -> bool:
    """Return whether others can fetch `commit` of the submodule at `path`, or the target has it already."""
    submodule = submodules.at(ctx.git, path)
    if submodule and submodules.is_published(submodule, commit):
        return True
    own = submodules.at(Git.open(ctx.root.path), path)
    if own and own.exists(commit):
        return True
    return ctx.git.ref(f"{target_branch.tip(ctx.git, target)}:{path}") == commit


MOST = 32


class Member(NamedTuple):
    """A task of a batch, the commit that its work goes on top of, and the resulting commit."""

    task: Task
    onto: str
    picked: str


class Batch(NamedTuple):
    """The tasks that one move from `start` merges; none if the first task has `conflicts` (files)."""

    start: str
    members: tuple[Member, ...] = ()
    conflicts: Strings = ()

    @property
    def tip(self) -> str:
        """Return the commit that has the work of all tasks."""
        return self.members[-1].picked if self.members else self.start

    def half(self) -> list[Task]:
        """Return the first half of the tasks."""
        return [member.task for member in self.members[: len(self.members) // 2]]


def waiting(ctx: Context, task: Task) -> list[Task]:
    """Return `task` and the others that wait for the same branch, the longest wait first.

    Without those that only their own machine can check: by a held-out file, or by commands that are not
    trusted here (any more).
    """
    others = trust.known(
        ctx,
        (
            other
            for other in ctx.ask().in_progress()
            if other.id != task.id and other.step == "merge" and other.target == task.target
        ),
    )
    # A claim of this session's may be of work that it recovers, and that another machine could not push.
    others = [
        other for other in others if ctx.is_of_session(other) or (ctx.shared and not other.validation.hidden)
    ]
    if ctx.shared:
        others = snapshots.bring_checked(ctx, task, others)
    return [task, *sorted(others, key=lambda other: other.begun.at)][:MOST]


def stack(ctx: Context, tasks: list[Task], tip: str, keep: Callable[[], object]) -> Batch:
    """Stack the work of `tasks` on `tip`; tasks that conflict with earlier ones are left out.

    `keep` is called between two of them.
    """
    members: list[Member] = []
    onto = tip
    for task in tasks:
        keep()
        base = task.begun.base or task.started_at_commit or onto
        picked = merge.pick(ctx.git, task.begun.oid, onto, outcome.message(ctx, task), base)
        if picked.conflicts and not members:
            return Batch(tip, conflicts=picked.conflicts)
        if not picked.conflicts:
            members.append(Member(task, onto, picked.tip))
            onto = picked.tip
    return Batch(tip, tuple(members))


def begin(ctx: Context, batch: Batch, ref: str) -> Task:
    """Record that the members are being moved onto `ref`; return the first of them.

    Raises LeaseLostError (the first has another claim), MovedError (another member is elsewhere).
    """
    first, *others = batch.members
    with ctx.transaction("tasks") as tx:
        _lock(tx, batch.members)
        if _current(tx, first.task) != outcome.require_claim(tx, first.task):
            raise target_branch.MovedError
        if any(not _current(tx, member.task) for member in others):
            raise target_branch.MovedError
        for member in batch.members:
            task = _current(tx, member.task)
            assert task is not None
            moving = transitions.begin_commit(
                task, now=tx.now, head=None, commit=member.picked, ref=ref, base=member.onto
            )
            tx.replace(moving)
        return outcome.require_claim(tx, first.task)


def take_back(ctx: Context, batch: Batch) -> None:
    """Let the members wait again, because the branch could not be moved."""
    with ctx.transaction("tasks") as tx:
        _lock(tx, batch.members[1:])
        for member in batch.members[1:]:
            task = tx.task(member.task.id)
            if not task or not recovery.is_same(task, member.task):
                continue
            if task.step == "commit" and task.begun.commit == member.picked:
                commit, base = member.task.begun.oid, member.task.begun.base
                waits = transitions.drop_intent(task)
                tx.replace(transitions.begin_merge(waits, now=tx.now, commit=commit, base=base))


def _lock(tx: Tx, members: Sequence[Member]) -> None:
    """Let nobody else change the tasks of `members` from now on.

    They may be another machine's. In the order of their ids everybody locks several tasks, so that two
    never wait for each other.
    """
    for task_id in sorted(member.task.id for member in members):
        tx.task(task_id)


def _current(tx: Tx, task: Task) -> Task | None:
    """Return the task as it is now; None if it no longer waits as `task` does."""
    current = tx.task(task.id)
    same = current is not None and recovery.is_same(current, task) and current.intent == task.intent
    return current if same else None
