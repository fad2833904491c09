"""Record the verification of each completed task, and find tasks that were completed without it.

Agents declare victory too early, and can write the list. So `completed` is believed if the record (`proof`)
fits the task: this check, in this attempt, in this commit. It is kept in the task, because each change of
harness rewrites the whole file, external edits included.
It is a plain checksum: it stops carelessness, not a program that forges it.
Standard library only: hooks read the list with it.
"""

from __future__ import annotations

import json

from harness_lib import sha256
from harness_lib.checks import check_of, held_out
from harness_lib.task import State, Task


def sealed(state: State, old: State) -> State:
    """Return `state`, which is about to replace `old`, with a record in each completed task.

    Tasks that an older harness, or the legacy protocol before the first session, completed are believed.
    """
    if state.is_legacy and not state.proofs:
        return state
    tasks = list(state.tasks)
    for place in state.changed_since(old) if old.proofs else range(len(tasks)):
        tasks[place] = _sealed(tasks[place])
    return state._replace(tasks=tuple(tasks), proofs=True)


def examined(state: State) -> State:
    """Return `state`, which may have been edited externally, with its unverified completed tasks marked.

    A task that harness has claimed stays in progress despite such an edit: its worker, or its recovery, runs
    the check.
    """
    if not state.proofs:
        return state
    return state._replace(tasks=tuple([_examined(task) for task in state.tasks]))


def unproven(state: State) -> list[Task]:
    """Return the tasks that an external edit marks as completed, claimed ones too."""
    return [task for task in state.tasks if task.unproven]


def _examined(task: Task) -> Task:
    if task.status != "completed" or task.proof == _proof(task):
        is_kept = task.status == "in_progress" or not task.unproven
        return task if is_kept else task._replace(unproven=False)
    if _is_under_our_claim(task):
        return task._replace(
            status="in_progress", completed_at=None, completed_commit=None, proof=None, unproven=True
        )
    return task._replace(unproven=True)


def _is_under_our_claim(task: Task) -> bool:
    """Return whether an attempt of harness is under way; one that is being rolled back is not."""
    is_over = task.intent is not None and task.intent.action == "rollback"
    return task.gate is not None and task.claimed_by is not None and not is_over


def _sealed(task: Task) -> Task:
    if task.status == "completed" and task.unproven:
        return task
    proof = _proof(task) if task.is_done else None
    return task if task.proof == proof else task._replace(proof=proof)


def _proof(task: Task) -> str:
    check = check_of(task)
    parts = [task.id, task.fence, check.text, check.cwd, task.completed_commit]
    if hidden := held_out(task):
        # Records of an earlier harness do not have it.
        parts.append(hidden)
    return "sha256:" + sha256.digest(json.dumps(parts).encode())
