"""`harness finish`: run the check, and complete the task or roll the attempt back."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from harness_lib import typed
from harness_lib.attempts import (
    baseline,
    check,
    complete,
    evaluate,
    interrupted,
    outcome,
    publish,
    rescue_refs,
    rollback,
    target_branch,
)
from harness_lib.checks import Checked
from harness_lib.core import lifecycle, ownership, quoting, stops
from harness_lib.core.context import Context, Merging, Reply
from harness_lib.errors import CheckEditedError, Exit, UsageError
from harness_lib.runs import settings
from harness_lib.system import flock
from harness_lib.system.git import trees
from harness_lib.system.processes import runner
from harness_lib.task import Task
from harness_lib.text import some_quoted

SUMMARY = "run the check: commit and complete, or roll back"
EXAMPLE = "harness finish task-001"
HELP_ORDER = 130


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the task (default: the one you hold)")
    parser.add_argument(
        "--merge",
        choices=("push", "branch", "pull-request"),
        help="for a list that machines share: push the work to the branch (default) or to harness/BRANCH, or "
        "have others merge it",
    )
    parser.add_argument(
        "--merge-command", metavar="CMD", help="opens a pull request (default: gh or glab, as installed)"
    )
    parser.add_argument(
        "--already-done",
        action="store_true",
        help="there was nothing to do: the check passes, and no file was changed",
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    """Run the check of the held task: commit and complete it, or rescue the attempt and roll it back.

    `--already-done`: the caller says that no change was needed; a failed check does not end the attempt.
    Exit 0 completed, 1 the check failed (or the attempt changed its inputs). An error counts no attempt, and
    halts the session if only a human can resolve it.
    """
    for _ in range(outcome.EDITS):
        # Once the user has edited the check while it ran, the new one decides.
        with suppress(CheckEditedError):
            return _end(ctx, args)
    return _end(ctx, args)


def _end(ctx: Context, args: Namespace) -> Reply:
    questions = ctx.store.ask_to_change()
    held = ownership.require(questions, args.id, ctx)
    if args.already_done:
        _require_unchanged(ctx, held)
    if ctx.shared and held.gate and held.target is None:
        ctx.merging = _merging(ctx, args)
    elif args.merge or args.merge_command:
        raise UsageError(
            "No other machine shares this list, so finish commits to your branch and pushes nothing.",
            f"To have it merged by others: {typed.harness('run', '--merge', args.merge or 'pull-request')}",
        )
    with _alone(ctx, held) as held, lifecycle.halting_on_error(ctx, held.id):
        if held.status != "in_progress":
            return _reply(ctx, outcome.Ended(held, None), None)
        # A `finish` that was killed has left its check running.
        runner.end_all(check.log_directory(ctx, held), logs="[0-9]*")
        if held.intent:
            return _reply(ctx, interrupted.resume(ctx, held), None)
        evaluation = evaluate.evaluate(ctx, questions, held)
        # A database then uses its connection for what follows.
        del questions
        if args.already_done:
            if not evaluation.checked.passed:
                return _not_done_already(ctx, held, evaluation.checked)
            said = (*evaluation.said, evaluate.SAID_TO_BE_DONE)
            evaluation = evaluation._replace(said=said, done_as="already_done")
        if evaluation.checked.passed:
            ended = complete.complete(ctx, held, evaluation)
        else:
            ended = rollback.roll_back(ctx, held, evaluation.verdict())
    return _reply(ctx, ended, evaluation.checked)


@contextmanager
def _alone(ctx: Context, task: Task) -> Iterator[Task]:
    """Wait for another `finish` of `task`, which a client may have put into the background; yield it anew.

    That one may have ended the attempt. Raises LeaseLostError if the task is not the caller's any more.
    """
    place = check.log_directory(ctx, task) / "finish.lock"
    with flock.attempt(place, make=True) as is_free:
        if is_free:
            yield task
            return
    ctx.busy(f"waiting for the finish of {task.id} that runs already …")
    with flock.alone(place):
        questions = ctx.store.ask_now()
        current = questions.task(task.id)
        is_ended = current and current.fence == task.fence and current.status in ("completed", "failed")
        yield current if current and is_ended else outcome.require_claim(questions, task)


def _merging(ctx: Context, args: Namespace) -> Merging:
    """Return where the finished work of a chat goes, as typed or as the user's settings say."""
    given = {"merge": args.merge, "merge-command": args.merge_command}
    value = {name: setting.value for name, setting in settings.effective(ctx, given).items() if name in given}
    if value["merge"] != "pull-request" and args.merge_command:
        raise UsageError(
            "--merge-command opens a pull request, and this work is pushed to a branch.",
            f"Add to it: {typed.harness('finish', '--merge', 'pull-request')}",
        )
    if value["merge"] not in ("branch", "pull-request"):
        return ctx.merging
    return publish.of(ctx, target_branch.current(ctx.git), value["merge"], value["merge-command"] or "")


def _require_unchanged(ctx: Context, task: Task) -> None:
    """Raise UsageError if the attempt at `task` has changed a file."""
    head, base = ctx.git.head(), ctx.git.commit_called(task.started_at_commit)
    if head is None or base is None:
        return
    tree = ctx.capture()
    changed = trees.changed(ctx.git, base, outcome.commit_object(ctx, head, task, tree))
    if changed:
        raise UsageError(
            f"{task.id} was not done already: {some_quoted(changed)} changed.",
            f"If that is its work, type: {typed.harness('finish', task.id)}; if not, take it back first.",
        )


def _not_done_already(ctx: Context, held: Task, checked: Checked) -> Reply:
    lines = [f"{held.id} is not done already. {checked.message} No attempt was counted."]
    if checked.tail:
        lines += ["what the check said:", *quoting.quoted(checked.excerpt(), str(checked.log))]
    return Reply(
        "\n".join(lines),
        exit=Exit.CHECK_FAILED,
        session=ctx.session.number,
        task=held,
        next=ownership.finish_command(ctx, held),
        extra={"verdict": checked.verdict, "check_log": str(checked.log)},
    )


def _reply(ctx: Context, ended: outcome.Ended, checked: Checked | None) -> Reply:
    task = ended.task
    extra: dict[str, object] = {"rescue": ended.rescue}
    if checked:
        extra.update(verdict=checked.verdict, tail=checked.tail, check_log=str(checked.log))
    if task.status == "in_progress":
        if task.halt is None:
            return _sent_back(ctx, ended)
        raise complete.refusal(task)
    changed: list[str] = []
    is_good = True
    if task.halt_kind == "MERGE":
        task = ownership.require_task(ctx.ask(), task.id)
        lines = [f"{task.id} is not merged yet. {task.halt}"]
    elif task.status == "completed":
        lines = [outcome.words_of_completed(ended)]
    else:
        lines, is_good = _rolled_back(task, ended, checked), False
        changed = [f"{task.id}: the attempt {quoting.touched(task.touched)}"] if task.touched else []
    then = stops.after_attempt(ctx, ended.stop)
    return Reply(
        "\n".join(filter(None, (*lines, then.words))),
        exit=Exit.DONE if is_good else Exit.CHECK_FAILED,
        session=ctx.session.number,
        task=task,
        stop=ended.stop,
        next=then.next,
        warnings=(*changed, *ended.said, *baseline.left(ctx, task.id)),
        extra=extra,
    )


def _sent_back(ctx: Context, ended: outcome.Ended) -> Reply:
    task = ended.task
    message = f"{task.id} is not done. {' '.join(ended.warnings)} No attempt was counted."
    return Reply(
        message,
        exit=Exit.CHECK_FAILED,
        session=ctx.session.number,
        task=task,
        next=typed.harness("finish", task.id),
    )


def _rolled_back(task: Task, ended: outcome.Ended, checked: Checked | None) -> list[str]:
    why = checked.message if checked else "The attempt failed."
    lines = [f"{task.id} is not done. {why}"]
    if checked and checked.tail:
        lines += ["what the check said:", *quoting.quoted(checked.excerpt(), str(checked.log))]
        lines.append(f"all that it said: {checked.log}")
    if checked and checked.without:
        lines.append(f"the check ran without what could turn it: {', '.join(checked.without)}")
    undone = "rolled back" if ended.rolled_back else "left as it is"
    lines.append(f"{undone}; attempts used: {task.attempts} of {task.max_attempts}")
    if ended.rescue:
        lines.append(f"the work is kept: {rescue_refs.show_command(ended.rescue)}")
    if task.error_log:
        lines.append(f"recorded: {quoting.one_line(task.error_log[-1])}")
    return lines
