"""Run a task's check, the objective answer to "is it done?", and renew its claim meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harness_lib import typed
from harness_lib.attempts import outcome
from harness_lib.checks import check_of
from harness_lib.checks.protocol import Checked, Worktree
from harness_lib.checks.shell_run import DID_NOT, FAILED, PRINTED
from harness_lib.core import ownership, project
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, HeldError, LeaseLostError, StateUnreadableError
from harness_lib.rules import rechecks, runners, transitions
from harness_lib.system.files import atomic, directories, printed
from harness_lib.task import Task

JUDGING = re.compile(r"\d+(-merged)?\.log")


def safe_name(task_id: str) -> str:
    """Return `task_id` as one harmless component of a path or a ref name."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: "%" + match[0].encode().hex(), task_id)


def require_check(task: Task, index: int, cure: str | None = None) -> None:
    """Raise ConfigError, naming the field, if `task` has no check.

    `cure` says how it gets one, if the caller may not type that.
    """
    if not check_of(task).is_given:
        raise ConfigError(
            f"Missing validation.command (tasks[{index}]): {task.id} cannot be completed without a check.",
            f"It needs one: {cure or typed.give_check(task.id)}",
        )


def log_directory(ctx: Context, task: Task) -> Path:
    """Return the directory for the output of the task's checks."""
    return ctx.root.logs / safe_name(task.id)


def run_check(
    ctx: Context,
    task: Task,
    *,
    log_name: str,
    on_tick: Callable[[], bool] | None = None,
    tick: float = 60.0,
) -> Checked:
    """Run the check once; if its command is missing, run `harness-init.sh` and the check again.

    The full output goes to `.harness/logs/<task>/<log_name>.log`.
    """
    checked = run_once(ctx, task, log_name, on_tick, tick)
    if checked.verdict == "ENV_SETUP" and project.has_init_script(ctx):
        project.run_init_script(ctx)
        checked = run_once(ctx, task, log_name, on_tick, tick)
    return checked


def run_once(
    ctx: Context,
    task: Task,
    log_name: str,
    on_tick: Callable[[], bool] | None = None,
    tick: float = 60.0,
) -> Checked:
    """Run the check exactly once, as `run_check` does."""
    # The .gitignore in there hides the logs, also in a clone in which no lock was ever taken.
    atomic.make_own(ctx.root.private)
    log = log_directory(ctx, task) / f"{log_name}.log"
    marks = {ownership.CHECKED: task.id}
    return check_of(task).run(Worktree(ctx.git.top, ctx.env, log, ctx.clock, marks, on_tick, tick))


def failed_logs(ctx: Context, task: Task) -> list[Path]:
    """Return the logs of the checks of attempts at `task`, the last one first.

    Logs of the user's `validate`, of cleanups and of agents are not among them.
    """
    logs = []
    for path in directories.matching(log_directory(ctx, task), "*.log"):
        # `.harness/` may be deleted at any time.
        with suppress(FileNotFoundError):
            if JUDGING.fullmatch(path.name):
                logs.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(logs, reverse=True)]


def last_excerpt(ctx: Context, task: Task) -> tuple[str, Path] | None:
    """Return an excerpt of the check that `task` failed last, and the path of the whole log.

    None if the last failure was not a check's, or its log is gone.
    """
    reason = task.handback.reason if task.handback else (task.error_log or ("",))[-1]
    if not any(words in reason for words in (FAILED, DID_NOT, PRINTED)):
        return None
    log = next(iter(failed_logs(ctx, task)), None)
    text = runners.of(printed.ends_of(log)) if log else ""
    return (text, log) if log and text else None


# Results of checks, by command, directory and tree.
Known = dict[tuple[rechecks.Key, str], Checked]

# Two renewals may fail before the lease is lost.
RENEWALS_PER_LEASE = 3


def run(ctx: Context, task: Task, *, suffix: str = "", holder: Task | None = None) -> Checked:
    """Run the check and renew the claim meanwhile. If it is lost, stop the check and raise LeaseLostError.

    `holder`: the task that the caller has claimed, if that is a different one.
    """
    name = f"{task.attempts + 1}{suffix}"
    return while_held(
        ctx,
        holder or task,
        lambda on_tick, tick: run_check(ctx, task, log_name=name, on_tick=on_tick, tick=tick),
    )


def while_held(
    ctx: Context, holder: Task, run_one: Callable[[Callable[[], bool], float], Checked]
) -> Checked:
    """Return the result of `run_one`, which gets a function to renew the claim of `holder` and its interval.

    Raises LeaseLostError if it is lost meanwhile.
    """
    lost: list[LeaseLostError] = []

    def go_on() -> bool:
        try:
            renew(ctx, holder)
        except LeaseLostError as error:
            lost.append(error)
        return not lost

    checked = run_one(go_on, max(1.0, ctx.lease_seconds / RENEWALS_PER_LEASE))
    if lost:
        raise lost[0]
    return checked


def renew(ctx: Context, task: Task) -> None:
    """Renew the lease of the claim, if it has one. Raises LeaseLostError.

    A list that cannot be read at this moment does not end hours of work: the next renewal tries again, and
    the claim is asked for again before anything is recorded.
    """
    with suppress(HeldError, ConfigError, StateUnreadableError):
        questions = ctx.store.ask()
        outcome.still_claimed(questions, task)
        if not questions.concurrent:
            return
        with ctx.store.transaction() as tx:
            current = outcome.require_claim(tx, task)
            tx.replace(transitions.renew(current, now=tx.now, lease_seconds=ctx.lease_seconds))
