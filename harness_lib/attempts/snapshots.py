"""Keep unfinished work in the remote, and fetch there what other machines have left.

`wip/` has the work so far of an attempt, files that git does not know yet too; `ready/` the checked commit
that waits for its merge. Both go when the attempt ends; what is kept then is in `rescue/`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from harness_lib import timestamps, typed
from harness_lib.attempts import remote, rescue_refs
from harness_lib.attempts.remote import Answer, There
from harness_lib.core.context import Context
from harness_lib.rules import stats
from harness_lib.state.api import Questions
from harness_lib.system.git import locks, trees
from harness_lib.task import Handback, Task
from harness_lib.text import safe_name

MEGABYTE = 1_000_000
DAYS = 30.0
# Refs that are removed in one push.
AT_ONCE = 200
Kind = Literal["wip", "ready"]
KINDS: tuple[Kind, ...] = ("wip", "ready")
# Copies of what is kept here alone, as the remote could not take it.
UNSENT = "unsent"
# With it begins, in the place of a task, the name of a ref with which a join tries what the remote takes.
PROBE = "probe+"


class Left(NamedTuple):
    """The newest work of an attempt in the remote; `kind` "ready": its check has passed."""

    commit: str
    kind: Kind


def take(ctx: Context, task: Task, tree: str | None = None) -> Answer:
    """Push the content of the work tree, without what was untracked before the attempt, if it is new.

    `tree`: the content, if that is known.
    """
    there, git = remote.of(ctx, task), ctx.git
    if not there.leaving.snapshots:
        return Answer(done=True)
    with locks.hold(git):
        head = git.head()
        if head is None:
            return Answer(done=True)
        theirs = rescue_refs.still_untracked(git, head, task)
        tree = trees.without(git, tree or ctx.capture(), theirs)
    last = git.ref(there.copy("wip", safe_name(task.id), str(task.fence)))
    if tree == git.tree_of(last or git.commit_called(task.started_at_commit) or head):
        return Answer(done=True)
    commit = git.commit(tree, [head], f"harness: the work so far of {task.id}\n")
    too_large = _too_large(there, task, [commit])
    return too_large or keep(there, task, commit, "wip")


def _too_large(there: There, task: Task, commits: Sequence[str]) -> Answer | None:
    """Return why the work in `commits` is not pushed before it is finished; None if it is small enough."""
    base, most = there.git.commit_called(task.started_at_commit), there.leaving.most
    known = (f"^{base}",) if base else ()
    count = int(there.git.text("rev-list", "--objects", "--disk-usage", *commits, *known, "--"))
    if count <= most * MEGABYTE:
        return None
    size = f"it has {math.ceil(count / MEGABYTE)} MB, and {most} MB of an attempt leave this machine"
    return Answer(done=False, why=f"{size} ({typed.git('config', 'harness.maxSnapshot', rest='MB')})")


def keep(there: There, task: Task, commit: str, kind: Kind) -> Answer:
    """Push `commit` as the work of the attempt at `task`."""
    name = (kind, safe_name(task.id), str(task.fence))
    answer = there.push("--force", there.work, f"{commit}:{there.ref(*name)}")
    if answer.done:
        there.git.set_ref(there.copy(*name), commit)
    return answer


def newest(there: There, task: Task) -> Left | None:
    """Fetch the work of `task` that is in the remote; return the newest, None if there is none.

    Raises RemoteAwayError: the remote does not answer.
    """
    git, safe = there.git, safe_name(task.id)
    specs = [f"+{there.ref(kind, safe)}/*:{there.copy(kind, safe)}/*" for kind in KINDS]
    there.require()
    # Copies of what is gone there are of an earlier attempt.
    answer = there.fetched(*specs, prunes=True)
    remote.require_answer(answer, there.work, f"{there.work} cannot be asked for the work of {task.id}")
    base = git.commit_called(task.started_at_commit)
    found = []
    for kind in KINDS:
        for name, commit in git.refs(there.copy(kind, safe)):
            fence = name.rpartition("/")[2]
            is_its_own = base is None or git.is_ancestor(base, commit)
            if is_its_own and fence.isdigit() and int(fence) <= task.fence:
                found.append((int(fence), kind == "ready", Left(commit, kind)))
    return max(found, key=lambda each: each[:2])[2] if found else None


def bring_checked(ctx: Context, task: Task, others: list[Task]) -> list[Task]:
    """Return those of `others`, for the same branch as `task`, whose checked work can be fetched here."""
    if not others:
        return []
    there = remote.of(ctx, task)
    names = [("ready", safe_name(each.id)) for each in others if not there.git.exists(_checked(each))]
    specs = [f"+{there.ref(*name)}/*:{there.copy(*name)}/*" for name in names]
    if specs:
        # What cannot be fetched now waits for its own machine.
        there.fetched(*specs)
    return [each for each in others if there.git.exists(_checked(each))]


def _checked(task: Task) -> str:
    return task.begun.commit or ""


def share(ctx: Context, task: Task) -> Answer:
    """Push what is kept of the attempt at `task`, whose rollback has begun, and drop its work so far.

    That stays as long as it is all that the remote has of what the next attempt goes on with.
    """
    there = remote.of(ctx, task)
    prefix = f"{rescue_refs.RESCUE_REFS}{safe_name(task.id)}/"
    mine = re.compile(rf"{re.escape(prefix)}\d+-{task.fence}(?!\d)")
    kept = [(name, commit) for name, commit in there.git.refs(prefix) if mine.match(name)]
    if not there.leaving.snapshots:
        # Finished work that waits for others is on their branch already.
        tip = there.tip
        kept = [each for each in kept if tip and there.git.is_ancestor(each[1], tip)]
    answer = Answer(done=True)
    too_large = _too_large(there, task, [commit for _, commit in kept]) if kept else None
    if kept and not too_large:
        answer = _push(there, kept)
        for name, commit in kept if not answer.done else ():
            there.git.set_ref(there.copy(UNSENT, name.removeprefix(rescue_refs.RESCUE_REFS)), commit)
    goes_on = task.handback if task.begun.outcome == "pending" else None
    is_there = not goes_on or (not too_large and goes_on.rescue in dict(kept))
    if answer.done and is_there:
        drop(there, task)
    return too_large or answer


def _push(there: There, kept: Sequence[tuple[str, str]]) -> Answer:
    specs = (f"{commit}:{_shared(there, name)}" for name, commit in kept)
    return there.push("--force", there.work, *specs)


def send(ctx: Context) -> None:
    """Push what `share` could not push when an attempt ended: another machine may go on with it.

    What cannot be pushed now either is left for the next time.
    """
    there = remote.of(ctx)
    git, prefix = there.git, there.copy(UNSENT)
    unsent = [(name.removeprefix(f"{prefix}/"), commit) for name, commit in git.refs(prefix)]
    named = [(f"{rescue_refs.RESCUE_REFS}{name}", commit) for name, commit in unsent]
    # The user may have dropped it meanwhile.
    kept = [(name, commit) for name, commit in named if git.ref(name) == commit]
    if not kept or _push(there, kept).done:
        for name, commit in unsent:
            git.delete_ref(f"{prefix}/{name}", commit)


def drop(there: There, task: Task) -> None:
    """Remove the work so far of `task` from the remote; what cannot be removed now does no harm."""
    git, safe = there.git, safe_name(task.id)
    copies = git.refs(*(f"{there.copy(kind, safe)}/" for kind in KINDS))
    _delete(there, {there.ref(*name.split("/")[-3:]): commit for name, commit in copies})
    for name, commit in copies:
        git.delete_ref(name, commit)


def bring(ctx: Context, task: Task, ref: str) -> Answer:
    """Fetch the rescue ref `ref`, which another machine has made."""
    there = remote.of(ctx, task)
    spec = f"+{_shared(there, ref)}:{ref}"
    return there.fetched(spec)


def bring_handed_back(ctx: Context, task: Task, back: Handback) -> str:
    """Fetch the work with which `task` was handed back, if it is not here; return why it is nowhere, or "".

    Where the remote had no room for its rescue ref, the last work that the attempt had pushed is taken.
    Raises RemoteAwayError: the remote does not answer.
    """
    ref = back.rescue or ""
    # The list may have been edited: no other ref is overwritten.
    is_kept = ref.startswith(rescue_refs.RESCUE_REFS)
    if not is_kept or ctx.git.ref(ref) or not ctx.shared:
        return ""
    answer = bring(ctx, task, ref)
    if answer.done:
        return ""
    there = remote.of(ctx, task)
    if remote.NO_BRANCH not in answer.why:
        remote.require_answer(answer, there.work, f"{there.work} cannot be asked for the work of {task.id}")
    left = newest(there, task._replace(started_at_commit=back.base))
    if not left:
        return answer.why
    there.git.set_ref(ref, left.commit)
    return ""


def bring_all(ctx: Context) -> Answer:
    """Fetch all work that other machines have kept: of ended attempts, and of those that go on."""
    there = remote.of(ctx)
    specs = [f"+{there.ref('rescue')}/*:{rescue_refs.RESCUE_REFS}*"]
    answer = there.fetched(*specs)
    if answer.done:
        answer = there.fetched(f"+{there.ref('wip')}/*:{there.copy('wip')}/*", prunes=True)
    for name, commit in there.git.refs(there.copy("wip")) if answer.done else ():
        task, fence = name.split("/")[-2:]
        there.git.set_ref(f"{rescue_refs.RESCUE_REFS}{task}/so-far-{fence}", commit)
    return answer


def keep_unknown(ctx: Context) -> int:
    """Keep here the work in the remote of claims that the list does not know; return how many refs were made.

    The database may have been set back, and the next sweep would remove that work. Raises HeldError.
    """
    there = remote.of(ctx)
    found = there.listed(there.work, *(f"{there.ref(kind)}/*" for kind in KINDS))
    # After that: a claim that is made meanwhile is known.
    known = {safe_name(task.id): task.fence for task in ctx.ask().search()} if found else {}
    specs = []
    for ref in found:
        kind, task, fence = ref.split("/")[-3:]
        is_known = task in known and (not fence.isdigit() or int(fence) <= known[task])
        if not is_known and not task.startswith(PROBE):
            name = "checked" if kind == "ready" else "so-far"
            specs.append(f"+{ref}:{rescue_refs.RESCUE_REFS}{task}/{name}-{fence}")
    if specs:
        problem = f"{there.work} cannot be asked for the work of claims that the list does not know"
        remote.require_answer(there.fetched(*specs), there.work, problem)
    return len(specs)


def sweep(ctx: Context) -> None:
    """Remove from the remote what killed machines have left of attempts that have ended.

    Raises HeldError, EnvSetupError: then it is left to the next run.
    """
    there = remote.of(ctx)
    found = there.listed(there.work, *(f"{there.ref(kind)}/*" for kind in KINDS))
    # After that: what was pushed for a claim that is made meanwhile is not in it.
    needed = _needed(ctx.store.ask_to_change()) if found else set()
    names = {ref: ref.split("/")[-2] for ref in found}
    gone = (ref for ref, name in names.items() if name not in needed and not name.startswith(PROBE))
    _delete(there, {ref: found[ref] for ref in gone})


def _needed(questions: Questions) -> set[str]:
    """Return the names in refs of the tasks that go on, or may have to go on with what was pushed last."""
    handed_back = (task for task in questions.search("pending") if task.kept)
    return {safe_name(task.id) for task in (*questions.in_progress(), *handed_back)}


def forget(ctx: Context, rescue: str) -> Answer:
    """Remove the rescue ref `rescue` from the remote, if it is there. Raises EnvSetupError, HeldError."""
    there = remote.of(ctx)
    return _delete(there, there.listed(there.work, _shared(there, rescue)))


def outlived(ctx: Context) -> dict[str, str]:
    """Return the rescue refs in the remote that nobody needs after `DAYS`, with their objects.

    What is kept of a task that is still to be done is needed. Raises HeldError.
    """
    there = remote.of(ctx)
    remote.require_answer(bring_all(ctx), there.work, f"{there.work} cannot be asked for rescued work")
    # After that: what was handed back meanwhile is needed.
    questions = ctx.ask()
    now, tasks = questions.now.timestamp(), questions.search()
    needed = rescue_refs.needed(tasks)
    young = {safe_name(task.id) for task in tasks if _has_ended_since(task, now)}
    old = {
        _shared(there, each.ref)
        for each in rescue_refs.rescues(ctx, now, DAYS)
        if each.ref not in needed
        and each.ref.removeprefix(rescue_refs.RESCUE_REFS).partition("/")[0] not in young
    }
    found = there.listed(there.work, f"{there.ref('rescue')}/*")
    return {ref: oid for ref, oid in found.items() if ref in old}


def _has_ended_since(task: Task, now: float) -> bool:
    """Return whether `task` has ended in the last `DAYS`: the clock that dates commits may be wrong."""
    ends = filter(None, (task.completed_at, task.failed_at))
    return any(now - timestamps.parse(end).timestamp() < DAYS * stats.SECONDS_PER_DAY for end in ends)


def remove(ctx: Context, refs: Mapping[str, str]) -> Answer:
    """Remove these refs from the remote, once their names are in the log; the copies here stay."""
    there = remote.of(ctx)
    if not refs:
        return Answer(done=True)
    with ctx.transaction() as tx:
        for ref, oid in refs.items():
            tx.log("WARN", f"dropped {ref} {oid} of {there.work}")
    return _delete(there, refs)


def _delete(there: There, refs: Mapping[str, str]) -> Answer:
    answer = Answer(done=True)
    names = list(refs.items())
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        leases = (f"--force-with-lease={ref}:{oid}" for ref, oid in some)
        answer = there.push(*leases, there.work, *(f":{ref}" for ref, _ in some))
        if not answer.done:
            break
    return answer


def _shared(there: There, rescue: str) -> str:
    return there.ref("rescue", rescue.removeprefix(rescue_refs.RESCUE_REFS))
