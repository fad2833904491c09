"""Run a check before the first agent works: one that passes already proves nothing about the work.

Results are kept by command, directory and tree, as long as the worker lives.
"""

from __future__ import annotations

from functools import partial

from harness_lib.attempts import baseline, check, commit, committed, outcome, recheck, rescue_refs
from harness_lib.checks.protocol import Checked
from harness_lib.core import ownership, quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, EnvSetupError, HarnessError, HeldError, LeaseLostError
from harness_lib.rules import rechecks, runners, transitions
from harness_lib.rules.attempts import Halt
from harness_lib.system.files import printed
from harness_lib.system.git import snapshot
from harness_lib.task import Task
from harness_lib.text import counted, some

PASSED_BEFORE = "had passed its check before any work"
ALREADY_DONE = "was done already: it had passed its check before any work, and nothing was changed"
SAID_TO_BE_DONE = "was done already, as its agent says: its check passes, and nothing was changed"
RED_NAMED = 3
# An agent's shell ends a command after two minutes, so a longer check does not run again at its finish.
RED_SECONDS = 30
PASSES = "validation.red_first: the check passes before any work, so it proves nothing"


def before_work(ctx: Context, task: Task, known: check.Known) -> Checked | None:
    """Return the check of `task` in the clean work tree; None if there is none.

    Files that the check leaves behind are removed. Raises LeaseLostError.
    """
    base, has_untracked = task.started_at_commit, task.gate is None or task.gate.before is not None
    # A claim refuses changed files, and keeps the untracked ones: without those the content is the base's.
    began = snapshot.capture(ctx.git) if base is None or has_untracked else ctx.git.tree_of(base)
    key = (rechecks.key(task), began)
    if key not in known:
        ctx.busy(f"checking {task.id} before any work …")
        try:
            known[key] = check.run(ctx, task, suffix="-before")
        except (ConfigError, EnvSetupError):
            return None
        finally:
            recheck.put_back(ctx.git, began)
    return known[key]


def red_before(ctx: Context, task: Task, failed: Checked, known: check.Known) -> str:
    """Return a sentence that names which tests of the `failed` check were red before the attempt; "" if none.

    A short check runs for that on a clean checkout of what the attempt began with. Raises LeaseLostError.
    """
    base, names = task.started_at_commit, _failing(failed)
    if base is None or not names:
        return ""
    before = known.get((rechecks.key(task), ctx.git.tree_of(base)))
    if before is None and failed.seconds <= RED_SECONDS:
        asked = task.validation._replace(timeout_seconds=2 * RED_SECONDS)
        try:
            with committed.beside(ctx, base) as clean:
                ctx.busy(f"checking {task.id} as it was before the attempt …")
                before = check.run(clean, task._replace(validation=asked), suffix="-before", holder=task)
        except (ConfigError, EnvSetupError, HeldError):
            return ""
    failed_before = set(_failing(before)) if before else set()
    red = [name for name in names if name in failed_before]
    if not red:
        return ""
    which = some([quoting.one_line(name, quoting.PATH_LENGTH) for name in red], RED_NAMED)
    if len(red) == len(names):
        return f"Every test that fails was red before this attempt: {which}."
    return f"Of {counted(len(names), 'failing test')}, {len(red)} had been red before this attempt: {which}."


def _failing(checked: Checked) -> list[str]:
    """Return the names of the tests that a failed check names."""
    if checked.verdict != "TEST_FAIL" or checked.held_out:
        return []
    return list(dict.fromkeys(each.name for each in runners.failures(printed.ends_of(checked.log))))


def prove(ctx: Context, task: Task) -> Task:
    """Return the claimed `task`, ready to be worked on; its check has run if it asks for that.

    Raises ConfigError if the check passes, RefusedError (untrusted), EnvSetupError; the task is released
    then. Raises LeaseLostError if another worker has it.
    """
    if not task.validation.red_first:
        return task
    questions = ctx.store.ask()
    try:
        trust.require(ctx, questions)
        check.require_check(ctx, questions, task)
        checked = check.run(ctx, task, suffix="-red-first")
    except LeaseLostError:
        raise
    except HarnessError:
        _give_back(ctx, task, None)
        raise
    if checked.passed:
        _give_back(ctx, task, Halt("CONFIG", f"CONFIG: {PASSES}"))
        raise ConfigError(
            f"Task {task.id}: {PASSES}.",
            f"It needs a check that fails now: {ownership.give_check(ctx, task)}",
        )
    return _without_its_traces(ctx, task)


def _without_its_traces(ctx: Context, task: Task) -> Task:
    """Return `task` with files that the check left behind in its baseline: they are not its work."""
    base = task.started_at_commit
    assert base is not None, "BUG: a claim of harness without a base."
    assert task.gate is not None, "BUG: a claim of harness without a gate."
    warnings = commit.undo_check(ctx, task, base)
    before = baseline.keep_untracked(ctx, base, ctx.changes().untracked)[0]
    with ctx.store.transaction() as tx:
        tx.warnings += warnings
        ready = outcome.require_claim(tx, task)._replace(gate=task.gate._replace(before=before))
        tx.replace(ready)
    if before != task.gate.before:
        rescue_refs.drop_before(ctx.git, task)
    return ready


def _give_back(ctx: Context, task: Task, halt: Halt | None) -> None:
    # First of all: after a kill the attempt is recovered, and a task that is released must leave nothing
    # changed.
    base = task.started_at_commit
    warnings = commit.undo_check(ctx, task, base) if base else []
    with ctx.store.transaction() as tx:
        tx.warnings += warnings
        mine = outcome.require_claim(tx, task)
        begun = transitions.release(mine, now=tx.now, message=halt and halt.words)
        tx.replace(transitions.halt(transitions.fail(begun, now=tx.now), halt))
        tx.on_commit(partial(ownership.forget_claim, ctx, task))
    rescue_refs.drop_before(ctx.git, task)
