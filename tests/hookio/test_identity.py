"""Whose session is it: told by the id of the agent session, else by the worker, else by the process."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from harness_lib import timestamps
from harness_lib.hookio import facts, handler
from harness_lib.hookio.context import HookContext
from harness_lib.hookio.payload import Payload
from harness_lib.system.place import session_notes
from harness_lib.system.processes import owner
from tests.hookio.lists import PENDING, ours

MINE: Any = {"number": 1, "worker": "a", "agent_session_id": "id-a"}
OTHER: Any = {"number": 2, "worker": "b", "agent_session_id": "id-b"}
NAMELESS: Any = {"number": 3, "worker": "c"}
SANDBOXED: Any = {"number": 4, "worker": "d", "agent_session_id": "id-d", "pid": 0, "boot_id": "boot/pid:[1]"}


def mine(sessions: Any, session_id: str, env: dict[str, str] | None = None) -> list[Any]:
    return facts.mine(sessions, session_id, env or {})


def test_the_payload_tells_who_rings_and_else_the_environment() -> None:
    env = {"CLAUDE_CODE_SESSION_ID": "env-id"}

    def caller(fields: dict[str, object], env: dict[str, str]) -> str:
        return handler.Hook("/p", env, Payload("Stop", fields), "bell").session_id

    assert caller({"session_id": "said"}, env) == "said"
    assert caller({}, env) == "env-id"
    assert caller({}, {}) == ""


@pytest.mark.parametrize(
    ("sessions", "session_id", "own"),
    [
        (None, "id-a", []),
        ([], "id-a", []),
        ([MINE, OTHER], "id-a", [MINE]),
        ([MINE, OTHER], "id-x", []),
        # Nobody can be told apart: all of them are, as the seed has it.
        ([MINE, NAMELESS], "", [MINE, NAMELESS]),
        ([MINE, NAMELESS], "id-a", [MINE]),
    ],
)
def test_a_session_is_recognised_by_its_id(sessions: Any, session_id: str, own: Any) -> None:
    assert mine(sessions, session_id) == own


def test_a_session_without_an_id_is_recognised_by_its_worker_or_its_process() -> None:
    me = owner.current({})
    process = {"pid": me.pid, "pid_started": me.pid_started, "boot_id": me.boot_id, "host": me.host}

    assert mine([MINE, NAMELESS], "id-a", {"HARNESS_WORKER_ID": "c"}) == [MINE, NAMELESS]
    assert mine([{**NAMELESS, **process}], "id-a") == [{**NAMELESS, **process}]
    assert mine([OTHER], "id-a", {"HARNESS_WORKER_ID": "b"}) == []
    for key, wrong in {"pid": me.pid + 1, "pid_started": "x", "boot_id": "x", "host": "x"}.items():
        assert mine([{**NAMELESS, **process, key: wrong}], "id-a") == []


def here() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces of processes are Linux's")
@pytest.mark.parametrize(
    ("session", "sandboxed"),
    [
        ({"pid": 0, "boot_id": "boot"}, True),
        ({"boot_id": "boot/HERE"}, True),
        ({"pid": 7, "boot_id": "boot/pid:[1]"}, True),
        ({"pid": 7, "boot_id": "boot/HERE"}, False),
        ({"pid": 7, "boot_id": "boot"}, False),
        ({"pid": 7}, False),
    ],
)
def test_only_an_agent_in_a_sandbox_leaves_a_sign(tmp_path: Path, session: Any, *, sandboxed: bool) -> None:
    if "boot_id" in session:
        session = {**session, "boot_id": str(session["boot_id"]).replace("HERE", here())}

    outside: Any = {"pid": 7, "boot_id": "boot"}
    for session_id in ("", "me"):
        facts.show([outside, session], str(tmp_path), session_id)

    seen = session_notes.written(session_notes.path(str(tmp_path), "seen", "me"))
    assert (seen is not None) is sandboxed
    assert session_notes.written(session_notes.path(str(tmp_path), "seen", "")) is None


def test_the_others_are_those_whose_agents_may_live(tmp_path: Path) -> None:
    me = owner.current({})
    an_hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    alive = {"host": me.host, "boot_id": me.boot_id, "pid": me.pid, "pid_started": me.pid_started}
    sessions: Any = [
        {**MINE, **alive},
        {**OTHER, **alive},
        {**NAMELESS, **alive, "pid_started": "another process had this number"},
        # When its process began is not known.
        {**OTHER, **alive, "number": 10, "worker": "j", "pid_started": None},
        {**SANDBOXED, "host": me.host, "boot_id": f"{me.boot_id.partition('/')[0]}/pid:[1]"},
        {"number": 5, "worker": "e", "host": "elsewhere", "started_at": "2020-01-01T00:00:00Z"},
        {"number": 6, "worker": "f", "host": "elsewhere", "started_at": "2999-01-01T00:00:00Z"},
        {"number": 7, "worker": "g", "host": None},
        # Nothing is known of its boot.
        {"number": 8, "worker": "h", "host": me.host, "started_at": "2999-01-01T00:00:00Z"},
        # Of one without an id no hook could leave a sign.
        {**alive, "number": 9, "worker": "i", "pid": 0, "started_at": timestamps.render(an_hour_ago)},
    ]
    context = ours(PENDING)
    assert context.cache is not None
    context.cache["sessions"] = sessions
    context.mine = sessions[:1]

    def living() -> list[int]:
        return [each["number"] for each in facts.living(context, str(tmp_path), "id-a")]

    assert living() == [2, 10, 6, 7, 8, 9]
    session_notes.write(session_notes.path(str(tmp_path), "ended", "id-b"), b"")
    assert living() == [6, 7, 8, 9]
    session_notes.write(session_notes.path(str(tmp_path), "seen", "id-d"), b"")
    assert living() == [4, 6, 7, 8, 9]


def test_without_a_list_there_are_no_others(tmp_path: Path) -> None:
    assert facts.living(HookContext(None, program="HARNESS"), str(tmp_path), "id-a") == []
    assert facts.living(ours(PENDING, sessions=None), str(tmp_path), "id-a") == []


def test_a_caller_may_have_claimed_under_its_sessions_its_name_and_its_id() -> None:
    named = {"HARNESS_WORKER_ID": "w"}

    assert facts.workers([MINE, OTHER], "id-a", named) == ["a", "b", "w", "id-a"]
    assert facts.workers([], "", {}) == []


@pytest.mark.parametrize(
    ("env", "names"),
    [
        ({}, []),
        ({"HARNESS_WORKER_ID": ""}, []),
        ({"HARNESS_WORKER_ID": "sub"}, ["sub"]),
        # That is its parent's.
        ({"HARNESS_WORKER_ID": "a"}, []),
        ({"HARNESS_WORKER_ID": "b"}, []),
    ],
)
def test_a_subagent_has_a_name_that_is_not_its_parents(env: dict[str, str], names: list[str]) -> None:
    assert facts.subagent_workers([MINE, OTHER], env) == names
