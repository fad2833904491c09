"""When the list is done every check runs once more on the final tree; what was broken becomes a new task.

A later task may break what an earlier one had finished: its own check does not look there.
What another worker has finished on a branch of its own is not broken, only not here.
"""

from __future__ import annotations

from collections.abc import Callable

from harness_lib.ops import add, brief, checking, sessions, slots, start, target
from harness_lib.ops.add import Wish
from harness_lib.ops.checking import Checked
from harness_lib.ops.context import Context
from harness_lib.system import worktrees
from harness_lib.task import Task

# Workers count from 1.
NUMBER = 0
TITLE = "Repair what a later task broke: "


def run(ctx: Context, place: slots.Place, tell: Callable[[str], None], may_go_on: Callable[[], bool]) -> bool:
    """Run every check of a completed task on the target; return whether new tasks are to be done.

    `may_go_on` is asked between two checks: a person may not want to wait for all of them.
    Raises EnvSetupError if `harness-init.sh` fails in a fresh work tree.
    """
    assert ctx.target is not None
    state = ctx.store.read().state
    broken: list[tuple[Task, Checked]] = []
    path = place.slot(NUMBER)
    worktrees.remove(ctx.git, path)
    tip = target.tip(ctx.git, ctx.target)
    try:
        there = ctx.at(slots.stand(ctx, path, tip)[0])
        slots.set_up(there)
        for task in state.tasks:
            if not may_go_on():
                return False
            checked = _check(there, task)
            if checked is None or checked.passed:
                continue
            if task.completed_commit and not ctx.git.is_ancestor(task.completed_commit, tip):
                tell(
                    f"{task.id} was finished elsewhere: its commit {task.completed_commit[:12]} is not on "
                    f"{target.short(ctx.target)}, where its check fails"
                )
            else:
                broken.append((task, checked))
                tell(f"{task.id} is broken on the final tree: {checked.message}")
    finally:
        # What checks leave behind is nobody's work.
        worktrees.remove(ctx.git, path)
    if not broken:
        return False
    for task, checked in broken:
        _repair(ctx, task, checked)
    return _session_is_open(ctx)


def _check(ctx: Context, task: Task) -> Checked | None:
    command = task.validation.command
    if task.status != "completed" or not command:
        return None
    return checking.run_check(ctx, task, command, log_name="final")


def _repair(ctx: Context, task: Task, checked: Checked) -> None:
    """Add the task to put right what `task` had finished, with the check that has caught it."""
    title = task.title.removeprefix(TITLE)
    wish = Wish(
        f"{TITLE}{title}",
        description=(
            f"The check of {task.id} passed when it was finished (commit {task.completed_commit}) and fails "
            f"now that the list is done: {brief.one_line(checked.failure(), brief.FAILURE_LENGTH)}. "
            "Make it pass again without undoing what other tasks have done since."
        ),
        priority="P0",
        depends_on=(task.id,),
        validate=task.validation.command,
        cwd=task.validation.cwd,
        timeout_seconds=task.validation.timeout_seconds,
        protect=task.validation.protect,
    )
    add.run(ctx, wish)


def _session_is_open(ctx: Context) -> bool:
    """Return whether this run has a session; the last one ended when the list was done."""
    if sessions.mine(ctx.store.read().state, ctx) is not None:
        return True
    return start.open_session(ctx).session is not None
