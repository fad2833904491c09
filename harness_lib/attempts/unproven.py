"""Run the checks of tasks that somebody else's write has completed: completed if they pass, else pending.

No attempt is counted, and nothing is committed or rolled back: nobody knows whose work it would be.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_lib.attempts import check, committed, held_out_check
from harness_lib.checks import check_of
from harness_lib.checks.checked import Checked
from harness_lib.core import halts, quoting, trust_policy
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, EnvSetupError
from harness_lib.rules import transitions
from harness_lib.rules.selection import UNPROVEN
from harness_lib.state.api import Tx
from harness_lib.system.git import snapshot, trees
from harness_lib.system.locks import flock
from harness_lib.task import Session, Task

LOCK = "proving.lock"


def prove(ctx: Context, session: Session, *, waits: bool = False) -> tuple[str, ...]:
    """Run the check of every task that is unproven in the work tree of `ctx`; tell what came of it.

    One worker at a time does this, for all of them: the others go on, or, with `waits`, come after it.
    Raises RefusedError if the list's commands have not been trusted; then nothing is run or recorded.
    """
    tasks = ctx.store.ask().provable()
    if not tasks:
        return ()
    lock = ctx.root.private / LOCK
    with flock.alone(lock, make=True) if waits else flock.attempt(lock, make=True) as is_free:
        return () if is_free is False else tuple(_prove(ctx, session, tasks))


def _prove(ctx: Context, session: Session, tasks: Sequence[Task]) -> list[str]:
    lines: list[str] = []
    for known in tasks:
        questions = ctx.store.ask()
        task = questions.task(known.id)
        if task is None or task not in questions.provable():
            # Another worker has proven it meanwhile.
            continue
        with halts.halting_on_error(ctx, session, task.id):
            trust_policy.require(ctx, questions)
        passed, why = _check(ctx, task)
        head = ctx.git.head()
        with ctx.store.transaction() as tx:
            lines += _record(tx, session, task, head, why, passed=passed)
    return lines


def _check(ctx: Context, task: Task) -> tuple[bool, str]:
    """Return whether the check passes, and what it said."""
    asked = check_of(task)
    if not asked.is_given:
        return False, "it has no check"
    ctx.busy(f"checking {task.id} …")
    try:
        checked = check.run_check(ctx, task, log_name="unproven")
        if checked.passed and task.validation.hidden is not None:
            checked = _held_out(ctx, task)
    except (ConfigError, EnvSetupError) as error:
        return False, error.message.rstrip(".")
    if checked.passed:
        return (
            True,
            f"its check passes: {quoting.one_line(asked.text or '', quoting.FAILURE_LENGTH)}",
        )
    # It becomes a part of a sentence.
    return False, checked.failure().rstrip(".")


def _held_out(ctx: Context, task: Task) -> Checked:
    """Run the held-out check of `task` on what stands in the work tree."""
    git, head = ctx.git, ctx.git.head()
    message = f"harness: to prove {task.id}\n"
    content = trees.commit(git, snapshot.capture(git, ctx.keep_out), [head] if head else [], message)
    with committed.beside(ctx, content) as clean:
        return held_out_check.run_in(clean, task, "-unproven")


def _record(tx: Tx, session: Session, task: Task, head: str | None, why: str, *, passed: bool) -> list[str]:
    current = tx.task(task.id)
    if current is None or not transitions.may("confirm", current) or current.validation != task.validation:
        # Somebody was faster, or has changed it again: whoever comes next has it checked.
        return []
    tx.replace(
        transitions.confirm(current, now=tx.now, commit=head) if passed else transitions.doubt(current)
    )
    outcome = "completed" if passed else "pending again"
    text = f"{UNPROVEN}; {quoting.one_line(why, quoting.FAILURE_LENGTH)}; {outcome}"
    tx.log("WARN", text, session=session.number, task=task.id)
    return [f"{task.id}: {text}"]
