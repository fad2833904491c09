"""What a hook tells whoever begins: how the list stands, what was interrupted and what failed."""

from __future__ import annotations

from harness_lib.hookio import messages, policy
from harness_lib.task import Task
from tests.hookio.situations import DONE, MINE, PENDING, TORN, by_the_prose, make_situation, payload, said


def test_the_start_says_what_was_interrupted_and_what_failed() -> None:
    failed = Task("f", status="failed", attempts=1, error_log=("[TEST_FAIL] 1 != 2",))
    text = policy.session_start(make_situation(MINE, failed, DONE, sessions=()), payload()).text

    assert "1 of 3 tasks are completed, 1 in progress, 1 failed with attempts left." in text
    assert 'Interrupted: a "Title".' in text
    assert 'Last failure: f "[TEST_FAIL] 1 != 2"' in text
    assert text.splitlines()[-2] == "If you are asked to work on it, type: HARNESS start"


def test_whoever_begins_is_told_how_the_list_stands() -> None:
    mine, gone = make_situation(MINE), make_situation(MINE, sessions=())

    assert said(policy.session_start(mine, payload())) == (
        "context", messages.start(mine, policy.held(mine)), "", "", False, False
    )  # fmt: skip
    assert policy.session_start(gone, payload()).text == messages.start(gone, ())
    # Of a list that the prose made, what is at work is told once, as interrupted.
    prose = by_the_prose(MINE, PENDING._replace(id="p"))
    assert policy.session_start(prose, payload()).text == messages.start(prose, ())
    assert "In progress" not in messages.start(prose, ())
    assert policy.session_start(TORN, payload()).text == messages.repair(TORN)
    assert policy.session_start(make_situation(PENDING, trouble="torn"), payload()).kind == "context"
    assert "cannot be read" in policy.session_start(make_situation(PENDING, trouble="torn"), payload()).text
