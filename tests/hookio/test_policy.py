"""The table of docs/design.md, "The Stop hook", row by row: pure, without a list on disk."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.hookio import messages, policy
from harness_lib.hookio.situation import Answer, Situation, Tally
from harness_lib.task import Checkpoint, Session, Task
from tests.hookio.situations import (
    DONE,
    MINE,
    PENDING,
    SESSION,
    THEIRS,
    by_the_prose,
    payload,
    situation,
    stop,
)

HALTED = Session(3, "me", "host", agent_session_id="id-me", halt="CONFIG: no check")
TORN = Situation(None, trouble="torn", program="HARNESS")

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
    "unreadable": (TORN, {}, "block"),
    "unreadable, and told so": (TORN, {"stop_hook_active": True}, "allow"),
    "unreadable, and counted": (
        Situation(None, trouble="torn", program="HARNESS", tally=Tally(policy.UNREADABLE, 1)),
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
    "unreadable": (TORN, "sub-1", False),
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
    "unreadable": (TORN, "allow"),
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
        (TORN, "harness-tasks.json", "allow"),
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
        (TORN, None),
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


def said(answer: Answer) -> tuple[str, str, str, str, bool, bool]:
    return answer.kind, answer.text, answer.warning, answer.progress, answer.finished, answer.waits


def allowed(warning: str = "", progress: str = "", *, finished: bool = False, waits: bool = False) -> Any:
    return "allow", "", warning, progress, finished, waits


def held_back(now: Situation, progress: str, kind: str = "block") -> Any:
    return kind, messages.stop(now, policy.held(now)), "", progress, False, False


BUSY = Task("a", status="in_progress", claimed_by="me", attempts=2, checkpoints=(Checkpoint(1, 2),))
BEHIND = by_the_prose(BUSY, PENDING, Task("f", status="failed", attempts=1), DONE)


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ("my session is open", held_back(situation(PENDING), "3:0 ")),
        ("I hold a task", held_back(situation(MINE), "3:0 a/0/0")),
        ("no session is open", allowed()),
        ("a subagent runs", allowed()),
        ("what nobody knows runs", allowed(waits=True)),
        ("a subagent of Copilot stops", allowed()),
        ("my session is halted", allowed(messages.halted("CONFIG: no check", "HARNESS"))),
        ("my task is halted", allowed(messages.halted("CONFIG", "HARNESS"))),
        ("what is left is halted", allowed()),
        ("others hold the rest", allowed()),
        ("eight blocks already", allowed(messages.released(8, "HARNESS"), "3:0 ")),
        ("the prose has had its sessions", allowed(messages.halted("max_sessions", "HARNESS"))),
        ("the prose has had its tasks", allowed(messages.halted("max_tasks_per_session", "HARNESS"))),
        ("the prose has done all", allowed(finished=True)),
        ("unreadable, and told so", allowed(messages.unreadable(TORN))),
        ("unreadable, and counted", allowed(messages.unreadable(TORN))),
        ("all are completed", allowed(finished=True)),
    ],
)
def test_the_whole_answer(row: str, answer: object) -> None:
    assert said(stop(STOP[row][0], **STOP[row][1])) == answer


def test_an_unreadable_list_is_measured_by_itself() -> None:
    assert said(stop(TORN)) == ("block", messages.repair(TORN), "", policy.UNREADABLE, False, False)


def test_a_list_that_cannot_be_read_is_not_judged_by_the_last_one_that_was() -> None:
    now = situation(PENDING, trouble="torn")

    assert stop(now).text == messages.repair(now)


def test_progress_in_a_list_of_the_prose_is_any_change_of_its_numbers() -> None:
    assert said(stop(BEHIND)) == held_back(BEHIND, "1 1 1 1 3 1")


def test_progress_tells_of_each_session_and_each_task() -> None:
    sessions = (SESSION._replace(finished_attempts=4), SESSION._replace(number=5))

    now = situation(BUSY, BUSY._replace(id="b", attempts=0, checkpoints=()), sessions=sessions)

    assert stop(now).progress == "3:4 5:0 a/2/1 b/0/0"


def test_of_two_halts_the_sessions_own_is_told() -> None:
    now = situation(BUSY._replace(halt="TASK"), sessions=(SESSION, HALTED))

    assert stop(now).warning == messages.halted("CONFIG: no check", "HARNESS")


@pytest.mark.parametrize(
    ("now", "count"),
    [
        (by_the_prose(PENDING, most_tasks=2), 2),
        (by_the_prose(PENDING, most_tasks=2, session_count=0), 0),
        (by_the_prose(PENDING, most_tasks=2, mode="concurrent"), 0),
        (situation(PENDING), 0),
    ],
)
def test_only_the_tasks_of_one_session_of_the_prose_can_be_counted(now: Situation, count: int) -> None:
    assert now.digest is not None
    assert policy.counted_tasks(now.digest) == count


def test_a_limit_of_the_prose_that_cannot_be_counted_ends_nothing() -> None:
    assert stop(by_the_prose(PENDING, most_tasks=2, attempted=5, mode="concurrent")).kind == "block"
    assert stop(by_the_prose(PENDING, attempted=5)).kind == "block"


def test_a_held_subagent_is_told_of_its_task_and_measured_by_it() -> None:
    mine, other = Task("a", "T", status="in_progress", claimed_by="sub-1", attempts=1), BUSY._replace(id="b")
    now = situation(mine, other, PENDING, mine=False)
    assert now.digest is not None
    own = now.digest["in_progress"][:1]

    answer = policy.subagent_stop(now, payload("SubagentStop", agent_id="sub-1"))

    assert said(answer) == ("block", messages.stop(now, own), "", "sub-1 a/1/0", False, False)
    nameless = policy.subagent_stop(situation(mine, workers=["sub-1"]), payload("SubagentStop"))
    assert nameless.progress == "subagent a/1/0"
    now.tally = Tally("sub-1 a/1/0", 8)
    released = policy.subagent_stop(now, payload("SubagentStop", agent_id="sub-1"))
    assert said(released) == allowed(messages.released(8, "HARNESS"), "sub-1 a/1/0")


@pytest.mark.parametrize(
    ("now", "fields", "kind"),
    [
        (situation(BUSY._replace(halt="CONFIG"), workers=["me"]), {}, "allow"),
        (by_the_prose(BUSY), {}, "block"),
        (by_the_prose(BUSY), {"stop_hook_active": True}, "allow"),
        (situation(BUSY, workers=["me"]), {"stop_hook_active": True}, "block"),
        (situation(BUSY, workers=["me"], trouble="torn"), {}, "allow"),
        (TORN, {}, "allow"),
    ],
)
def test_when_a_subagent_may_stop(now: Situation, fields: dict[str, object], kind: str) -> None:
    assert policy.subagent_stop(now, payload("SubagentStop", **fields)).kind == kind


def test_an_idle_teammate_is_told_of_its_task_or_of_what_waits() -> None:
    def idle(now: Situation) -> Answer:
        return policy.teammate_idle(now, payload("TeammateIdle", teammate_name="mate"))

    own = situation(BUSY._replace(claimed_by="mate"), PENDING, mode="concurrent")
    waits = situation(PENDING, mode="concurrent")
    doubted = situation(Task("u", status="completed", unproven=True), PENDING, mode="concurrent")
    halted = situation(PENDING, sessions=(HALTED,), mode="concurrent")
    assert own.digest is not None

    told = messages.stop(own, own.digest["in_progress"])
    assert said(idle(own)) == ("keep", told, "", "teammate a/2/1", False, False)
    assert said(idle(waits)) == ("keep", messages.stop(waits, ()), "", "waiting a", False, False)
    assert said(idle(doubted)) == ("keep", messages.stop(doubted, ()), "", "waiting u", False, False)
    assert said(idle(halted)) == allowed(messages.halted("CONFIG: no check", "HARNESS"))
    assert idle(situation(PENDING, mode="concurrent", trouble="torn")).kind == "allow"
    assert idle(situation(BUSY, PENDING, mode="concurrent", workers=["me"])).progress == "teammate a/2/1"


def test_whoever_begins_is_told_how_the_list_stands() -> None:
    mine, gone = situation(MINE), situation(MINE, sessions=())

    assert said(policy.session_start(mine, payload())) == (
        "context", messages.start(mine, policy.held(mine)), "", "", False, False
    )  # fmt: skip
    assert policy.session_start(gone, payload()).text == messages.start(gone, ())
    # Of a list that the prose made, what is at work is told once, as interrupted.
    prose = by_the_prose(MINE, PENDING._replace(id="p"))
    assert policy.session_start(prose, payload()).text == messages.start(prose, ())
    assert "In progress" not in messages.start(prose, ())
    assert policy.session_start(TORN, payload()).text == messages.repair(TORN)
    assert policy.session_start(situation(PENDING, trouble="torn"), payload()).kind == "context"
    assert "cannot be read" in policy.session_start(situation(PENDING, trouble="torn"), payload()).text


def test_of_several_edited_files_the_kept_one_is_refused_by_its_name() -> None:
    answer = policy.pre_tool_use(situation(PENDING), ["a", ".harness-active", "harness-tasks.json"])

    assert said(answer) == ("deny", messages.deny(".harness-active", "HARNESS"), "", "", False, False)
    assert policy.pre_tool_use(situation(PENDING, trouble="torn"), ["harness-tasks.json"]).kind == "allow"


@pytest.mark.parametrize("name", ["a-b_c.d@e:f", "sub1", "X"])
def test_a_plain_name_is_told_as_it_is(name: str) -> None:
    now = situation(PENDING, mode="concurrent")

    answer = policy.subagent_start(now, payload("SubagentStart", agent_id=name))

    assert said(answer) == ("context", messages.subagent(now, name), "", "", False, False)


@pytest.mark.parametrize("name", ["\u00e9", "a b", "-_", "a/b", "a$b"])
def test_a_name_that_is_none_in_a_shell_is_not_told(name: str) -> None:
    now = situation(PENDING, mode="concurrent")

    assert policy.subagent_start(now, payload("SubagentStart", agent_id=name)).kind == "allow"


def test_a_subagent_of_a_list_that_cannot_be_read_is_told_nothing() -> None:
    now = situation(PENDING, mode="concurrent", trouble="torn")

    assert policy.subagent_start(now, payload("SubagentStart", agent_id="sub-1")).kind == "allow"


@pytest.mark.parametrize(
    ("now", "names"),
    [
        (situation(MINE, THEIRS), ["a", "b"]),
        (situation(MINE, THEIRS, mode="concurrent"), ["a"]),
        (situation(MINE, THEIRS, mode="concurrent", workers=[]), []),
        (situation(Task("n", status="in_progress"), mode="concurrent", workers=["", "me"]), []),
        (by_the_prose(MINE, THEIRS, Task("n", status="in_progress"), mode="concurrent"), ["a", "n"]),
        (by_the_prose(MINE, THEIRS, mode="concurrent", workers=[]), ["a", "b"]),
        (by_the_prose(THEIRS, THEIRS._replace(id="c", claimed_by=""), mode="concurrent"), ["c"]),
        (TORN, []),
    ],
)
def test_which_tasks_a_session_works_on(now: Situation, names: list[str]) -> None:
    assert [task["id"] for task in policy.held(now)] == names


def test_a_beat_is_no_subagents_unless_it_is_named() -> None:
    task = MINE._replace(claimed_by="sub-1")
    shared = situation(THEIRS, task, mode="concurrent")

    assert policy.beating(shared, payload("PostToolUse", agent_id="sub-1")) == "sub-1"
    assert policy.beating(shared, payload("PostToolUse")) is None
    assert policy.beating(situation(MINE, mode="concurrent", trouble="torn"), payload("PostToolUse")) is None
