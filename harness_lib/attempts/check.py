"""Running a task's check: the objective answer to "is it done?"."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from harness_lib import typed
from harness_lib.core import init_script, ownership
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError
from harness_lib.rules import excerpt
from harness_lib.system.files import listing, printed
from harness_lib.system.processes import check_env, runner
from harness_lib.task import Task

COMMAND_NOT_FOUND = 127
# How what is recorded of a failed check begins.
FAILED, DID_NOT, PRINTED = "The check failed", "The check did not", "The check printed"
JUDGING = re.compile(r"\d+(-merged)?\.log")
Verdict = Literal["pass", "TEST_FAIL", "TIMEOUT", "ENV_SETUP"]


class Checked(NamedTuple):
    """What a check said: the verdict, one line why, the end of its output, and where all of it is.

    `gist` is what is most worth reading of the output, in a line; `without` names the variables that it was
    not given, or not whole.
    """

    verdict: Verdict
    message: str
    tail: str
    log: Path
    gist: str = ""
    without: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the task is done."""
        return self.verdict == "pass"

    def failure(self) -> str:
        """Return one line for the error log: why, and what the check said of it."""
        return f"{self.message} {self.gist}".strip()

    def excerpt(self) -> str:
        """Return what a person would read of the output, in several lines."""
        return excerpt.of(printed.ends_of(self.log)) if self.tail else ""


def safe_name(task_id: str) -> str:
    """Return `task_id` as one harmless component of a path or a ref name."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: "%" + found[0].encode().hex(), task_id)


def require_command(task: Task, index: int, cure: str | None = None) -> str:
    """Return the check's command; ConfigError, naming the field, if there is none.

    `cure` says how it gets one, where that is not for the caller to type.
    """
    command = task.validation.command
    if command is None or not command.strip():
        raise ConfigError(
            f"Missing validation.command (tasks[{index}]): {task.id} cannot be completed without a check.",
            f"It needs one: {cure or typed.give_check(task.id)}",
        )
    return command


def working_directory(ctx: Context, task: Task) -> Path:
    """Return where the check runs; ConfigError if `validation.cwd` is no directory of the work tree."""
    top = ctx.git.top
    wanted = (top / (task.validation.cwd or "")).resolve()
    if wanted != top and top not in wanted.parents:
        raise ConfigError(
            f"Task {task.id}: validation.cwd {task.validation.cwd!r} is outside of {top}.",
            f"Name a directory of the project: {typed.harness('edit', task.id, '--cwd', 'DIRECTORY')}",
        )
    if not wanted.is_dir():
        raise ConfigError(
            f"Task {task.id}: validation.cwd {task.validation.cwd!r} is no directory in {top}.",
            f"Name a directory of the project: {typed.harness('edit', task.id, '--cwd', 'DIRECTORY')}",
        )
    return wanted


def log_directory(ctx: Context, task: Task) -> Path:
    """Return where the output of the task's checks goes."""
    return ctx.root.logs / safe_name(task.id)


def run_check(
    ctx: Context,
    task: Task,
    command: str,
    *,
    log_name: str,
    on_tick: Callable[[], bool] | None = None,
    tick: float = 60.0,
) -> Checked:
    """Run the check once, or twice with `harness-init.sh` between if its command is not there.

    The full output goes to `.harness/logs/<task>/<log_name>.log`.
    """
    cwd = working_directory(ctx, task)
    log = log_directory(ctx, task) / f"{log_name}.log"
    checked = _once(ctx, task, command, cwd, log, on_tick, tick)
    if checked.verdict == "ENV_SETUP" and init_script.exists(ctx):
        init_script.run_once(ctx)
        checked = _once(ctx, task, command, cwd, log, on_tick, tick)
    return checked


def _once(
    ctx: Context,
    task: Task,
    command: str,
    cwd: Path,
    log: Path,
    on_tick: Callable[[], bool] | None,
    tick: float,
) -> Checked:
    env, without = check_env.cleaned(ctx.env, ctx.git.top)
    missing = runner.missing_command(command, cwd=cwd, env=env)
    if missing:
        where = " (not looked for in the work tree)" if "PATH" in without else ""
        return Checked("ENV_SETUP", f"Command not found: {missing}{where}.", "", log, without=without)
    finished = runner.run(
        command,
        cwd=cwd,
        log=log,
        timeout=float(task.validation.timeout_seconds),
        env={**env, ownership.CHECKED: task.id},
        on_tick=on_tick,
        tick=tick,
        clock=ctx.clock,
    )
    return _judge(finished, task, log)._replace(without=without)


def _judge(finished: runner.Finished, task: Task, log: Path) -> Checked:
    if finished.ok:
        return Checked("pass", f"The check passed in {finished.seconds:.1f} s.", finished.tail, log)
    verdict, message = _blame(finished, task)
    return Checked(verdict, message, finished.tail, log, excerpt.in_a_line(printed.ends_of(log)))


def _blame(finished: runner.Finished, task: Task) -> tuple[Verdict, str]:
    if finished.timed_out:
        return "TIMEOUT", f"{DID_NOT} end within {task.validation.timeout_seconds} s."
    if finished.too_loud:
        return "TEST_FAIL", f"{PRINTED} without end and was stopped."
    if finished.returncode == COMMAND_NOT_FOUND:
        return "ENV_SETUP", "The check ended with 127: a command was not found."
    return "TEST_FAIL", f"{FAILED} with exit code {finished.returncode}."


def failed_logs(ctx: Context, task: Task) -> list[Path]:
    """Return the logs of the checks that have judged attempts at `task`, the last one first.

    Not those of a person's `validate`, of cleanups and of agents.
    """
    found = []
    for path in listing.matching(log_directory(ctx, task), "*.log"):
        # `.harness/` may be deleted at any time.
        with suppress(FileNotFoundError):
            if JUDGING.fullmatch(path.name):
                found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found, reverse=True)]


def last_excerpt(ctx: Context, task: Task) -> tuple[str, Path] | None:
    """Return what a person would read of the check that `task` has failed last, and where all of it is.

    None where the last failure was no check's, or its log is gone.
    """
    told = task.handback.reason if task.handback else (task.error_log or ("",))[-1]
    if not any(words in told for words in (FAILED, DID_NOT, PRINTED)):
        return None
    log = next(iter(failed_logs(ctx, task)), None)
    text = excerpt.of(printed.ends_of(log)) if log else ""
    return (text, log) if log and text else None
