"""How a hook learns how the list stands, who rings, and how often that agent was held in a row."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from harness_lib import timestamps
from harness_lib.hookio import facts, handler
from harness_lib.hookio.facts import BlockCounter, HookContext
from harness_lib.hookio.payload import Answer, Payload
from harness_lib.state import load, summary
from harness_lib.state.store import Store
from harness_lib.system.place import find_root, own_files
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import owner
from harness_lib.task import State, Task
from tests.hookio.lists import PENDING, ours, unreadable


@pytest.fixture
def root(root: Root, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Return the root of a list that we wrote, with two tasks; we are elsewhere."""
    monkeypatch.chdir("/")
    tasks = (Task("task-001", "One"), Task("task-002", "Two", status="completed"))
    assert Store(root, timeout=10).create(State(tasks=tasks, sessions=())) == ()
    return root


def look(root: Root) -> tuple[Any, str]:
    return facts.read(str(root.path))


def touch(root: Root, text: str | None = None) -> None:
    """Write the list as somebody else does: the same, or `text`."""
    root.state.write_text(text or root.state.read_text() + "\n")


def foreign(root: Root) -> dict[str, Any]:
    note = json.loads((root.path / ".harness/foreign.json").read_bytes())
    assert isinstance(note, dict)
    return note


def test_of_a_list_of_ours_the_summary_is_enough(root: Root) -> None:
    unreadable(root, "summary.json")

    cache, trouble = look(root)

    assert (cache, trouble) == (summary.read(root), "")
    assert cache["counts"]["total"] == 2
    assert not (root.path / ".harness/foreign.json").exists()


def test_a_list_of_others_is_decoded_and_what_was_found_is_kept(root: Root) -> None:
    touch(root)

    cache, trouble = look(root)

    assert (cache["counts"]["total"], cache["next"]["id"], trouble) == (2, "task-001", "")
    assert cache["stamp"] == []
    assert foreign(root) == {
        "format": summary.FORMAT,
        "stamp": load.stamp_now(root),
        "summary": cache,
    }


def test_what_was_found_is_told_again_until_the_list_changes(root: Root) -> None:
    touch(root)
    look(root)
    note = root.path / ".harness/foreign.json"
    note.write_text(json.dumps({**foreign(root), "summary": {"a": 1}}))

    assert look(root) == ({"a": 1}, "")
    touch(root)
    assert look(root)[0]["counts"]["total"] == 2


def test_a_list_that_cannot_be_used_is_told_with_the_last_one_that_we_wrote(root: Root) -> None:
    before = summary.read(root)
    touch(root, json.dumps({"tasks": [{"id": "a", "status": "almost"}]}))

    cache, trouble = look(root)

    assert cache == before
    assert "tasks[0].status" in trouble
    (root.path / ".harness/summary.json").unlink()
    assert look(root) == (None, trouble)


@pytest.mark.parametrize("torn", [False, True])
def test_a_lost_list_is_told_from_what_stands_in_and_not_kept(root: Root, *, torn: bool) -> None:
    root.state.unlink()
    if torn:
        touch(root, "{")

    cache, trouble = look(root)

    assert (cache["counts"]["total"], trouble) == (2, "")
    assert not (root.path / ".harness/foreign.json").exists()


def test_what_can_never_run_is_found_in_somebody_elses_list_too(root: Root) -> None:
    touch(root, json.dumps({"tasks": [{"id": "a", "status": "pending", "depends_on": ["a"]}]}))

    assert look(root)[0]["unreachable"] == ["a"]


def test_where_nothing_can_be_kept_the_answer_is_the_same(root: Root) -> None:
    touch(root)
    (root.path / ".harness/foreign.json/in-the-way").mkdir(parents=True)

    assert look(root)[0]["counts"]["total"] == 2


# -- whose session is it: told by the id of the agent session, else by the worker, else by the process


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

    seen = own_files.written(own_files.note_path(str(tmp_path), "seen", "me"))
    assert (seen is not None) is sandboxed
    assert own_files.written(own_files.note_path(str(tmp_path), "seen", "")) is None


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
    own_files.write_note(own_files.note_path(str(tmp_path), "ended", "id-b"), b"")
    assert living() == [6, 7, 8, 9]
    own_files.write_note(own_files.note_path(str(tmp_path), "seen", "id-d"), b"")
    assert living() == [4, 6, 7, 8, 9]


@pytest.mark.parametrize("days", [-365, 365])
def test_the_clock_of_the_list_says_how_old_a_session_is(tmp_path: Path, days: int) -> None:
    """That of a list in a database is the database's, and the one of this machine may be wrong."""
    me, now = owner.current({}), datetime.now(timezone.utc) + timedelta(days=days)
    alive = {"host": me.host, "boot_id": me.boot_id, "pid": me.pid, "pid_started": me.pid_started}
    sessions: Any = [
        {"number": number, "host": "elsewhere", "started_at": timestamps.render(now - timedelta(hours=hours))}
        for number, hours in enumerate((1, 23, 25))
    ]
    sessions.append({**OTHER, **alive, "number": 3, "started_at": timestamps.render(now)})
    context = ours(PENDING)
    assert context.cache is not None
    context.cache["sessions"], context.cache["ahead"] = sessions, days * 86400.0
    # An earlier session of that agent has ended.
    note = own_files.note_path(str(tmp_path), "ended", "id-b")
    own_files.write_note(note, b"")
    os.utime(note, (time.time() - 60, time.time() - 60))

    living = facts.living(context, str(tmp_path), "id-a")

    assert [each["number"] for each in living] == [0, 1, 3]


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


# -- how often an agent was held in a row: counted up, begun anew by progress, and lost without harm


def fields(kept: BlockCounter) -> tuple[str, int, str, bool]:
    return kept.progress, kept.blocks, kept.warning, kept.waited


NOTHING = ("", 0, "", False)
HELD = BlockCounter("p", 3, "told", waited=True)


@pytest.mark.parametrize(
    ("last", "answer", "kept"),
    [
        (BlockCounter(), Answer("block", progress="p"), ("p", 1, "", False)),
        (HELD, Answer("block", progress="p"), ("p", 4, "told", True)),
        (HELD, Answer("keep", progress="p"), ("p", 4, "told", True)),
        # Whoever has got on begins anew, and may be told the same again.
        (HELD, Answer("block", progress="q"), ("q", 1, "", True)),
        (HELD, Answer("keep", progress="q"), ("q", 1, "", True)),
        # Let go for want of patience: not held, but told.
        (HELD, Answer("allow", progress="p", warning="enough"), ("p", 3, "enough", True)),
        (HELD, Answer("allow", warning="halted"), ("p", 0, "halted", True)),
        # What it waits for is no progress.
        (BlockCounter("p", 3, "told"), Answer("allow", waits=True), ("p", 3, "told", True)),
        (BlockCounter(), Answer("allow", waits=True), ("", 0, "", True)),
        # Of what says nothing nothing is kept.
        (HELD, Answer("allow"), NOTHING),
        (HELD, Answer("context", "text"), NOTHING),
    ],
)
def test_what_is_kept(
    tmp_path: Path, last: BlockCounter, answer: Answer, kept: tuple[str, int, str, bool]
) -> None:
    facts.count(str(tmp_path), "me", last, answer)

    assert fields(facts.counter(str(tmp_path), "me")) == kept
    assert fields(facts.counter(str(tmp_path), "other")) == NOTHING


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        (b"", NOTHING),
        (b"{", NOTHING),
        (b"[" * 60_000, NOTHING),
        (b"[]", NOTHING),
        (b"{}", NOTHING),
        (json.dumps({"progress": 1, "blocks": "2", "told": 3, "waited": 1}).encode(), ("1", 0, "3", False)),
        (json.dumps({"blocks": True, "waited": True}).encode(), ("", 0, "", True)),
        (json.dumps({"progress": "p", "blocks": 2, "told": "t"}).encode(), ("p", 2, "t", False)),
    ],
)
def test_any_note_is_read(tmp_path: Path, note: bytes, kept: tuple[str, int, str, bool]) -> None:
    own_files.write_note(own_files.note_path(str(tmp_path), "stops", "me"), note)

    assert fields(facts.counter(str(tmp_path), "me")) == kept


# -- how many tasks a session of the legacy protocol has got through, by the lines of its log


AT = "[2026-01-01T00:00:00Z]"


def attempted(root: Path, *lines: str) -> int:
    (root / find_root.LOG_FILE).write_text("".join(f"{AT} {line}\n" for line in lines))
    return facts.attempted(str(root), 3)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ([], 0),
        (["[SESSION-3] Completed [task-001] (commit abc)"], 1),
        (["[SESSION-3] ERROR [task-001] [TEST_FAIL] no"], 1),
        (["[SESSION-3] Completed [task-001]", "[SESSION-3] ERROR [task-002] [TIMEOUT] no"], 2),
        (["[SESSION-2] Completed [task-001]", "[SESSION-33] Completed [task-001]"], 0),
        # An error of the environment, and what is no end.
        (["[SESSION-3] ERROR [ENV_SETUP] no", "[SESSION-3] Starting [task-001]"], 0),
        (["[SESSION-3] CHECKPOINT [task-001] step=1/2"], 0),
    ],
)
def test_what_ends_an_attempt_is_counted(tmp_path: Path, lines: list[str], count: int) -> None:
    assert attempted(tmp_path, *lines) == count


def test_without_a_log_of_the_project_nothing_is_counted(tmp_path: Path) -> None:
    assert facts.attempted(str(tmp_path), 3) == 0

    (tmp_path / "other").write_text(f"{AT} [SESSION-3] Completed [a]\n")
    (tmp_path / find_root.LOG_FILE).symlink_to(tmp_path / "other")
    assert facts.attempted(str(tmp_path), 3) == 0


def test_of_a_long_log_only_its_end_is_read(tmp_path: Path) -> None:
    done = "[SESSION-3] Completed [task-001]"
    talk = ["[SESSION-3] Starting [task-001]" for _ in range(5000)]

    assert attempted(tmp_path, done, *talk, done, done) == 2


def test_bytes_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / find_root.LOG_FILE).write_bytes(b"\xff\xfe\n" + f"{AT} [SESSION-3] Completed [a]\n".encode())

    assert facts.attempted(str(tmp_path), 3) == 1
