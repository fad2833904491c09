"""A batch of the merge queue: commits picked one on the other, checked once, their branch moved once.

Crash model: before the branch moves, one write of the list says of each task which commit it will be and what
that begins with. The move is of all of them, so none makes it alone (`head` is None): whoever comes after a
crash sees whether the task's commit has arrived, and merges it again if it has not.
"""

from __future__ import annotations

from typing import NamedTuple

from harness_lib.attempts import commit, outcome, target_branch
from harness_lib.core.context import Context
from harness_lib.rules import leases, transitions
from harness_lib.state.api import Tx
from harness_lib.system.git import merge
from harness_lib.system.git.repository import Git
from harness_lib.task import Session, Task

MOST = 32


class Member(NamedTuple):
    """A task whose intent is to be merged, what its work goes on top of, and the commit that comes of it."""

    task: Task
    onto: str
    picked: str


class Batch(NamedTuple):
    """What is moved at once, from `start`; `conflicts` are files of the first task: then nothing is."""

    start: str
    members: tuple[Member, ...] = ()
    conflicts: tuple[str, ...] = ()

    @property
    def tip(self) -> str:
        """Return the commit that has all of it."""
        return self.members[-1].picked if self.members else self.start

    def half(self) -> list[Task]:
        """Return the first half of the tasks."""
        return [member.task for member in self.members[: len(self.members) // 2]]


def waiting(ctx: Context, session: Session, task: Task) -> list[Task]:
    """Return `task` and the others of this session that wait for the same branch, the longest first."""
    assert task.gate is not None
    others = [
        other
        for other in ctx.store.ask().in_progress()
        if other.id != task.id
        and _is_to_be_merged(other)
        and leases.works_for(other.claimed_by, session.worker)
        and other.gate is not None
        and other.gate.target == task.gate.target
    ]
    return [task, *sorted(others, key=lambda other: outcome.intent_of(other).at)][:MOST]


def _is_to_be_merged(task: Task) -> bool:
    return task.intent is not None and task.intent.action == "merge"


def stack(git: Git, tasks: list[Task], tip: str) -> Batch:
    """Return the work of `tasks`, one on the other, on `tip`; what conflicts with the first is left out."""
    members: list[Member] = []
    onto = tip
    for task in tasks:
        intent = outcome.intent_of(task)
        assert intent.commit is not None
        base = intent.base or task.started_at_commit or onto
        picked = merge.pick(git, intent.commit, onto, commit.message(task), base)
        if picked.conflicts and not members:
            return Batch(tip, conflicts=picked.conflicts)
        if not picked.conflicts:
            members.append(Member(task, onto, picked.tip))
            onto = picked.tip
    return Batch(tip, tuple(members))


def begin(ctx: Context, batch: Batch, ref: str) -> Task:
    """Write down that the members are moved onto `ref` now; return the first as it is then.

    Raises LeaseLostError (the first has another claim), target.MovedError (another member is elsewhere).
    """
    first, *others = batch.members
    with ctx.store.transaction() as tx:
        if _current(tx, first.task) != outcome.require_claim(tx, first.task):
            raise target_branch.MovedError
        if any(_current(tx, member.task) is None for member in others):
            raise target_branch.MovedError
        head = None if others else batch.start
        for member in batch.members:
            task = _current(tx, member.task)
            assert task is not None
            moving = transitions.begin_commit(
                task, now=tx.now, head=head, commit=member.picked, ref=ref, base=member.onto
            )
            tx.replace(moving)
        return outcome.require_claim(tx, first.task)


def take_back(ctx: Context, batch: Batch) -> None:
    """Let the others wait again: the branch could not be moved."""
    with ctx.store.transaction() as tx:
        for member in batch.members[1:]:
            task = tx.task(member.task.id)
            if task is not None and leases.is_same(task, member.task) and _is_moving(task, member):
                intent = outcome.intent_of(member.task)
                assert intent.commit is not None
                again = transitions.begin_merge(
                    transitions.drop_intent(task), now=tx.now, commit=intent.commit, base=intent.base
                )
                tx.replace(again)


def _current(tx: Tx, task: Task) -> Task | None:
    """Return the task as it is now; None if it no longer waits as `task` does."""
    current = tx.task(task.id)
    same = current is not None and leases.is_same(current, task) and current.intent == task.intent
    return current if same else None


def _is_moving(task: Task, member: Member) -> bool:
    intent = task.intent
    return intent is not None and intent.action == "commit" and intent.commit == member.picked
