"""Compare the list with the remote.

Finished work may be on the branch without the list's knowing it (its database was set back), or be gone from
there (somebody has rewritten the branch).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import check, publish, remote, target_branch
from harness_lib.attempts.remote import Landed, There
from harness_lib.core.context import Context
from harness_lib.rules import arrows, transitions
from harness_lib.state.api import Questions
from harness_lib.system.git.repository import Git
from harness_lib.task import Task

MOST_REFS = 5000


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


def find(ctx: Context, questions: Questions) -> list[Forgotten]:
    """Compare the list with the branch of the remote. Raises HeldError, EnvSetupError.

    A claim that the list has never seen has a higher fence than it.
    """
    there = remote.of(ctx)
    tip = remote.require(ctx, there)
    newest: dict[str, Landed] = {}
    for each in remote.landed(there.git, there.name, tip):
        newest.setdefault(each.task, each)
    tasks = questions.search("pending", "failed", "in_progress")
    found = ((task, newest.get(check.safe_name(task.id))) for task in tasks)
    return [Forgotten(task.id, each, there.shown) for task, each in found if each and each.fence > task.fence]


def lost(ctx: Context, questions: Questions) -> list[str]:
    """Return a sentence for each completed task whose commit is on no branch of the remote.

    Raises HeldError, EnvSetupError.
    """
    there = remote.of(ctx)
    # Beside those of the user, who may have the only copy of what the remote has forgotten.
    prefix = there.copy("branches")
    spec = f"+{target_branch.HEADS}*:{prefix}/*"
    answer = remote.ask(ctx, there, "fetch", "--quiet", "--no-tags", "--prune", there.remote, spec)
    remote.require_answer(answer, there.remote, f"{there.remote} cannot be fetched")
    known = set(there.git.text("rev-list", f"--glob={prefix}").split())
    done = [task for task in questions.search("completed") if task.completed_commit and task.machine]
    gone = [task for task in done if task.completed_commit not in known]
    tip = there.git.ref(f"{prefix}/{target_branch.short(there.branch)}")
    arrived = (
        publish.in_other_commits(there.git, tip, [task.completed_commit or "" for task in gone])
        if tip
        else ()
    )
    told = {(each.task, each.fence) for each in remote.landed(there.git, there.name, tip)} if tip else ()
    return [
        _lost(there, task)
        for task in gone
        if task.completed_commit not in arrived and not _is_told(there.git, task, told)
    ]


def _lost(there: There, task: Task) -> str:
    commit = task.completed_commit or ""
    said = (
        f"{task.id} is completed, and no branch of {there.remote} has its commit {commit[:12]}: it was "
        "rewritten, or this is the remote of a fork"
    )
    # A commit that was squashed at once has never been on another machine.
    if there.git.exists(commit):
        return said
    return f"{said}; {typed.harness('store', 'check')} on {task.machine} tells whether its change is there"


def _is_told(git: Git, task: Task, told: Collection[tuple[str, int]]) -> bool:
    """Return whether trailers tell that the work of `task` has arrived, whose commit was never here."""
    return (check.safe_name(task.id), task.fence) in told and not git.exists(task.completed_commit or "")


def too_many_refs(ctx: Context) -> str | None:
    """Return a sentence if pushes get slow, as a remote has many refs. Raises HeldError, EnvSetupError."""
    there = remote.of(ctx)
    for name in dict.fromkeys((there.remote, there.work)):
        count = len(remote.listed(ctx, there, name))
        if count > MOST_REFS:
            return f"{name} has {count} refs, and a push takes longer with each above {MOST_REFS}"
    return None


def complete(ctx: Context, forgotten: Sequence[Forgotten]) -> list[str]:
    """Record these tasks as completed; return a sentence for each that could not be."""
    left = []
    with ctx.store.transaction() as tx:
        for each in forgotten:
            task = tx.task(each.task)
            if task is not None and task.status == "failed":
                task = transitions.reset(task)
            if task is None or not arrows.may("attest", task):
                left.append(str(each))
                continue
            done = transitions.attest(task, now=tx.now, commit=each.landed.commit)
            tx.replace(done._replace(fence=max(done.fence, each.landed.fence)))
            tx.log("WARN", f"{each}: completed", session=tx.session_count, task=task.id)
    return left
