"""Run a task's check, the objective answer to "is it done?", and renew its claim meanwhile.

A held-out check runs on a clean checkout; the agent learns only whether it passed. Its files are in the
checkout while it runs. Its output and result go to the data directory.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from harness_lib import timestamps, typed
from harness_lib.attempts import outcome
from harness_lib.checks import check_of
from harness_lib.checks.protocol import UNWATCHED, Checked, Watch, Worktree
from harness_lib.checks.shell import ShellCheck
from harness_lib.checks.shell_run import DID_NOT, FAILED, PRINTED
from harness_lib.core import held_out, ownership, project, quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import (
    AwayError,
    ConfigError,
    EnvSetupError,
    HeldError,
    LeaseLostError,
    StateUnreadableError,
)
from harness_lib.rules import rechecks, runners, transitions
from harness_lib.state.api import Questions
from harness_lib.system import fs
from harness_lib.system.files import printed
from harness_lib.system.place import roots
from harness_lib.task import Task

# The logs of the checks of attempts: not of the user's `validate`, of cleanups or of agents.
JUDGING = re.compile(r"\d+(-merged)?\.log")


def safe_name(task_id: str) -> str:
    """Return `task_id` as one harmless component of a path or a ref name."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: "%" + match[0].encode().hex(), task_id)


def require_check(ctx: Context, questions: Questions, task: Task) -> None:
    """Raise ConfigError, naming the field, if `task` has no check."""
    if not check_of(task).is_given:
        field = f"validation.command (tasks[{questions.position(task.id)}])"
        # What a run reports is read by the user.
        cure = typed.give_check(task.id) if ctx.target else ownership.give_check(ctx, task)
        raise ConfigError(
            f"Missing {field}: {task.id} cannot be completed without a check.", f"It needs one: {cure}"
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
    marks = {ownership.CHECKED: task.id}
    return check_of(task).run(Worktree(ctx.git.top, ctx.env, log, ctx.clock, marks, watch))


def last_excerpt(ctx: Context, task: Task) -> tuple[str, Path] | None:
    """Return an excerpt of the check that `task` failed last, and the path of the whole log.

    None if the last failure was not a check's, or its log is gone.
    """
    reason = task.handback.reason if task.handback else (task.error_log or ("",))[-1]
    if not any(words in reason for words in (FAILED, DID_NOT, PRINTED)):
        return None
    logs = []
    for path in fs.matching(log_directory(ctx, task), "*.log"):
        # `.harness/` may be deleted at any time.
        with suppress(FileNotFoundError):
            if JUDGING.fullmatch(path.name):
                logs.append((path.stat().st_mtime_ns, path))
    log = max(logs)[1] if logs else None
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
        lambda watch: run_check(ctx, task, log_name=name, watch=watch),
    )


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


class Renewals:
    """Renews the claim of `task` between short steps, which do so themselves only if they last."""

    def __init__(self, ctx: Context, task: Task) -> None:
        self._ctx, self._task = ctx, task
        self._last = ctx.clock.monotonic()

    def when_due(self) -> bool:
        """Renew the claim if that is due; return whether it was. Raises LeaseLostError."""
        now = self._ctx.clock.monotonic()
        is_due = now - self._last >= renewal_seconds(self._ctx)
        if is_due:
            self._last = now
            renew(self._ctx, self._task)
        return is_due


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
        with ctx.store.transaction("tasks") as tx:
            current = outcome.require_claim(tx, task)
            tx.replace(transitions.renew(current, now=tx.now, lease_seconds=ctx.lease_seconds))


HELD_OUT_FAILED = "A held-out check failed"
HELD_OUT_NOT_RUN = "A held-out check did not"
NAMED = 10


def run_in(clean: Context, task: Task, suffix: str, watch: Watch = UNWATCHED) -> Checked:
    """Run the held-out check of `task` in the clean checkout `clean`; `suffix` ends the name of its log.

    Raises ConfigError (not on this machine), EnvSetupError (it cannot run here).
    """
    material = held_out.load(clean, task)
    assert material is not None, f"BUG: {task.id} has no held-out check."
    assert task.validation.hidden is not None
    place = held_out.directory(clean, task.validation.hidden)
    log = place / f"{safe_name(task.id)}{suffix}.log"
    asked = task.validation
    clean.busy(f"running the held-out check of {task.id} …")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="run-", dir=place)))
        try:
            for number, file in enumerate(material.files):
                stack.enter_context(_placed(clean.git.top, file, scratch / str(number)))
        except (FileExistsError, NotADirectoryError) as error:
            checked = Checked("TEST_FAIL", f"Its files cannot be put in place: {error}.", "", log)
        else:
            shell = ShellCheck(task.id, _command(material, scratch), asked.cwd, asked.timeout_seconds)
            marks = {ownership.CHECKED: task.id}
            checked = shell.run(Worktree(clean.git.top, clean.env, log, clean.clock, marks, watch))
    at = timestamps.render(clean.clock.now())
    held_out.tell(clean, task, f"{at}, {log.stem}: {checked.message}", checked.excerpt(), log)
    return _told(clean, task, checked)


def _command(material: held_out.Material, scratch: Path) -> str:
    if material.script is None:
        return material.command
    script = scratch / material.script.path
    fs.write(script, material.script.content, durable=False, mode=0o700)
    return typed.word(script)


@contextmanager
def _placed(top: Path, file: held_out.Placed, aside: Path) -> Iterator[None]:
    """Put `file` into the checkout at `top`, and restore what was there, kept in `aside`, afterwards.

    Raises FileExistsError or NotADirectoryError if something else is in the way.
    """
    target = top / file.path
    if not target.parent.resolve().is_relative_to(top.resolve()):
        raise NotADirectoryError(f"{target.parent} leads out of the checkout")
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        target.rename(aside)
    try:
        fs.write(target, file.content, durable=False, mode=file.mode)
        yield
    finally:
        if target.is_dir() and not target.is_symlink():
            fs.remove_tree(target)
        target.unlink(missing_ok=True)
        if os.path.lexists(aside):
            aside.rename(target)


def _told(ctx: Context, task: Task, checked: Checked) -> Checked:
    """Return what the agent may know of `checked`: the result without its output."""
    if checked.verdict == "ENV_SETUP":
        show = typed.harness("show", task.id)
        raise EnvSetupError(
            f"The held-out check of {task.id} cannot run here.", f"The user sees why, in a terminal: {show}"
        )
    nowhere = log_directory(ctx, task)
    if checked.passed:
        return Checked("pass", checked.message, "", nowhere, seconds=checked.seconds)
    if checked.verdict == "TIMEOUT":
        message = f"{HELD_OUT_NOT_RUN} end within {task.validation.timeout_seconds} s."
        return Checked("TIMEOUT", message, "", nowhere, held_out=True)
    failed = runners.failures(printed.ends_of(checked.log)) if task.validation.hidden_names else []
    names = quoting.named([each.name for each in failed], NAMED, quoting.PATH_LENGTH)
    message = f"{HELD_OUT_FAILED}: {names}." if names else f"{HELD_OUT_FAILED}."
    return Checked("TEST_FAIL", message, "", nowhere, held_out=True)
