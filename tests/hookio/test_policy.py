"""What hooks decide: pure, and the whole answer to each situation.

The table of Stop is that of docs/design.md, "The Stop hook", row by row.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.hookio import messages, policy
from harness_lib.hookio.facts import BlockCounter, HookContext
from harness_lib.task import Task
from tests.hookio.lists import (
    BUSY,
    CHECKS,
    DONE,
    HALTED,
    MINE,
    NOBODYS,
    PENDING,
    RED,
    SESSION,
    THEIRS,
    TORN,
    UNPROVEN,
    allowed,
    legacy,
    ours,
    own_tasks,
    payload,
    running,
    said,
    stop,
)

SILENT: Any = allowed()
FINISHED = allowed(finished=True)
UNREADABLE: Any = ("block", messages.repair(TORN), "", policy.UNREADABLE, False, False)
LET_GO = allowed(messages.unreadable(TORN))
HALT = Task("a", status="in_progress", claimed_by="me", halt="CONFIG")
CIRCLE = Task("a", depends_on=("a",))
BEHIND = (BUSY, PENDING, Task("f", status="failed", attempts=1), DONE)


def halted(reason: str) -> Any:
    return allowed(messages.halted(reason, "HARNESS"))


def tallied(*tasks: Task, progress: str, blocks: int) -> HookContext:
    return ours(*tasks, counter=BlockCounter(progress, blocks))


# What is answered: all of it, or the progress that a held agent is measured by.
STOP: dict[str, tuple[HookContext, dict[str, object], Any]] = {
    # Whose list it is.
    "no session is open": (ours(PENDING, sessions=()), {}, SILENT),
    "another agent's session is open": (ours(PENDING, mine=False), {}, SILENT),
    "my session is open": (ours(PENDING), {}, "3:0 "),
    "a subagent of Copilot stops": (ours(PENDING), {"parent_agent_id": "p"}, SILENT),
    "unreadable, and another's": (ours(PENDING, mine=False, trouble="torn"), {}, SILENT),
    "it may only plan": (ours(MINE, PENDING), {"permission_mode": "plan"}, SILENT),
    # What runs behind an agent.
    "a subagent runs": (ours(PENDING), running("subagent"), SILENT),
    "a server runs": (ours(PENDING), running("shell"), "3:0 "),
    "what nobody knows runs": (ours(PENDING), running("dream"), allowed(waits=True)),
    "what nobody knows runs still": (
        ours(PENDING, counter=BlockCounter(waited=True)),
        running("dream"),
        "3:0 ",
    ),
    "a subagent and what nobody knows run": (ours(PENDING), running("subagent", "dream"), SILENT),
    "something runs in another's session": (ours(PENDING, mine=False), running("dream"), SILENT),
    # What stands still.
    "my session is halted": (ours(PENDING, sessions=(HALTED,)), {}, halted("CONFIG: no check")),
    "my session is halted for a task": (
        ours(PENDING, sessions=(HALTED._replace(halt_task="task-7"),)),
        {},
        halted("task-7: CONFIG: no check"),
    ),
    "my task is halted": (ours(HALT, PENDING), {}, halted("a: CONFIG")),
    "both are": (ours(HALT, sessions=(SESSION, HALTED)), {}, halted("CONFIG: no check")),
    "what is left is halted": (ours(Task("a", halt="CONFIG: x")), {}, SILENT),
    "another task is halted": (ours(Task("c", halt="CONFIG: x"), PENDING), {}, "3:0 "),
    # What remains.
    "I hold a task": (ours(MINE), {}, "3:0 a/0/0"),
    "others hold the rest": (ours(THEIRS, mode="concurrent"), {}, SILENT),
    "others hold one, another waits": (ours(THEIRS, PENDING, mode="concurrent"), {}, "3:0 "),
    "a failed task has attempts left": (ours(Task("a", status="failed", attempts=1)), {}, "3:0 "),
    "a task can never run": (ours(CIRCLE), {}, "3:0 "),
    "nothing proves what is said": (ours(UNPROVEN), {}, "3:0 "),
    "all are completed": (ours(DONE), {}, FINISHED),
    "failed for good": (ours(Task("a", status="failed", attempts=3)), {}, FINISHED),
    "a completed task is red": (ours(DONE, RED), {}, "3:0 "),
    "a task is red, and the final check is left": (ours(RED, sessions=(CHECKS,)), {}, "3:0 1 T1 "),
    "the final check is left": (ours(DONE, sessions=(SESSION, CHECKS)), {}, "3:0 3:0 0 "),
    "it is left to another": (ours(DONE, sessions=(CHECKS,), mine=False), {}, SILENT),
    # Patience.
    "seven blocks": (tallied(PENDING, progress="3:0 ", blocks=7), {"stop_hook_active": True}, "3:0 "),
    "eight blocks": (
        tallied(PENDING, progress="3:0 ", blocks=8),
        {},
        allowed(messages.released(8, "HARNESS"), "3:0 "),
    ),
    "eight blocks before an attempt ended": (tallied(PENDING, progress="3:1 ", blocks=8), {}, "3:0 "),
    "eight blocks before I took a task": (tallied(MINE, progress="3:0 ", blocks=8), {}, "3:0 a/0/0"),
    "two sessions, two tasks": (
        ours(
            BUSY,
            Task("b", status="in_progress", claimed_by="me"),
            sessions=(SESSION._replace(finished_attempts=4), SESSION._replace(number=5)),
        ),
        {},
        "3:4 5:0 a/2/1 b/0/0",
    ),
    # A list of the legacy protocol.
    "the legacy made the list": (ours(PENDING, sessions=None), {}, "0 0 1 0 0 0"),
    "the legacy works on a task": (ours(THEIRS, sessions=None), {}, "0 0 0 1 0 0"),
    "the legacy is in the middle": (legacy(*BEHIND), {}, "1 1 1 1 3 1"),
    "the legacy works on another's task": (legacy(THEIRS, mode="concurrent"), {}, SILENT),
    "the legacy works on my task": (legacy(MINE, mode="concurrent"), {}, "0 0 0 1 0 0"),
    "the legacy works on nobody's task": (legacy(NOBODYS, mode="concurrent"), {}, "0 0 0 1 0 0"),
    "the legacy works, nobody knows who I am": (
        legacy(THEIRS, mode="concurrent", workers=[]),
        {},
        "0 0 0 1 0 0",
    ),
    "the legacy has had its sessions": (
        legacy(PENDING, session_count=2, most_sessions=2),
        {},
        halted("max_sessions"),
    ),
    "the legacy has a session left": (legacy(PENDING, most_sessions=2), {}, "0 0 1 0 0 0"),
    "the legacy has had its tasks": (
        legacy(PENDING, most_tasks=2, attempted=2),
        {},
        halted("max_tasks_per_session"),
    ),
    "the legacy has a task left": (legacy(PENDING, most_tasks=2, attempted=1), {}, "0 0 1 0 0 0"),
    "the legacy may do any number": (legacy(PENDING, attempted=5), {}, "0 0 1 0 0 0"),
    "the legacy has begun no session": (
        legacy(PENDING, most_tasks=2, attempted=2, session_count=0),
        {},
        "0 0 1 0 0 0",
    ),
    "workers of the legacy protocol cannot be counted": (
        legacy(PENDING, most_tasks=2, attempted=5, mode="concurrent"),
        {},
        "0 0 1 0 0 0",
    ),
    "the legacy has done all": (legacy(DONE, session_count=2, most_sessions=2), {}, FINISHED),
    "the legacy knows no red": (legacy(RED), {}, FINISHED),
    # What cannot be read.
    "unreadable": (TORN, {}, UNREADABLE),
    "unreadable, with a list from before": (ours(PENDING, trouble="torn"), {}, UNREADABLE),
    "unreadable, and told so": (TORN, {"stop_hook_active": True}, LET_GO),
    "unreadable, and counted": (
        HookContext(None, trouble="torn", program="HARNESS", counter=BlockCounter(policy.UNREADABLE, 1)),
        {},
        LET_GO,
    ),
}


@pytest.mark.parametrize("row", STOP, ids=lambda row: row.replace(" ", "-"))
def test_whoever_stops_is_held_or_let_go(row: str) -> None:
    context, fields, answer = STOP[row]
    if context.trouble:
        context.root = TORN.root
    if isinstance(answer, str):
        answer = ("block", messages.stop(context, policy.held(context)), "", answer, False, False)

    assert said(stop(context, **fields)) == answer


def test_texts_are_bounded_however_long_the_list_is() -> None:
    tasks = [Task(f"t{n}", "x" * 1000, status="in_progress", claimed_by="w") for n in range(500)]
    unreachable = [Task(f"d{n}", depends_on=(f"d{n}",)) for n in range(500)]
    for context in (
        ours(*tasks, *unreachable, sessions=None),
        ours(*unreachable),
        ours(*tasks, sessions=()),
    ):
        assert len(stop(context).text) < 3000
        assert len(policy.session_start(context).text) < 3000


@pytest.mark.parametrize(
    ("context", "names"),
    [
        (ours(MINE, THEIRS), ["a", "b"]),
        (ours(MINE, THEIRS, mode="concurrent"), ["a"]),
        (ours(MINE, THEIRS, mode="concurrent", workers=[]), []),
        (ours(NOBODYS, mode="concurrent", workers=["", "me"]), []),
        (legacy(MINE, THEIRS, NOBODYS, mode="concurrent"), ["a", "n"]),
        (legacy(MINE, THEIRS, mode="concurrent", workers=[]), ["a", "b"]),
        (legacy(THEIRS, THEIRS._replace(id="c", claimed_by=""), mode="concurrent"), ["c"]),
        (TORN, []),
    ],
)
def test_which_tasks_a_session_works_on(context: HookContext, names: list[str]) -> None:
    assert [task["id"] for task in policy.held(context)] == names


# -- beside Stop

SUB = Task("a", "T", status="in_progress", claimed_by="sub-1", attempts=1)
SHARED: dict[str, Any] = {"mode": "concurrent", "mine": False}


# -- subagents

STOPS: dict[str, tuple[HookContext, dict[str, object], str | None]] = {
    "it owns a task": (ours(SUB, PENDING, mine=False), {"agent_id": "sub-1"}, "sub-1 a/1/0"),
    "a name of a teammate owns one": (ours(SUB, mine=False), {"teammate_name": "sub-1"}, "subagent a/1/0"),
    "its worker id owns one": (ours(SUB, workers=["sub-1"]), {"agent_id": "x"}, "x a/1/0"),
    "another owns one": (ours(SUB, mine=False), {"agent_id": "sub-2"}, None),
    "another does, by its worker id": (ours(SUB, workers=["sub-2"]), {}, None),
    "nobody knows who it is": (ours(SUB, mine=False), {}, "subagent a/1/0"),
    "nobody owns the task": (ours(NOBODYS, mine=False), {"agent_id": "sub-1"}, None),
    "its task is halted": (ours(BUSY._replace(halt="CONFIG"), workers=["me"]), {}, None),
    "the legacy works": (legacy(BUSY), {}, "subagent a/2/1"),
    "the legacy works, and it was held": (legacy(BUSY), {"stop_hook_active": True}, None),
    "it was held": (ours(BUSY, workers=["me"]), {"stop_hook_active": True}, "subagent a/2/1"),
    "it may only plan": (ours(BUSY, workers=["me"]), {"permission_mode": "plan"}, None),
    "unreadable": (ours(BUSY, workers=["me"], trouble="torn"), {}, None),
    "unreadable from the first": (TORN, {}, None),
}


@pytest.mark.parametrize("row", STOPS, ids=lambda row: row.replace(" ", "-"))
def test_a_subagent_is_held_while_it_owns_a_task(row: str) -> None:
    context, fields, progress = STOPS[row]

    answer = policy.subagent_stop(context, payload("SubagentStop", **fields))

    if progress is None:
        assert said(answer) == SILENT
    else:
        reason = messages.stop(context, own_tasks(context, 1))
        assert said(answer) == ("block", reason, "", progress, False, False)


def test_a_subagent_has_the_same_patience() -> None:
    context = ours(SUB, mine=False, counter=BlockCounter("sub-1 a/1/0", 8))

    answer = policy.subagent_stop(context, payload("SubagentStop", agent_id="sub-1"))

    assert said(answer) == allowed(messages.released(8, "HARNESS"), "sub-1 a/1/0")


@pytest.mark.parametrize(
    ("context", "name", "told"),
    [
        (ours(PENDING, **SHARED), "sub-1", True),
        (ours(MINE, mode="concurrent"), "sub-1", True),
        # A list for one session at a time knows its parent.
        (ours(PENDING), "sub-1", False),
        (ours(DONE, mode="concurrent"), "sub-1", False),
        (ours(PENDING, mode="concurrent", trouble="torn"), "sub-1", False),
        (TORN, "sub-1", False),
        *((ours(PENDING, **SHARED), name, True) for name in ("a-b_c.d@e:f", "sub1", "X")),
        # What is no word in a shell.
        *(
            (ours(PENDING, **SHARED), name, False)
            for name in ("", "\u00e9", "a b", "-_", "a/b", "a$b", "$(id) x")
        ),
    ],
)
def test_a_subagent_is_told_its_name_in_a_shared_list(context: HookContext, name: str, *, told: bool) -> None:
    answer = policy.subagent_start(context, payload("SubagentStart", agent_id=name))

    spoken = ("context", messages.subagent(context, name), "", "", False, False) if told else SILENT
    assert said(answer) == spoken


# -- teammates

MATE = BUSY._replace(claimed_by="mate")
MATES_HALT = halted("a: CONFIG: no check")
# What is answered: all of it, or the progress, and of how many tasks the teammate is told.
IDLE: dict[str, tuple[HookContext, Any, int]] = {
    "it owns a task": (ours(MATE, PENDING, mode="concurrent"), "teammate a/2/1", 1),
    "it owns one in a list for one": (ours(MATE, mine=False), "teammate a/2/1", 1),
    "its worker id owns one": (ours(BUSY, PENDING, mode="concurrent", workers=["me"]), "teammate a/2/1", 1),
    "its task is halted": (
        ours(MATE._replace(halt="CONFIG: no check"), PENDING, mode="concurrent"),
        MATES_HALT,
        0,
    ),
    "its session is halted": (
        ours(PENDING, sessions=(HALTED._replace(halt_task="a"),), mode="concurrent"),
        MATES_HALT,
        0,
    ),
    "nobody owns the task": (ours(NOBODYS), SILENT, 0),
    "work waits for all": (ours(PENDING, **SHARED), "waiting a", 0),
    "something is to be proven": (ours(UNPROVEN, PENDING, **SHARED), "waiting u", 0),
    "work waits in a list of the legacy protocol": (ours(PENDING, sessions=None), "waiting a", 0),
    "work waits for the one session": (ours(PENDING, mine=False), SILENT, 0),
    "no session may begin": (ours(PENDING, session_count=1, most_sessions=1, **SHARED), SILENT, 0),
    "nothing waits": (ours(THEIRS, **SHARED), SILENT, 0),
    "it was told eight times": (
        ours(PENDING, counter=BlockCounter("waiting a", 8), **SHARED),
        allowed(messages.released(8, "HARNESS"), "waiting a"),
        0,
    ),
    "unreadable": (ours(PENDING, mode="concurrent", trouble="torn"), SILENT, 0),
    "unreadable from the first": (TORN, SILENT, 0),
}


@pytest.mark.parametrize("row", IDLE, ids=lambda row: row.replace(" ", "-"))
def test_an_idle_teammate_is_kept_while_it_owns_a_task_or_one_waits(row: str) -> None:
    context, answer, count = IDLE[row]
    if isinstance(answer, str):
        answer = ("keep", messages.stop(context, own_tasks(context, count)), "", answer, False, False)

    assert said(policy.teammate_idle(context, payload("TeammateIdle", teammate_name="mate"))) == answer
    plans = payload("TeammateIdle", teammate_name="mate", permission_mode="plan")
    assert said(policy.teammate_idle(context, plans)) == SILENT


# -- whoever begins


@pytest.mark.parametrize(
    ("context", "held"),
    [
        (ours(MINE), 1),
        (ours(MINE, sessions=()), 0),
        # Of a list that the legacy protocol made, what is at work is told once, as interrupted.
        (legacy(MINE, PENDING._replace(id="p")), 0),
    ],
)
def test_whoever_begins_is_told_how_the_list_stands(context: HookContext, held: int) -> None:
    text = messages.start(context, own_tasks(context, held))

    assert said(policy.session_start(context)) == ("context", text, "", "", False, False)


@pytest.mark.parametrize("context", [TORN, ours(PENDING, trouble="torn")])
def test_whoever_begins_is_told_what_is_wrong_with_the_list(context: HookContext) -> None:
    answer = policy.session_start(context)

    assert said(answer) == ("context", messages.repair(context), "", "", False, False)


# -- tools


@pytest.mark.parametrize(
    ("context", "paths", "named"),
    [
        (ours(PENDING), ["README.md", "harness-tasks.json"], "harness-tasks.json"),
        (ours(PENDING), ["harness-tasks.json.bak"], "harness-tasks.json.bak"),
        (ours(PENDING), ["harness-progress.txt"], "harness-progress.txt"),
        (ours(PENDING), ["a", ".harness-active", "harness-tasks.json"], ".harness-active"),
        (ours(PENDING), ["src/harness-tasks.json"], None),
        # These are edited by hand: there is no other way.
        (ours(PENDING, sessions=None), ["harness-tasks.json"], None),
        (ours(PENDING, trouble="torn"), ["harness-tasks.json"], None),
        (TORN, ["harness-tasks.json"], None),
    ],
)
def test_a_list_of_ours_is_not_edited(context: HookContext, paths: list[str], named: str | None) -> None:
    denied = ("deny", messages.deny(str(named), "HARNESS"), "", "", False, False)

    assert said(policy.pre_tool_use(context, paths)) == (SILENT if named is None else denied)


LEASED = MINE._replace(claimed_by="sub-1")


@pytest.mark.parametrize(
    ("context", "fields", "worker"),
    [
        (ours(MINE, mode="concurrent"), {}, "me"),
        (ours(MINE), {}, None),
        (ours(THEIRS, mode="concurrent"), {}, None),
        (ours(MINE._replace(lease_expires_at=None), mode="concurrent"), {}, None),
        (ours(MINE, mode="concurrent", trouble="torn"), {}, None),
        (TORN, {}, None),
        # It is no subagent's, unless that is named.
        (ours(THEIRS, LEASED, mode="concurrent"), {"agent_id": "sub-1"}, "sub-1"),
        (ours(THEIRS, LEASED, mode="concurrent"), {}, None),
    ],
)
def test_a_beat_is_for_a_holder(context: HookContext, fields: dict[str, object], worker: str | None) -> None:
    assert policy.beating(context, payload("PostToolUse", **fields)) == worker
