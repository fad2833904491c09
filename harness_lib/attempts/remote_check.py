"""Check the remote that machines share: what it takes as a machine joins, and whether the list agrees.

One ref of each kind is pushed and deleted again, several at once: a merge needs that.
Finished work may be on the branch without the list's knowing it (its database was set back), or be gone from
there (somebody has rewritten the branch).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import pull_request, remote, snapshots, target_branch
from harness_lib.attempts.remote import Answer, Landed, Leaving, There
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.rules import arrows, transitions
from harness_lib.state.api import Questions
from harness_lib.system.git.repository import Git
from harness_lib.task import Task
from harness_lib.text import safe_name, without_credentials

MOST_REFS = 5000
KINDS = ("wip", "ready", "rescue")
# Git says so of a remote that takes one ref at a time.
NO_ATOMIC = "does not support --atomic"


def prepare(git: Git, wanted: Leaving) -> None:
    """Keep what may leave this machine.

    Raises UsageError: there is no such remote; EnvSetupError: the clone lacks its history.
    """
    if git.text("rev-parse", "--is-shallow-repository") == "true":
        raise EnvSetupError(
            "This clone is shallow: without its history nobody can tell what is on the branch.",
            f"Fetch it: {typed.git('fetch', '--unshallow')}",
        )
    remote.save_leaving(git, wanted)


def told(ctx: Context) -> list[str]:
    """Try the remotes, and return what the user should know, a sentence each."""
    try:
        there = remote.of(ctx)
        there.require()
    except HarnessError as error:
        return [f"{error.message} What its remote takes was not tried. {error.hint}"]
    return [*_tried(there), *_another(there), _leaves(there)]


def _tried(there: There) -> Iterator[str]:
    """Try the remotes; keep that they take branches only, if that is so."""
    refusals = [each for each in _pushed(there) if not each.done]
    if refusals and not any(NO_ATOMIC in each.why for each in refusals):
        branches = there._replace(leaving=there.leaving._replace(refs=remote.BRANCHES))
        if all(each.done for each in _pushed(branches)):
            remote.save_leaving(there.git, branches.leaving)
            refusals = []
            yield (
                f"{there.remote} takes branches only, so what machines share is below "
                f"{branches.ref()}. Let no job of the host run for these branches."
            )
            if there.listed(there.remote, there.ref("turn", "*")):
                yield (
                    f"Other machines have used refs below {there.ref()}: what they push there is not seen "
                    "here, until all of them join again and find the same."
                )
    for each in refusals:
        needs = "A merge pushes two refs at once. " if NO_ATOMIC in each.why else ""
        yield f"Work cannot be shared yet: {each.why}. {needs}What a host must allow: docs/many-machines.md"


def _pushed(there: There) -> Iterator[Answer]:
    """Push a ref of each kind, and delete it again; yield how that went, for each remote.

    What was left there when this was killed goes with the next join of this machine.
    """
    probe = snapshots.PROBE + safe_name(there.ctx.machine)
    commit = there.git.commit(there.git.empty_tree(), [], "harness: try what this remote takes\n")
    unfinished = [there.ref(kind, probe, "0") for kind in KINDS]
    turn = [there.ref("turn", probe)]
    if there.work == there.remote:
        yield _once(there, there.remote, [*turn, *unfinished], commit)
    else:
        # What moves the branch goes there with a second ref.
        yield _once(there, there.remote, [*turn, f"{turn[0]}-too"], commit)
        yield _once(there, there.work, unfinished, commit)


def _once(there: There, name: str, refs: Sequence[str], commit: str) -> Answer:
    made = there.push("--atomic", "--force", name, *(f"{commit}:{ref}" for ref in refs))
    if not made.done:
        return Answer(done=False, why=f"{name} refuses refs below {there.ref()}: {made.why}")
    gone = there.push(name, *(f":{ref}" for ref in refs))
    return gone if gone.done else Answer(done=False, why=f"{name} lets nobody delete a ref: {gone.why}")


def _another(there: There) -> Iterator[str]:
    """Say so if the branch lacks what the list says that is on it: it may be that of a fork."""
    tasks = (task for task in there.ctx.ask().search("completed") if task.machine and task.completed_commit)
    last = max(tasks, key=lambda task: task.completed_at or "", default=None)
    tip = there.tip
    commit = last.completed_commit if last else None
    if not last or commit is None or tip is None:
        return
    if not there.git.exists(commit) or not there.git.is_ancestor(commit, tip):
        yield (
            f"{there.shown} lacks {commit[:12]}, the finished work of {last.id} by {last.machine}. If this "
            "remote is a fork, name the one that the other machines push to: --target-remote"
        )


def _leaves(there: There) -> str:
    name, settings = there.work, there.leaving
    address = without_credentials(there.git.text("remote", "get-url", name))
    finished = f"What leaves this machine: finished work, to {there.shown}"
    if not settings.snapshots:
        return f"{finished}; unfinished work stays here."
    return (
        f"{finished}; and about each minute the work so far, up to {settings.most} MB of an attempt, with "
        f"files that git does not know yet and without what it ignores, to {name} ({address}). "
        "To keep that here: --no-snapshots"
    )


class Forgotten(NamedTuple):
    """A task that is not completed in the list, and its commit on the branch `shown`."""

    task: str
    landed: Landed
    shown: str

    def __str__(self) -> str:
        """Return it as a sentence without a full stop."""
        return (
            f"{self.task} is on {self.shown} (commit {self.landed.commit[:12]}), and the list does not know"
        )


def of_another_list(ctx: Context, questions: Questions) -> str | None:
    """Return a sentence if the branch has work of a list of this name that is not this list's.

    Raises HeldError, EnvSetupError.
    """
    there = remote.of(ctx)
    tip = there.require()
    fences = {safe_name(task.id): task.fence for task in questions.search()}
    for each in remote.landed(there.git, there.name, tip):
        if each.fence > fences.get(each.task, 0):
            work = f"work of another list called {there.name} ({each.task}, commit {each.commit[:12]})"
            return f"{there.shown} has {work}, which would be taken for the work of this one."
    return None


def forgotten(ctx: Context, questions: Questions) -> list[Forgotten]:
    """Compare the list with the branch of the remote. Raises HeldError, EnvSetupError.

    A claim that the list has never seen has a higher fence than it.
    """
    there = remote.of(ctx)
    tip = there.require()
    newest: dict[str, Landed] = {}
    for each in remote.landed(there.git, there.name, tip):
        newest.setdefault(each.task, each)
    tasks = questions.search("pending", "failed", "in_progress")
    found = ((task, newest.get(safe_name(task.id))) for task in tasks)
    return [Forgotten(task.id, each, there.shown) for task, each in found if each and each.fence > task.fence]


def lost(ctx: Context, questions: Questions) -> list[str]:
    """Return a sentence for each completed task whose commit is on no branch of the remote.

    Raises HeldError, EnvSetupError.
    """
    there = remote.of(ctx)
    # Beside those of the user, who may have the only copy of what the remote has forgotten.
    prefix = there.copy("branches")
    spec = f"+{target_branch.HEADS}*:{prefix}/*"
    answer = there.ask("fetch", "--quiet", "--no-tags", "--prune", there.remote, spec)
    remote.require_answer(answer, there.remote, f"{there.remote} cannot be fetched")
    known = set(there.git.text("rev-list", f"--glob={prefix}").split())
    done = [task for task in questions.search("completed") if task.completed_commit and task.machine]
    gone = [task for task in done if task.completed_commit not in known]
    tip = there.git.ref(f"{prefix}/{target_branch.short(there.branch)}")
    arrived = (
        pull_request.in_other_commits(there.git, tip, [task.completed_commit or "" for task in gone])
        if tip
        else ()
    )
    told = {(each.task, each.fence) for each in remote.landed(there.git, there.name, tip)} if tip else ()
    return [
        _lost(there, task)
        for task in gone
        # A commit that was squashed at once has never been on another machine: then trailers tell.
        if task.completed_commit not in arrived
        and ((safe_name(task.id), task.fence) not in told or there.git.exists(task.completed_commit or ""))
    ]


def _lost(there: There, task: Task) -> str:
    commit = task.completed_commit or ""
    said = (
        f"{task.id} is completed, and no branch of {there.remote} has its commit {commit[:12]}: it was "
        "rewritten, or this is the remote of a fork"
    )
    if there.git.exists(commit):
        return said
    return f"{said}; {typed.harness('store', 'check')} on {task.machine} tells whether its change is there"


def too_many_refs(ctx: Context) -> str | None:
    """Return a sentence if pushes get slow, as a remote has many refs. Raises HeldError, EnvSetupError."""
    there = remote.of(ctx)
    for name in dict.fromkeys((there.remote, there.work)):
        count = len(there.listed(name))
        if count > MOST_REFS:
            return f"{name} has {count} refs, and a push takes longer with each above {MOST_REFS}"
    return None


def complete(ctx: Context, merged: Sequence[Forgotten]) -> list[str]:
    """Record these tasks as completed; return a sentence for each that could not be."""
    left = []
    with ctx.transaction() as tx:
        for each in merged:
            task = tx.task(each.task)
            if task and task.status == "failed":
                task = transitions.reset(task)
            if not task or not arrows.may("attest", task):
                left.append(str(each))
                continue
            done = transitions.attest(task, now=tx.now, commit=each.landed.commit)
            tx.replace(done._replace(fence=max(done.fence, each.landed.fence)))
            tx.log("WARN", f"{each}: completed", task=task.id)
    return left
