"""The reply with exit 9: why nothing is left to do, and the next command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.core import quoting, rechecked, sessions
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import Exit
from harness_lib.rules import rechecks, stats
from harness_lib.state.api import Questions
from harness_lib.task import Session, StopReason

SHOWN = 5
PERSON = "No task can be claimed until the user fixes the halted ones; waiting will not help."
EMPTY = "The list has no tasks yet."
CHECK_LEFT = "No task is left. Next, all checks run once more on a clean checkout:"
ADD = 'harness add "what is to be done" --validate "command that proves it"'


class Answer(NamedTuple):
    """The words for a stop reason, and the next command."""

    words: str
    next: str


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


def words(questions: Questions, reason: StopReason) -> str:
    """Return the sentence that says why no task of this list can be claimed."""
    if not questions.counts().total:
        return EMPTY
    if reason == "waiting" and questions.awaits_user():
        return PERSON
    return answer(reason).words


def then(questions: Questions, reason: StopReason) -> str:
    """Return the next command for `reason`."""
    red = rechecks.red(questions.search("completed")) if reason == "recheck_failed" else []
    return typed.harness("retry", red[0].id) if red else answer(reason).next


def after_attempt(ctx: Context, stop: StopReason | None) -> Answer:
    """Return the answer after an attempt, with "" if there is nothing to say."""
    questions = ctx.store.ask()
    if sessions.must_check(questions, ctx):
        return Answer(CHECK_LEFT, rechecked.COMMAND)
    if stop is None:
        return Answer("", "harness claim")
    line = f"stop: {stop}; {stats.render(questions.counts())}"
    if words(questions, stop) == PERSON:
        halted, show = _halted(questions)
        return Answer("\n".join([line, PERSON, *halted]), show)
    return Answer(line, then(questions, stop))


def reply(
    verb: str,
    questions: Questions,
    stop: StopReason | None,
    preface: tuple[str, ...] = (),
    extra: Mapping[str, object] | None = None,
) -> Reply:
    """Return the reply of `verb` for the reason `stop`, after the lines of `preface`."""
    reason: StopReason = stop or "done"
    counts, sentence = questions.counts(), words(questions, reason)
    go_on = then(questions, reason) if counts.total else ADD
    halted: list[str] = []
    if sentence == PERSON:
        halted, go_on = _halted(questions)
    if reason == "recheck_failed":
        halted = rechecked.red_lines(questions)
    return Reply(
        verb,
        "\n".join([*preface, sentence, *halted, stats.render(counts)]),
        exit=Exit.STOP,
        stop=reason,
        next=go_on,
        extra=extra or {},
    )


def final_check(
    verb: str,
    questions: Questions,
    session: Session,
    preface: Sequence[str] = (),
    extra: Mapping[str, object] | None = None,
) -> Reply:
    """Return the reply of `verb` if only the final check is left for `session`."""
    return Reply(
        verb,
        "\n".join([*preface, CHECK_LEFT, stats.render(questions.counts())]),
        exit=Exit.STOP,
        session=session.number,
        stop=questions.no_work(),
        next=rechecked.COMMAND,
        extra=extra or {},
    )


def _halted(questions: Questions) -> tuple[list[str], str]:
    """Return a line for each task that is blocked on a human, and the command that shows the first."""
    halted = questions.halted()
    lines = [
        f"  {task.id}: {quoting.one_line(task.halt or '', quoting.FAILURE_LENGTH)}" for task in halted[:SHOWN]
    ]
    more = [f"  and {len(halted) - SHOWN} more (harness status)"] if len(halted) > SHOWN else []
    return [*lines, *more], typed.harness("show", halted[0].id)
