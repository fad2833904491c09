"""Say why no task can be claimed, and what to type then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.core import lifecycle, quoting, rechecked
from harness_lib.core.context import Context, Reply
from harness_lib.errors import Exit
from harness_lib.rules import rechecks, stats
from harness_lib.state.api import Questions
from harness_lib.task import Session, StopReason
from harness_lib.text import Strings, first

SHOWN = 5
PERSON = "No task can be claimed until the user fixes the halted ones; waiting will not help."
OTHERS = "Finished work waits until others have merged it; then type: harness run"
EMPTY = "The list has no tasks yet."
CHECK_LEFT = "No task is left. Next, all checks run once more on a clean checkout:"
ADD = 'harness add "what is to be done" --validate "command that proves it"'


class Answer(NamedTuple):
    """The words for a stop reason, the next command, and a line for each task that it is about."""

    words: str
    next: str | None
    tasks: Strings = ()


def answer(reason: StopReason) -> Answer:
    """Return the answer for `reason`, independent of the list."""
    match reason:
        case "done":
            return Answer("Every task is completed.", "harness status")
        case "recheck_failed":
            words = "Checks of completed tasks fail on a clean checkout of what is committed."
            return Answer(words, "harness status")
        case "blocked":
            words = "No task can run: each that is left failed for good, or depends on one that did."
            return Answer(words, "harness status")
        case "waiting":
            words = "No task can be claimed right now: others hold the rest."
            return Answer(words, "harness claim --wait 600")
        case "max_sessions":
            more = typed.harness("edit", rest="--max-sessions N")
            words = f"The list has reached its limit of sessions. The user can raise it: {more}"
            return Answer(words, "harness status")
        case "max_tasks_per_session":
            return Answer("This session has reached its limit of tasks.", "harness stop")


def of_list(questions: Questions, reason: StopReason) -> Answer:
    """Return the answer for `reason` that fits this list."""
    if not questions.counts().total:
        return Answer(EMPTY, ADD)
    if reason == "waiting" and questions.awaits_user():
        halted = questions.halted()
        rows = [f"{task.id}: {quoting.one_line(task.halt or '')}" for task in halted]
        lines = tuple(f"  {row}" for row in first(rows, SHOWN, " (harness status)"))
        words = OTHERS if {task.halt_kind for task in halted} == {"MERGE"} else PERSON
        return Answer(words, typed.harness("show", halted[0].id), lines)
    red = rechecks.red(questions.search("completed")) if reason == "recheck_failed" else []
    if red:
        retry = typed.harness("retry", red[0].id)
        return Answer(answer(reason).words, retry, tuple(rechecked.red_lines(questions)))
    return answer(reason)


def after_attempt(ctx: Context, stop: StopReason | None) -> Answer:
    """Return the answer after an attempt, with "" if there is nothing to say."""
    questions = ctx.ask()
    if lifecycle.must_check(questions, ctx):
        return Answer(CHECK_LEFT, rechecked.COMMAND)
    if stop is None:
        return Answer("", "harness claim")
    found, line = of_list(questions, stop), f"stop: {stop}; {stats.render(questions.counts())}"
    if found.words in (PERSON, OTHERS):
        line = "\n".join([line, found.words, *found.tasks])
    return Answer(line, found.next)


def reply(
    questions: Questions,
    stop: StopReason | None,
    preface: Strings = (),
    extra: Mapping[str, object] | None = None,
) -> Reply:
    """Return the reply of a verb for the reason `stop`, after the lines of `preface`."""
    reason: StopReason = stop or "done"
    found = of_list(questions, reason)
    return Reply(
        "\n".join([*preface, found.words, *found.tasks, stats.render(questions.counts())]),
        exit=Exit.STOP,
        stop=reason,
        next=found.next,
        extra=extra or {},
    )


def untrusted(questions: Questions, task_ids: Sequence[str], said: Sequence[str]) -> Reply:
    """Return the reply of a verb if all that could be taken waits for the user's trust, as `said` tells."""
    return Reply(
        "\n".join([*said, stats.render(questions.counts())]),
        exit=Exit.REFUSED,
        stop="waiting",
        next="harness check",
        extra={"untrusted": list(task_ids)},
    )


def final_check(
    questions: Questions,
    session: Session,
    preface: Sequence[str] = (),
    extra: Mapping[str, object] | None = None,
) -> Reply:
    """Return the reply of a verb if only the final check is left for `session`."""
    return Reply(
        "\n".join([*preface, CHECK_LEFT, stats.render(questions.counts())]),
        exit=Exit.STOP,
        session=session.number,
        stop=questions.no_work(),
        next=rechecked.COMMAND,
        extra=extra or {},
    )
