"""`harness validate`: run checks.

In the caller's work tree and for a range of commits nothing is recorded, neither in the list nor in its log;
the final check records what each check says of what is committed.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import check, committed
from harness_lib.checks import Checked, check_of
from harness_lib.core import ownership, quoting, rechecked, stops, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import ConfigError, EnvSetupError, Exit, UntrustedTaskError, UsageError
from harness_lib.rules import attempts, rechecks
from harness_lib.runs import next_step
from harness_lib.system import flock
from harness_lib.system.git import trees
from harness_lib.task import Task

SUMMARY = "run checks without changing a task; --committed records their results on a clean checkout"
EXAMPLE = "harness validate task-001"
HELP_ORDER = 430

SHOWN = 20
LINE_LENGTH = 300
NO_CHECK = "no check"
NOT_TRUSTED = "not trusted"
SHORT = 12


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the task")
    parser.add_argument("--all", action="store_true", help="every task, the completed ones too")
    parser.add_argument(
        "--committed",
        action="store_true",
        help="with --all, the final check: run the checks of all completed tasks on a clean checkout of the "
        "last commit, and record the results; for an agent it ends after 90 seconds, between two checks, "
        "and prints the command that goes on",
    )
    parser.add_argument(
        "--range",
        metavar="A..B",
        help="with --committed, for CI: the checks of the tasks completed in these commits run on a clean "
        "checkout of B, and nothing is recorded",
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    if not args.committed and args.range is None:
        return run(ctx, args.id, everything=args.all)
    if args.id is not None or not args.committed or not (args.all or args.range):
        raise UsageError(
            "--committed checks all completed tasks, or those of a range of commits.",
            "Type: harness validate --all --committed, or: harness validate --committed --range A..B",
        )
    return in_range(ctx, args.range) if args.range else final_check(ctx)


class Result(NamedTuple):
    """The result of one task's check; `verdict` is `pass`, a category, `no check` or `not trusted`."""

    task: Task
    verdict: str
    message: str
    checked: Checked | None = None

    @property
    def passed(self) -> bool:
        """Whether the check passed."""
        return self.verdict == "pass"


def run(ctx: Context, task_id: str | None, *, everything: bool) -> Reply:
    """Run the check of one task, or of `everything`, in the caller's work tree.

    Exit 0 if all pass, else 1. Raises UsageError, RefusedError (untrusted), and for a single task ConfigError
    (no check, or it cannot be run as it is written) and EnvSetupError (its command is not there).
    """
    questions = ctx.ask()
    if (task_id is None) is not everything:
        raise UsageError("Which check?", "Name one task, or take all: harness validate --all")
    tasks = questions.search() if task_id is None else (ownership.require_task(questions, task_id),)
    trust.require(ctx, questions)
    shown = typed.harness("show", task_id or ctx.env.get(ownership.SUPERVISED, ""))
    instead = f"Type the check itself; it is in: {shown}"
    ownership.refuse_in_sandbox(ctx, "harness validate", lambda: instead)
    before = ctx.capture()
    if task_id is not None:
        check.require_check(ctx, questions, tasks[0])
        results = [_single(ctx, tasks[0])]
    else:
        results = list(_all(ctx, tasks))
    after = ctx.capture()
    # Files that existed before, and are other ones now or gone.
    changed = [path for path, (old, _) in trees.changed(ctx.git, before, after).items() if old]
    return _reply(ctx, results, changed, single=task_id is not None)


def final_check(ctx: Context) -> Reply:
    """Run the checks of all completed tasks on a clean checkout of HEAD, and record the results.

    For an agent it ends between two checks when `committed.SLICE_SECONDS` are over, and names itself as what
    to type. Exit 1 if a check fails there at the end. Raises what `committed.run` does.
    """
    ownership.refuse_supervised(ctx, "validate --committed")
    # An unknown agent has a session, too.
    for_agent = ctx.agent or (not ctx.at_terminal and ctx.own_session(ctx.ask()))
    # Hooks look at the lock; that another check of this list has it is no matter here.
    with flock.attempt(ctx.root.logs / "finish.lock", make=True):
        done = committed.run(ctx, committed.SLICE_SECONDS if for_agent else None)
    tasks = [*filter(rechecks.can_be_rechecked, ctx.ask().search("completed"))]
    passed = [task for task in tasks if task.recheck and task.recheck.passed]
    where = f"on a clean checkout of {done.commit[:SHORT]}"
    extra = {"commit": done.commit, "checks": len(tasks), "left": done.left, "ran": len(done.found)}
    if done.left:
        ran = f"{len(tasks) - done.left} of {len(tasks)} checks of completed tasks have run {where}"
        lines = [f"{ran}; {done.left} are left.", *rechecked.red_lines(ctx.ask())]
        return Reply("\n".join(lines), next=rechecked.COMMAND, extra=extra)
    reason = committed.settle(ctx)
    # The same agent is told how to repair a red task.
    stop = None if reason == "recheck_failed" else reason
    questions = ctx.ask()
    then = stops.after_attempt(ctx, stop)
    said = f"{len(passed)} of {len(tasks)} checks of completed tasks pass {where}."
    return Reply(
        "\n".join(filter(None, (said, *rechecked.lines(ctx, questions), then.words))),
        exit=Exit.CHECK_FAILED if rechecked.red(ctx, tasks) else Exit.DONE,
        stop=stop,
        next=then.next if stop else next_step.of_list(ctx, questions),
        extra=extra,
    )


def in_range(ctx: Context, span: str) -> Reply:
    """Run the checks of the tasks completed in `span`, A..B, on a clean checkout of B; record nothing."""
    end, tasks = committed.in_range(ctx, span)
    if not tasks:
        return Reply(f"No task was completed in {span}.", next="harness status")
    with committed.at_end_of(ctx, end) as clean:
        results = list(_all(clean, tasks))
    return _reply(ctx, results, [], single=False)


def _single(ctx: Context, task: Task) -> Result:
    checked = _run(ctx, task)
    if checked.verdict == "ENV_SETUP":
        raise EnvSetupError(
            f"The check of {task.id} cannot run here. {checked.message}",
            f"Install it, or correct the check: {ownership.give_check(ctx, task)}",
        )
    return Result(task, checked.verdict, checked.message, checked)


def _all(ctx: Context, tasks: Sequence[Task]) -> Iterator[Result]:
    """Yield the result of each task's check; a check that several tasks share runs once.

    One whose commands are not trusted here does not run.
    """
    known: dict[rechecks.Key, Checked] = {}
    for task in tasks:
        if not check_of(task).is_given and (task.is_done or attempts.asks_a_person(task)):
            # A user has looked at it, or will.
            continue
        if not check_of(task).is_given:
            yield Result(task, NO_CHECK, ownership.give_check(ctx, task))
            continue
        key = rechecks.key(task)
        try:
            known[key] = known.get(key) or _run(ctx, task)
        except ConfigError as error:
            yield Result(task, "CONFIG", error.message)
        except UntrustedTaskError as error:
            yield Result(task, NOT_TRUSTED, f"{error.message} {error.hint}")
        else:
            yield Result(task, known[key].verdict, known[key].message, known[key])


def _run(ctx: Context, task: Task) -> Checked:
    ctx.busy(f"checking {task.id} …")
    return check.run_check(ctx, task, log_name="validate")


def _reply(ctx: Context, results: list[Result], changed: list[str], *, single: bool) -> Reply:
    bad = [each for each in results if not each.passed]
    lines = _lines_of_one(results[0]) if single else _lines_of_many(results, bad)
    warnings = []
    if changed:
        warnings.append(
            f"changed while checks ran, and left so: {quoting.named(changed, SHOWN, LINE_LENGTH)}"
        )
    return Reply(
        "\n".join(lines),
        exit=Exit.CHECK_FAILED if bad else Exit.DONE,
        task=results[0].task if single else None,
        next=_next(ctx, results, bad),
        warnings=tuple(warnings),
        extra={
            "passed": len(results) - len(bad),
            "not_passed": len(bad),
            "results": [
                {"id": each.task.id, "verdict": each.verdict, "message": each.message}
                for each in (bad or results)[:SHOWN]
            ],
            "changed": changed[:SHOWN],
        },
    )


def _lines_of_one(result: Result) -> list[str]:
    lines = [f"{result.task.id}: {result.message} Nothing was recorded."]
    if result.checked and not result.passed:
        lines += [f"  | {quoting.one_line(row, LINE_LENGTH)}" for row in _tail(result.checked, 20)]
        lines.append(f"all of its output: {result.checked.log}")
    return lines


def _lines_of_many(results: list[Result], bad: list[Result]) -> list[str]:
    lines = [f"{len(results) - len(bad)} of {len(results)} checks pass. Nothing was recorded."]
    for each in bad[:SHOWN]:
        lines.append(f"{each.verdict} {each.task.id}: {quoting.one_line(each.message, LINE_LENGTH)}")
        if each.checked:
            lines += [f"  | {quoting.one_line(row, LINE_LENGTH)}" for row in _tail(each.checked, 1)]
    if len(bad) > SHOWN:
        lines.append(f"… and {len(bad) - SHOWN} more that do not pass")
    return lines


def _tail(checked: Checked, count: int) -> list[str]:
    return [row for row in checked.tail.splitlines() if row.strip()][-count:]


def _next(ctx: Context, results: list[Result], bad: list[Result]) -> str:
    unchecked = next((each.task for each in bad if each.verdict == NO_CHECK), None)
    if (
        unchecked
        and all(each.verdict == NO_CHECK for each in bad)
        and not ownership.decides_on_caller(ctx, unchecked)
    ):
        return typed.give_check(unchecked.id)
    if bad:
        return typed.harness("show", bad[0].task.id)
    held = ctx.held(ctx.ask())
    return typed.harness("finish", held.id) if held and results else "harness status"
