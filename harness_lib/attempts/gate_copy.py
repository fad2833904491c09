"""Keep a copy of the gate beside the list: an agent that edits check and fingerprint is noticed.

It lies in the private directory, which may go at any time: without it the list's own word counts.
"""

from __future__ import annotations

import json

from harness_lib.attempts import check
from harness_lib.core.context import Context
from harness_lib.system.files import atomic
from harness_lib.task import Task

DIRECTORY = "gates"


def keep(ctx: Context, task: Task) -> None:
    """Keep the gate of `task`, whose attempt begins, or whose check a person has changed."""
    place = ctx.root.private / DIRECTORY / check.safe_name(task.id)
    atomic.write(place, json.dumps(_essence(task)).encode(), durable=False, make=True)


def differs(ctx: Context, task: Task) -> bool:
    """Return whether the list has another gate for this attempt than the one that was kept."""
    try:
        kept = json.loads((ctx.root.private / DIRECTORY / check.safe_name(task.id)).read_bytes())
    except (OSError, ValueError):
        return False
    present = _essence(task)
    same_attempt = isinstance(kept, dict) and kept.get("attempt") == present["attempt"]
    return same_attempt and kept != present


def _essence(task: Task) -> dict[str, object]:
    gate = task.gate
    fields = [gate.command, gate.cwd, gate.protected, gate.judges] if gate else None
    if fields and gate and gate.conversion:
        # Claims of an older harness have none.
        fields.append(gate.conversion)
    if fields and gate and gate.programs:
        fields.append("\n".join(gate.programs))
    return {"attempt": [task.started_at_commit, task.attempts], "gate": fields}
