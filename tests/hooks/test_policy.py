"""The table of docs/design.md, "The Stop hook", row by row: pure, without a list on disk."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from harness_lib.hookio import policy
from harness_lib.hookio.payload import Payload
from harness_lib.hookio.situation import Answer, Situation, Tally
from harness_lib.state import summary
from harness_lib.task import Session, SessionConfig, State, Task

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
LEASE = "2026-01-01T00:30:00Z"
SESSION = Session(3, "me", "host", agent_session_id="id-me")
PENDING = Task("a", "Title")
MINE = Task("a", "Title", status="in_progress", claimed_by="me", lease_expires_at=LEASE)
THEIRS = Task("b", status="in_progress", claimed_by="other", lease_expires_at=LEASE)
DONE = Task("d", status="completed")


def situation(*tasks: Task, mine: bool = True, **fields: Any) -> Situation:
    """Return how `tasks` look to the worker `me`, whose session is open unless said otherwise."""
    given: dict[str, Any] = {
        name: fields.pop(name) for name in ("tally", "trouble", "workers") if name in fields
    }
    mode = fields.pop("mode", "exclusive")
    fields.setdefault("sessions", (SESSION,))
    state = State(tasks=tasks, session_config=SessionConfig(mode), **fields)
    digest = summary.build(state, NOW, [])
    own = [each for each in digest["sessions"] or () if mine and each["worker"] == "me"]
    given.setdefault("workers", ["me"] if own else [])
    return Situation(digest, mine=own, program="HARNESS", **given)


def by_the_prose(
    *tasks: Task, most_sessions: int = 0, most_tasks: int = 0, attempted: int = 0, **fields: Any
) -> Situation:
    """Return how a list that no command of ours has touched looks to the worker `me`."""
    mode = fields.pop("mode", "exclusive")
    config = SessionConfig(mode, max_tasks_per_session=most_tasks, max_sessions=most_sessions)
    state = State(tasks=tasks, session_config=config, session_count=fields.pop("session_count", 1))
    fields.setdefault("workers", ["me"])
    now = Situation(summary.build(state, NOW, []), program="HARNESS", **fields)
    now.attempted = attempted
    return now


def payload(event: str = "Stop", /, **fields: object) -> Payload:
    return Payload(event, fields)


def stop(now: Situation, **fields: object) -> Answer:
    return policy.stop(now, payload("Stop", **fields))


HALTED = Session(3, "me", "host", agent_session_id="id-me", halt="CONFIG: no check")

STOP: dict[str, tuple[Situation, dict[str, object], str]] = {
    "no session is open": (situation(PENDING, sessions=()), {}, "allow"),
    "another agent's session is open": (situation(PENDING, mine=False), {}, "allow"),
    "my session is open": (situation(PENDING), {}, "block"),
    "the prose made the list": (situation(PENDING, sessions=None), {}, "block"),
    "the prose works on a task": (situation(THEIRS, sessions=None), {}, "block"),
    "a subagent runs": (
        situation(PENDING),
        {"background_tasks": [{"status": "completed"}, {"type": "subagent", "status": "running"}]},
        "allow",
    ),
    "a monitor runs": (
        situation(PENDING),
        {"background_tasks": [{"type": "monitor", "status": "running"}]},
        "allow",
    ),
    "a server runs": (
        situation(PENDING),
        {"background_tasks": [{"type": "shell", "status": "running"}]},
        "block",
    ),
    "what nobody knows runs": (
        situation(PENDING),
        {"background_tasks": [{"type": "dream", "status": "running"}]},
        "allow",
    ),
    "what nobody knows runs still": (
        situation(PENDING, tally=Tally(waited=True)),
        {"background_tasks": [{"type": "dream", "status": "running"}]},
        "block",
    ),
    "background work has ended": (
        situation(PENDING),
        {"background_tasks": [{"status": "completed"}]},
        "block",
    ),
    "a subagent of Copilot stops": (situation(PENDING), {"parent_agent_id": "p"}, "allow"),
    "my session is halted": (situation(PENDING, sessions=(HALTED,)), {}, "allow"),
    "my task is halted": (
        situation(Task("a", status="in_progress", claimed_by="me", halt="CONFIG"), PENDING),
        {},
        "allow",
    ),
    "what is left is halted": (situation(Task("a", halt="CONFIG: x")), {}, "allow"),
    "another task is halted": (situation(Task("c", halt="CONFIG: x"), PENDING), {}, "block"),
    "I hold a task": (situation(MINE), {}, "block"),
    "others hold the rest": (situation(THEIRS, mode="concurrent"), {}, "allow"),
    "others hold one, another waits": (situation(THEIRS, PENDING, mode="concurrent"), {}, "block"),
    "a failed task has attempts left": (situation(Task("a", status="failed", attempts=1)), {}, "block"),
    "a task can never run": (situation(Task("a", depends_on=("a",))), {}, "block"),
    "seven blocks already": (
        situation(PENDING, tally=Tally("3:0 ", 7)),
        {"stop_hook_active": True},
        "block",
    ),
    "eight blocks already": (situation(PENDING, tally=Tally("3:0 ", 8)), {}, "allow"),
    "eight blocks before an attempt ended": (situation(PENDING, tally=Tally("3:1 ", 8)), {}, "block"),
    "eight blocks before I took a task": (situation(MINE, tally=Tally("3:0 ", 8)), {}, "block"),
    "the prose works on another's task": (by_the_prose(THEIRS, mode="concurrent"), {}, "allow"),
    "the prose works on my task": (by_the_prose(MINE, mode="concurrent"), {}, "block"),
    "the prose works on nobody's task": (
        by_the_prose(Task("a", status="in_progress"), mode="concurrent"),
        {},
        "block",
    ),
    "the prose works, nobody knows who I am": (
        by_the_prose(THEIRS, mode="concurrent", workers=[]),
        {},
        "block",
    ),
    "the prose has had its sessions": (by_the_prose(PENDING, session_count=2, most_sessions=2), {}, "allow"),
    "the prose has a session left": (by_the_prose(PENDING, session_count=1, most_sessions=2), {}, "block"),
    "the prose has had its tasks": (by_the_prose(PENDING, most_tasks=2, attempted=2), {}, "allow"),
    "the prose has a task left": (by_the_prose(PENDING, most_tasks=2, attempted=1), {}, "block"),
    "the prose has done all": (by_the_prose(DONE, session_count=2, most_sessions=2), {}, "allow"),
    "unreadable": (Situation(None, trouble="torn"), {}, "block"),
    "unreadable, and told so": (Situation(None, trouble="torn"), {"stop_hook_active": True}, "allow"),
    "unreadable, and counted": (
        Situation(None, trouble="torn", tally=Tally(policy.UNREADABLE, 1)),
        {},
        "allow",
    ),
    "unreadable, and another's": (situation(PENDING, mine=False, trouble="torn"), {}, "allow"),
    "all are completed": (situation(DONE), {}, "allow"),
    "failed for good": (situation(Task("a", status="failed", attempts=3)), {}, "allow"),
}


@pytest.mark.parametrize("row", STOP, ids=lambda row: row.replace(" ", "-"))
def test_stop(row: str) -> None:
    now, fields, kind = STOP[row]

    assert stop(now, **fields).kind == kind


@pytest.mark.parametrize(
    ("row", "warned", "finished"),
    [
        ("no session is open", False, False),
        ("my session is halted", True, False),
        ("my task is halted", True, False),
        ("eight blocks already", True, False),
        ("unreadable, and told so", True, False),
        ("the prose works on another's task", False, False),
        ("the prose has had its sessions", True, False),
        ("the prose has had its tasks", True, False),
        ("the prose has done all", False, True),
        ("all are completed", False, True),
        ("failed for good", False, True),
    ],
)
def test_what_letting_go_brings_with_it(row: str, *, warned: bool, finished: bool) -> None:
    answer = stop(STOP[row][0], **STOP[row][1])

    assert (bool(answer.warning), answer.finished) == (warned, finished)


def test_progress_is_what_this_agent_does_and_nothing_else() -> None:
    def progress(*tasks: Task) -> str:
        return stop(situation(*tasks, mode="concurrent")).progress

    before = progress(MINE, THEIRS, PENDING)

    # Another worker gets on, a lease is renewed, somebody adds a task:
    assert progress(MINE, DONE, PENDING, Task("n")) == before
    # This one takes another task, or notes a step:
    assert progress(THEIRS, PENDING) != before


@pytest.mark.parametrize(
    ("who", "workers", "held"),
    [
        ({"agent_id": "sub-1"}, [], True),
        ({"teammate_name": "sub-1"}, [], True),
        ({"agent_id": "x"}, ["sub-1"], True),
        ({"agent_id": "sub-2"}, [], False),
        ({}, ["sub-2"], False),
        ({}, [], True),
    ],
)
def test_a_subagent_is_held_while_it_owns_a_task(
    who: dict[str, object], workers: list[str], *, held: bool
) -> None:
    task = Task("a", status="in_progress", claimed_by="sub-1")
    now = situation(task, PENDING, mine=False, workers=workers)

    assert policy.subagent_stop(now, payload("SubagentStop", **who)).kind == ("block" if held else "allow")


BEGIN: dict[str, tuple[Situation, str, bool]] = {
    "many share the list": (situation(PENDING, mode="concurrent", mine=False), "sub-1", True),
    "its parent works on it": (situation(MINE, mode="concurrent"), "sub-1", True),
    "the list is for one": (situation(PENDING), "sub-1", False),
    "nothing is left": (situation(DONE, mode="concurrent"), "sub-1", False),
    "it has no name": (situation(PENDING, mode="concurrent"), "", False),
    "its name is no word in a shell": (situation(PENDING, mode="concurrent"), "$(id) x", False),
    "unreadable": (Situation(None, trouble="torn"), "sub-1", False),
}


@pytest.mark.parametrize("row", BEGIN, ids=lambda row: row.replace(" ", "-"))
def test_a_subagent_begins(row: str) -> None:
    now, name, told = BEGIN[row]

    answer = policy.subagent_start(now, payload("SubagentStart", agent_id=name))

    assert (answer.kind == "context") is told
    assert ("HARNESS_WORKER_ID=sub-1 HARNESS claim" in answer.text) is told


def test_a_task_that_nobody_is_named_for_is_no_subagents() -> None:
    now = situation(Task("a", status="in_progress"), mine=False)

    assert policy.subagent_stop(now, payload("SubagentStop", agent_id="sub-1")).kind == "allow"


IDLE: dict[str, tuple[Situation, str]] = {
    "it owns a task": (situation(Task("a", status="in_progress", claimed_by="worker1")), "keep"),
    "its task is halted": (
        situation(Task("a", status="in_progress", claimed_by="worker1", halt="CONFIG")),
        "allow",
    ),
    "nobody owns the task": (situation(Task("a", status="in_progress")), "allow"),
    "work waits for all": (situation(PENDING, mode="concurrent", mine=False), "keep"),
    "work waits in a list of the prose": (situation(PENDING, sessions=None), "keep"),
    "work waits for the one session": (situation(PENDING, mine=False), "allow"),
    "nothing waits": (situation(THEIRS, mode="concurrent", mine=False), "allow"),
    "unreadable": (Situation(None, trouble="torn"), "allow"),
}


@pytest.mark.parametrize("row", IDLE, ids=lambda row: row.replace(" ", "-"))
def test_teammate_idle(row: str) -> None:
    now, kind = IDLE[row]

    assert policy.teammate_idle(now, payload("TeammateIdle", teammate_name="worker1")).kind == kind


def test_idle_teammates_have_the_same_patience() -> None:
    now = situation(PENDING, mode="concurrent", tally=Tally("waiting a", 8))

    answer = policy.teammate_idle(now, payload("TeammateIdle", teammate_name="worker1"))

    assert (answer.kind, bool(answer.warning)) == ("allow", True)


@pytest.mark.parametrize(
    ("now", "path", "kind"),
    [
        (situation(PENDING), "harness-tasks.json", "deny"),
        (situation(PENDING), "harness-tasks.json.bak", "deny"),
        (situation(PENDING), "src/harness-tasks.json", "allow"),
        (situation(PENDING, sessions=None), "harness-tasks.json", "allow"),
        (Situation(None, trouble="torn"), "harness-tasks.json", "allow"),
    ],
)
def test_only_a_whole_list_of_ours_is_closed_to_editors(now: Situation, path: str, kind: str) -> None:
    assert policy.pre_tool_use(now, ["README.md", path]).kind == kind


@pytest.mark.parametrize(
    ("now", "worker"),
    [
        (situation(MINE, mode="concurrent"), "me"),
        (situation(MINE), None),
        (situation(THEIRS, mode="concurrent"), None),
        (situation(Task("a", status="in_progress", claimed_by="me"), mode="concurrent"), None),
        (Situation(None, trouble="torn"), None),
    ],
)
def test_a_beat_is_for_the_holder_of_a_lease(now: Situation, worker: str | None) -> None:
    assert policy.beating(now, payload("PostToolUse")) == worker


def test_the_start_says_what_was_interrupted_and_what_failed() -> None:
    failed = Task("f", status="failed", attempts=1, error_log=("[TEST_FAIL] 1 != 2",))
    text = policy.session_start(situation(MINE, failed, DONE, sessions=()), payload()).text

    assert "1 of 3 tasks are completed, 1 in progress, 1 failed with attempts left." in text
    assert 'Interrupted: a "Title".' in text
    assert 'Last failure: f "[TEST_FAIL] 1 != 2"' in text
    assert text.splitlines()[-2] == "If you are asked to work on it, type: HARNESS start"


def test_texts_are_bounded_however_long_the_list_is() -> None:
    tasks = [Task(f"t{n}", "x" * 1000, status="in_progress", claimed_by="w") for n in range(500)]
    doomed = [Task(f"d{n}", depends_on=(f"d{n}",)) for n in range(500)]
    for now in (
        situation(*tasks, *doomed, sessions=None),
        situation(*doomed),
        situation(*tasks, sessions=()),
    ):
        assert len(stop(now).text) < 3000
        assert len(policy.session_start(now, payload()).text) < 3000
