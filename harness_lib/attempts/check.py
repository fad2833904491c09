"""Run a task's check, the objective answer to "is it done?", and keep the claim alive meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harness_lib.attempts import outcome
from harness_lib.checks import UNWATCHED, Checked, Watch, Worktree, check_of
from harness_lib.core import ownership, project, trust
from harness_lib.core.context import Context
from harness_lib.errors import (
    AwayError,
    ConfigError,
    HeldError,
    LeaseLostError,
    NoPlaceError,
    StateUnreadableError,
)
from harness_lib.rules import rechecks, transitions
from harness_lib.state.api import Questions
from harness_lib.system.place import roots
from harness_lib.task import Task
from harness_lib.text import safe_name

# Results of checks, by command, directory and tree.
Known = dict[tuple[rechecks.Key, str], Checked]
# Two renewals may fail before the lease is lost.
RENEWALS_PER_LEASE = 3


def require_check(ctx: Context, questions: Questions, task: Task) -> None:
    """Raise ConfigError, naming the field, if `task` has no check."""
    if not check_of(task).is_given:
        field = f"validation.command (tasks[{questions.position(task.id)}])"
        raise ConfigError(
            f"Missing {field}: {task.id} cannot be completed without a check.",
            f"It needs one: {ownership.give_check(ctx, task)}",
        )


def log_directory(ctx: Context, task: Task) -> Path:
    """Return the directory for the output of the task's checks."""
    return ctx.root.logs / safe_name(task.id)


def run_check(ctx: Context, task: Task, *, log_name: str, watch: Watch = UNWATCHED) -> Checked:
    """Run the check once; if its command is missing, run `harness-init.sh` and the check again.

    The full output goes to `.harness/logs/<task>/<log_name>.log`.
    Raises RefusedError if others have given the task a check that is not trusted here.
    """
    trust.require_own(ctx, task)
    checked = run_once(ctx, task, log_name, watch)
    if checked.verdict == "ENV_SETUP" and project.has_init_script(ctx):
        project.run_init_script(ctx)
        checked = run_once(ctx, task, log_name, watch)
    return checked


def run_once(ctx: Context, task: Task, log_name: str, watch: Watch = UNWATCHED) -> Checked:
    """Run the check exactly once, as `run_check` does, whether it is trusted or not."""
    # The .gitignore in there hides the logs, also in a clone in which no lock was ever taken.
    roots.make_private(ctx.root.private)
    log = log_directory(ctx, task) / f"{log_name}.log"
    place = Worktree(ctx.git.top, ctx.env, log, ctx.clock, watch, project.search_paths(ctx))
    return check_of(task).run(place)


def run(ctx: Context, task: Task, *, suffix: str = "", holder: Task | None = None) -> Checked:
    """Run the check and renew the claim meanwhile. If it is lost, stop the check and raise LeaseLostError.

    `holder`: the task that the caller has claimed, if that is a different one. In a run, the first check
    without its directory has failed: the next agent is told, and can make it.
    """
    name = f"{task.attempts + 1}{suffix}"
    try:
        return while_held(
            ctx,
            holder or task,
            lambda watch: run_check(ctx, task, log_name=name, watch=watch),
        )
    except NoPlaceError as error:
        if ctx.target is None or task.attempts:
            # Only the user can say where the check runs; that of a chat is there.
            raise
        return Checked("TEST_FAIL", error.message, "", log_directory(ctx, task) / f"{name}.log")


def while_held(ctx: Context, holder: Task, run_one: Callable[[Watch], Checked]) -> Checked:
    """Return the result of `run_one`, which gets a watch that renews the claim of `holder`.

    Raises LeaseLostError if it is lost meanwhile.
    """
    lost: list[LeaseLostError] = []

    def go_on() -> bool:
        try:
            renew(ctx, holder)
        except LeaseLostError as error:
            lost.append(error)
        return not lost

    checked = run_one(Watch(go_on, renewal_seconds(ctx)))
    if lost:
        raise lost[0]
    return checked


# What this process keeps whenever it renews its claim, such as its turn to merge, which lasts `KEPT_SECONDS`.
kept_along: list[Callable[[], None]] = []
KEPT_SECONDS = 60.0


def renewal_seconds(ctx: Context) -> float:
    """Return how many seconds after the last one the next renewal of a claim is due."""
    seconds = min(ctx.lease_seconds, KEPT_SECONDS) if kept_along else ctx.lease_seconds
    return seconds / RENEWALS_PER_LEASE


def renewing(ctx: Context, task: Task) -> Callable[[], bool]:
    """Return a function to call between short steps, which renew no claim themselves.

    It renews that of `task` if that is due, and returns whether it was. Raises LeaseLostError.
    """
    last = ctx.clock.monotonic()

    def when_due() -> bool:
        nonlocal last
        now = ctx.clock.monotonic()
        is_due = now - last >= renewal_seconds(ctx)
        if is_due:
            last = now
            renew(ctx, task)
        return is_due

    return when_due


def renew(ctx: Context, task: Task) -> None:
    """Renew the lease of the claim, if it has one. Raises LeaseLostError.

    A list that cannot be read or reached at this moment does not end hours of work: the next renewal tries
    again, and the claim is asked for again before anything is recorded.
    """
    with suppress(HeldError, ConfigError, StateUnreadableError, AwayError):
        for keep in kept_along:
            keep()
        questions = ctx.store.ask_now(waits=False)
        outcome.require_claim(questions, task)
        if not questions.concurrent:
            return
        with ctx.transaction("tasks") as tx:
            current = outcome.require_claim(tx, task)
            tx.replace(transitions.renew(current, now=tx.now, lease_seconds=ctx.lease_seconds))
