"""Run a check before the first agent works: one that passes already says nothing about the work.

What a check said of some content is remembered by command, directory and tree, as long as the worker lives.
"""

from __future__ import annotations

from harness_lib.attempts import leased_check, outcome, recheck
from harness_lib.checks.checked import Checked
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, EnvSetupError
from harness_lib.rules import rechecks
from harness_lib.state.api import Questions
from harness_lib.system.git import snapshot
from harness_lib.task import DoneAs, Task

# A check that takes longer is not run again to find out whether it is flaky.
SHORT_SECONDS = 120.0
PASSED_BEFORE = "had passed its check before any work"
ALREADY_DONE = "was done already: it had passed its check before any work, and nothing was changed"
SAID_TO_BE_DONE = "was done already, as its agent says: its check passes, and nothing was changed"
FLAKY = "is flaky: its check failed and passed on the same content"


def passes(ctx: Context, task: Task, known: leased_check.Known) -> bool | None:
    """Return whether the check of `task` passes in the clean work tree; None where it cannot run there.

    What the check leaves behind is removed. Raises LeaseLostError.
    """
    began = snapshot.capture(ctx.git)
    key = (rechecks.key(task), began)
    if key not in known:
        ctx.busy(f"checking {task.id} before any work …")
        try:
            known[key] = leased_check.run(ctx, task, suffix="-before")
        except (ConfigError, EnvSetupError):
            return None
        finally:
            recheck.put_back(ctx.git, began)
    return None if known[key].verdict == "ENV_SETUP" else known[key].passed


def passed_for(questions: Questions, task: Task) -> Task | None:
    """Return a completed task whose check, the same as that of `task`, has passed where `task` begins."""
    at = task.started_at_commit
    return next(
        (
            other
            for other in questions.search("completed")
            if rechecks.key(other) == rechecks.key(task)
            and rechecks.can_be_rechecked(other)
            and (
                (other.recheck.passed and other.recheck.commit == at)
                if other.recheck
                else other.completed_commit == at
            )
        ),
        None,
    )


def is_worth_repeating(checked: Checked) -> bool:
    """Return whether a failed check, which passed before any work, is short enough to run once more."""
    return checked.verdict == "TEST_FAIL" and not checked.held_out and checked.seconds < SHORT_SECONDS


def note(ctx: Context, task: Task, done_as: DoneAs) -> Task:
    """Record how the task will have been completed, if it is now. Raises LeaseLostError."""
    with ctx.store.transaction() as tx:
        noted = outcome.require_claim(tx, task)._replace(outcome=done_as)
        tx.replace(noted)
    return noted
