"""Say whether what a list says is under way can have been written by us.

A clone can bring a list that names any commit, branch or ref; what we write names objects in full, moves the
branch of the gate, and keeps work below refs of our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness_lib.task import Task

RESCUES = "refs/harness/rescue/"
HEADS = "refs/heads/"
WAITING = HEADS + "harness/"

_OBJECT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


def problem(task: Task) -> str | None:
    """Return the field of `task` that no write of ours can have filled so, and why; None if there is none."""
    return next(_problems(task), None) if task.intent else None


def _problems(task: Task) -> Iterator[str]:
    intent, gate = task.intent, task.gate
    assert intent is not None
    for field in ("base", "head", "commit"):
        value = getattr(intent, field)
        if value is not None and not is_object(value):
            yield f"intent.{field} is no full object id"
    if intent.action != "rollback" and intent.base != task.started_at_commit and not is_for_a_branch(task):
        yield "intent.base is not where the attempt began"
    if intent.rescue is not None and not intent.rescue.startswith(RESCUES):
        yield f"intent.rescue is not below {RESCUES}"
    branches = (gate.branch, gate.target) if gate else ()
    if any(branch is not None and not branch.startswith(HEADS) for branch in branches):
        yield f"gate names a branch that is not below {HEADS}"
    # Work that is moved together with others': none of them says from where.
    alone = intent.action == "commit" and not (is_for_a_branch(task) and intent.ref)
    if (alone and intent.head is None) or (intent.action == "commit" and intent.commit is None):
        yield "intent does not say which commit goes where"
    target = gate.target if gate else None
    if intent.ref is not None and (target is None or intent.ref not in (target, waiting(target))):
        yield "intent.ref is not the branch that the work is for"


def is_for_a_branch(task: Task) -> bool:
    """Return whether the work is merged: then it may go on top of others' work, wherever it began."""
    return task.gate is not None and task.gate.target is not None


def is_object(name: str) -> bool:
    """Return whether `name` is the full id of a git object, as we write it."""
    return _OBJECT.match(name) is not None


def waiting(target: str) -> str:
    """Return the full name of the branch of ours where work for `target` waits."""
    return WAITING + target.removeprefix(HEADS)
