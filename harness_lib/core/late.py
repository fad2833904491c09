"""Tell a chat, once, that another machine has taken its task over, and keep what its work tree has.

A claim leaves a note on this machine. Its next command compares it with the list, where the fence has grown.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from harness_lib import sha256, typed
from harness_lib.core.context import Context
from harness_lib.errors import LeaseLostError, RefusedError
from harness_lib.rules import recovery
from harness_lib.state.api import Questions
from harness_lib.system.files import atomic
from harness_lib.system.git import locks
from harness_lib.system.processes import owner
from harness_lib.task import Task

DIRECTORY = "held"


def note(ctx: Context, task: Task, rescue: str) -> None:
    """Note that this worker has claimed `task`; `rescue`: the ref that is to keep its work if it is late."""
    document = {"task": task.id, "fence": task.fence, "rescue": rescue}
    atomic.write(_file(ctx), json.dumps(document).encode(), durable=False, make=True)


def renew(ctx: Context, before: Task, taken: Task) -> None:
    """Note that the claim `before` of this worker goes on as `taken`, which recovery has made of it."""
    noted = _noted(ctx)
    if noted is not None and (noted.task, noted.fence) == (before.id, before.fence):
        note(ctx, taken, noted.rescue)


def forget(ctx: Context, task: Task) -> None:
    """Drop the note about the claim of `task`, which this worker has ended: a later claim ends no lease."""
    noted = _noted(ctx)
    if noted is not None and (noted.task, noted.fence) == (task.id, task.fence):
        atomic.remove(_file(ctx))


def refuse_namesake(ctx: Context, questions: Questions) -> None:
    """Raise RefusedError if a worker of this name holds a task on another machine, whose lease goes on.

    Nobody has the name of a run but itself: what it holds of another machine it was about to take over.
    """
    if ctx.target is not None:
        return
    held, here = questions.held_by(ctx.owner.worker), owner.machine(ctx.env)
    if held is None or held.machine in (None, here) or recovery.expired(held, questions.now):
        return
    raise RefusedError(
        f"{held.id} is in progress on {held.machine}, under your name: {ctx.owner.worker}.",
        "Give the worker of each machine a name of its own (HARNESS_WORKER_ID), and each machine one that "
        f"stays (HARNESS_MACHINE). If it was your own command that was cut off while it took {held.id} over "
        f"from there, type it again when that claim ends: {held.lease_expires_at}.",
    )


def refuse(ctx: Context, questions: Questions) -> None:
    """Raise LeaseLostError if the claim of this worker was taken over; its work is kept, and named.

    Raises RefusedError as `refuse_namesake` does.
    """
    refuse_namesake(ctx, questions)
    noted = _noted(ctx)
    if noted is None:
        return
    name, task = noted.task, questions.task(noted.task)
    if task is not None and recovery.is_mine(task, ctx.owner.worker):
        return
    if task is not None and task.fence == noted.fence:
        # The user has ended the attempt, as by accepting its work.
        if task.status != "in_progress":
            forget(ctx, task)
        return
    kept = _keep(ctx, noted.rescue)
    atomic.remove(_file(ctx))
    is_elsewhere = task is not None and task.machine != owner.machine(ctx.env)
    how = f"{task.machine} took it over" if task and is_elsewhere else "it was recovered, or removed"
    raise LeaseLostError(
        f"The lease of task {name} was lost: {how}. Nothing was recorded. {kept}",
        f"Clean your work tree: {typed.harness('rescue', 'save', name)}; then type: harness claim",
    )


def _keep(ctx: Context, rescue: str) -> str:
    git = ctx.git
    with locks.hold(git):
        head, tree = git.head(), ctx.capture()
        if head is None or tree == git.tree_of(head):
            return "Your work tree has no changes."
        git.set_ref(
            rescue, git.commit(tree, [head], "harness: what stood in a work tree that came too late\n")
        )
    shown = rescue.removeprefix(recovery.RESCUES)
    return f"What stands in {git.top} is kept: {typed.harness('rescue', 'show', shown)}"


class _Noted(NamedTuple):
    """What `note` has written."""

    task: str
    fence: int
    rescue: str


def _noted(ctx: Context) -> _Noted | None:
    try:
        read = json.loads(_file(ctx).read_bytes())
        return _Noted(str(read["task"]), int(read["fence"]), str(read["rescue"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _file(ctx: Context) -> Path:
    return ctx.root.private / DIRECTORY / sha256.digest(ctx.owner.worker.encode("utf-8", "replace"))[:16]
