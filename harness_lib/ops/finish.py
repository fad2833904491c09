"""`harness finish`: the check decides whether the task is done (design section 6)."""

from __future__ import annotations

from harness_lib.errors import ConfigError, EnvSetupError, Exit
from harness_lib.ops import (
    brief,
    checking,
    holding,
    leased_check,
    outcome,
    preparing,
    sessions,
    stopped,
    trusting,
)
from harness_lib.ops.checking import Checked
from harness_lib.ops.context import Context
from harness_lib.ops.holding import Held
from harness_lib.ops.reply import Reply
from harness_lib.rules import stats
from harness_lib.system import snapshot
from harness_lib.task import Category, Task

TAIL_LINES = 20


def run(ctx: Context, task_id: str | None = None) -> Reply:
    """Run the check of the held task: commit and complete it, or rescue the attempt and roll it back.

    Exit 0 completed, 1 the check said no (or the gate was touched).
    Raises ConfigError (no check), EnvSetupError (its command is not there); then no attempt is counted and
    the session is halted.
    """
    state = ctx.store.read().state
    held = holding.require(state, task_id, ctx)
    if held.task.intent is not None:
        return _reply(ctx, held, outcome.settle(ctx, held.session, held.task), None)
    trusting.require(ctx, state)
    touched = preparing.touched(ctx, held.task)
    if touched:
        gate = Checked(
            "TEST_FAIL", f"The attempt changed its own gate: {', '.join(touched)}.", "", ctx.root.log
        )
        return _failed(ctx, held, gate)
    command = _command(ctx, held)
    tree = snapshot.capture(ctx.git, ctx.keep_out)
    ctx.say(f"checking {held.task.id} …")
    checked = leased_check.run(ctx, held.task, command)
    if checked.verdict == "ENV_SETUP":
        _halt(ctx, held, "ENV_SETUP", checked.message)
        raise EnvSetupError(
            f"The check of {held.task.id} cannot run here. {checked.message}",
            f"Install it or fix harness-init.sh; then type: harness finish {held.task.id}",
        )
    if not checked.passed:
        return _failed(ctx, held, checked)
    return _reply(ctx, held, outcome.commit(ctx, held.session, held.task, tree), checked)


def _command(ctx: Context, held: Held) -> str:
    try:
        return checking.require_command(held.task, held.index)
    except ConfigError:
        _halt(ctx, held, "CONFIG", "Missing validation.command")
        raise


def _halt(ctx: Context, held: Held, category: Category, message: str) -> None:
    """Say in the log and in the session that a person or another machine is needed."""
    with ctx.store.transaction() as tx:
        tx.log("ERROR", message, session=held.session.number, task=held.task.id, category=category)
        current = sessions.mine(tx.state, ctx)
        if current:
            sessions.halt(tx, current, f"{category}: {message}")


def _failed(ctx: Context, held: Held, checked: Checked) -> Reply:
    category: Category = "TIMEOUT" if checked.verdict == "TIMEOUT" else "TEST_FAIL"
    verdict = outcome.Verdict(category, checked.failure())
    return _reply(ctx, held, outcome.roll_back(ctx, held.session, held.task, verdict), checked)


def _reply(ctx: Context, held: Held, ended: outcome.Ended, checked: Checked | None) -> Reply:
    task = ended.task
    extra: dict[str, object] = {"rescue": ended.rescue}
    if checked:
        extra.update(verdict=checked.verdict, tail=checked.tail, check_log=str(checked.log))
    lines = _completed(task) if task.status == "completed" else _rolled_back(task, ended, checked)
    if ended.stop:
        lines.append(f"stop: {ended.stop}; {stats.line(ctx.store.read().state)}")
    return Reply(
        "finish",
        "\n".join(lines),
        exit=Exit.DONE if task.status == "completed" else Exit.CHECK_FAILED,
        session=held.session.number,
        task=task,
        stop=ended.stop,
        next=stopped.GO_ON.get(ended.stop) if ended.stop else "harness claim",
        warnings=ended.warnings,
        extra=extra,
    )


def _completed(task: Task) -> list[str]:
    return [f"{task.id} is completed (commit {(task.completed_commit or '')[:12]})."]


def _rolled_back(task: Task, ended: outcome.Ended, checked: Checked | None) -> list[str]:
    why = checked.message if checked else "The attempt failed."
    lines = [f"{task.id} is not done. {why}"]
    if checked and checked.tail:
        lines += [
            "the end of its output:",
            *(f"  | {line}" for line in checked.tail.splitlines()[-TAIL_LINES:]),
        ]
        lines.append(f"all of it: {checked.log}")
    lines.append(f"rolled back; attempts used: {task.attempts} of {task.max_attempts}")
    if ended.rescue:
        lines.append(f"the work is kept: git show --stat {ended.rescue}")
    if task.error_log:
        lines.append(f"recorded: {brief.one_line(task.error_log[-1], brief.FAILURE_LENGTH)}")
    return lines
