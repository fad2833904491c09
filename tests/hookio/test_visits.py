"""Whole visits, in this process and without a repository: what is answered, counted, logged, taken away."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_lib.hookio import handler, messages, payload, policy
from harness_lib.system.place import data_home, own_files
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import child
from harness_lib.task import Session, Task
from tests.hookio.conftest import CHECKOUT, LAUNCHER, Heard, rung_here
from tests.hookio.lists import (
    BELL,
    DONE,
    LEASE,
    ME,
    OTHER,
    SESSION,
    by_hand,
    enable_flag,
    keep,
    kept,
    log,
    make,
    note,
)

Visit = Callable[..., Heard]

SILENT = Heard(0, "", "")
SUB = Task("a", status="in_progress", claimed_by="sub-1")


@pytest.fixture
def visit(root: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Visit:
    """Return a callable that visits the list at `root` in this process, with fields of a payload."""
    monkeypatch.setattr(sys, "argv", [f"{BELL}/harness-x.py"])
    monkeypatch.chdir("/")

    def call(event: str, /, *argv: str, env: dict[str, str] | None = None, **fields: object) -> Heard:
        data = json.dumps({"session_id": ME, "hook_event_name": event, **fields}).encode()
        code = handler.run(event, argv, data, str(root.path), env or {})
        printed = capsys.readouterr()
        return Heard(code, printed.out, printed.err)

    return call


# -- any event


def test_a_session_in_a_sandbox_leaves_a_sign_at_every_visit(root: Root, visit: Visit) -> None:
    make(root, Task("a"), sessions=(SESSION._replace(pid=1, pid_started="x", boot_id="boot"),))
    visit("Stop")
    assert not note(root, "seen").exists()

    make(root, Task("a"))
    visit("Stop")
    assert note(root, "seen").exists()


def test_without_its_launcher_it_is_named(root: Root, visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    make(root, Task("a"))
    monkeypatch.setattr(data_home, "LAUNCHER", "/no/such")

    assert "Type: harness claim\n" in visit("Stop").reason


SENT = json.dumps({"session_id": ME}).encode()


def test_what_is_to_be_typed_is_named_by_the_path_that_the_host_knows(root: Root, tmp_path: Path) -> None:
    """`skills add` for several agents makes a link for Claude Code, which allows what its page names."""
    make(root, Task("a"))
    link = tmp_path / "skills/harness"
    link.parent.mkdir()
    link.symlink_to(CHECKOUT)

    def told(folder: Path, **env: str) -> str:
        heard = rung_here(folder / "hooks/harness-stop.py", SENT, root.path, env=env)
        (typed,) = re.findall("Type: (.+) claim", json.loads(heard.out)["reason"])
        (path,) = shlex.split(typed)
        return path

    assert told(link, CLAUDE_PLUGIN_ROOT=str(link)) == f"{link}/bin/harness"
    plugin = CHECKOUT / "skills/harness"
    assert told(CHECKOUT, CLAUDE_PLUGIN_ROOT=str(CHECKOUT)) == f"{plugin}/bin/harness", "a plugin's page"
    assert told(CHECKOUT) == f"{CHECKOUT}/bin/harness", "from settings of the user"


# -- a stop


def test_each_installation_counts_for_itself_and_the_nameless_as_one(root: Root, visit: Visit) -> None:
    make(root, Task("a"))

    visit("Stop", "gemini")
    visit("Stop", session_id=None)

    whose = (f"{ME} {BELL} gemini", f"nobody {BELL}", f"{ME} {BELL}")
    assert [kept(root, who).blocks for who in whose] == [1, 1, 0]


def test_after_enough_blocks_one_is_let_go_and_warned_of_once(root: Root, visit: Visit) -> None:
    make(root, Task("a"))

    held = [visit("Stop") for _ in range(policy.PATIENCE)]
    free, later = visit("Stop"), visit("Stop")

    warning = messages.released(policy.PATIENCE, data_home.LAUNCHER)
    assert all(each.reason for each in held)
    assert (free.told, free.err) == (f"harness: {warning}", f"WARN harness: {warning}\n")
    assert later == SILENT
    assert log(root) == [f"[SESSION-3] WARN {warning}"]


def test_in_a_list_of_the_legacy_protocol_the_log_tells_what_was_done(root: Root, visit: Visit) -> None:
    config = {"max_tasks_per_session": 1}
    by_hand(root, {"id": "a", "status": "pending"}, session_count=2, session_config=config)
    assert "Go on with" in visit("Stop").reason
    root.log.write_text("[2026-01-01T00:00:00Z] [SESSION-2] Completed [b]\n")

    heard = visit("Stop")

    assert heard.told.startswith("harness: this session has done as many tasks as it may (")
    assert log(root)[-1].startswith("[SESSION-2] WARN this session")


def test_in_a_list_of_the_legacy_protocol_only_a_named_worker_is_told_apart(root: Root, visit: Visit) -> None:
    task: dict[str, object] = {"id": "a", "status": "in_progress", "claimed_by": ME}
    by_hand(root, task, session_config={"concurrency_mode": "concurrent"})

    assert visit("Stop").reason
    assert visit("Stop", env={"HARNESS_WORKER_ID": "w"}) == SILENT
    assert enable_flag(root).exists()
    nameless = visit("Stop", session_id="").reason
    assert "The worker identity is missing" in nameless
    assert "HARNESS_WORKER_ID=" in nameless


def test_when_all_is_done_the_marker_comes_down_with_the_numbers_in_the_log(root: Root, visit: Visit) -> None:
    make(root, DONE, Task("f", status="failed", attempts=3, max_attempts=3))
    before = root.state.read_bytes()

    assert visit("Stop", session_id=OTHER) == SILENT
    assert enable_flag(root).exists()
    assert visit("Stop") == SILENT
    assert not enable_flag(root).exists()
    totals = "tasks_total=2 completed=1 failed=1 pending=0 blocked=0 attempts_total=3 checkpoints=0"
    assert log(root) == [f"[SESSION-3] STATS {totals}"]
    assert root.state.read_bytes() == before


def test_the_marker_stays_where_somebody_has_added_a_task_meanwhile(root: Root) -> None:
    make(root, DONE, Task("a"))
    said = payload.Payload("Stop", payload.parse(json.dumps({"session_id": ME}).encode()))

    handler._finish(handler.Hook(str(root.path), {}, said, BELL))

    assert enable_flag(root).exists()
    assert log(root) == []


def test_what_is_wrong_with_the_list_is_told(root: Root, visit: Visit) -> None:
    make(root, Task("a"))
    text = root.state.read_text().replace('"pending"', '"pendign"')
    root.state.write_text(text)

    assert visit("Stop", session_id=OTHER) == SILENT
    assert "is 'pendign', must be one of" in visit("Stop").reason
    heard = visit("Stop")
    assert "cannot be read" in heard.told
    assert visit("Stop", stop_hook_active=True) == SILENT


def test_of_a_list_that_was_never_read_no_session_is_known(root: Root, visit: Visit) -> None:
    root.state.write_text("{")
    enable_flag(root).touch()
    visit("Stop")

    heard = visit("Stop", stop_hook_active=True)

    assert heard.err.startswith("WARN harness: ")
    assert log(root) == [f"[SESSION-0] {heard.err.strip().replace(' harness:', '')}"]


# -- subagents and teammates


def test_a_subagent_is_held_for_its_task_and_forgotten_when_it_goes(root: Root, visit: Visit) -> None:
    make(root, SUB, mode="concurrent")
    keep(root, f"{ME} {BELL} sub-2")

    assert "You hold a." in visit("SubagentStop", agent_id="sub-1").reason
    assert kept(root, f"{ME} {BELL} sub-1").progress == "sub-1 a/0/0"
    assert visit("SubagentStop", agent_id="sub-2") == SILENT
    assert kept(root, f"{ME} {BELL} sub-2").blocks == 0
    # By the name that its parent has given it, and not by its parent's own.
    assert visit("SubagentStop", env={"HARNESS_WORKER_ID": "sub-1"}).reason
    assert visit("SubagentStop", env={"HARNESS_WORKER_ID": "me"}, agent_id="x") == SILENT


def test_the_parent_of_a_subagent_waits_for_its_task_or_ends_it_in_its_name(root: Root, visit: Visit) -> None:
    """It is not the parent that holds the task: its own `finish` is refused."""
    parent, sub = (SESSION._replace(number=number, worker=name) for number, name in ((3, ME), (4, "sub-1")))
    make(root, SUB, mode="concurrent", sessions=(parent, sub))

    held = visit("Stop").reason

    assert "Your subagent holds a: wait for it. If it has ended, do the work" in held
    assert "HARNESS_WORKER_ID=sub-1 " in held
    assert "You hold a. Do the work" in visit("SubagentStop", agent_id="sub-1").reason


def test_an_idle_teammate_is_kept_and_counted_by_its_name(root: Root, visit: Visit) -> None:
    make(root, Task("a"), mode="concurrent")

    heard = visit("TeammateIdle", teammate_name="mate")

    assert (heard.code, heard.out) == (2, "")
    assert f"Next is a. Type: {LAUNCHER} claim" in heard.err
    assert kept(root, f"{ME} {BELL} mate").progress == "waiting a"
    more = [visit("TeammateIdle", teammate_name="mate") for _ in range(policy.PATIENCE)]
    assert [each.code for each in more] == [2] * (policy.PATIENCE - 1) + [0]


# -- a session begins, forks or ends


@pytest.mark.parametrize(
    ("source", "blocks"), [("startup", 0), ("resume", 0), ("new", 0), ("compact", 1), ("clear", 1)]
)
def test_only_whoever_comes_back_is_counted_anew(root: Root, visit: Visit, source: str, blocks: int) -> None:
    make(root, Task("a"))
    keep(root)
    keep(root, f"{OTHER} {BELL}")

    visit("SessionStart", source=source)

    assert (kept(root).blocks, kept(root, f"{OTHER} {BELL}").blocks) == (blocks, 1)


def test_whoever_begins_hears_whose_list_it_is(root: Root, visit: Visit) -> None:
    other = Session(4, "w4", "elsewhere", agent_session_id=OTHER, started_at="2999-01-01T00:00:00Z")
    make(root, Task("a"), sessions=(SESSION, other))

    heard = visit("SessionStart")

    assert heard.json["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert f"there is a task list in {root.path}." in heard.context
    assert "This agent works on it in session 3." in heard.context
    assert 'Another agent works on it ("me", "w4")' in visit("SessionStart", session_id="id-new").context
    assert "commands are trusted" not in heard.context
    (root.path / ".harness/store.json").touch()
    assert "if its commands are trusted on this machine" in visit("SessionStart").context


def test_a_fork_is_not_its_parent(root: Root, visit: Visit) -> None:
    nameless = Session(3, "me", "host", started_at="2000-01-01T00:00:00Z")
    make(root, Task("a", status="in_progress", claimed_by="w"), sessions=(nameless,), mode="concurrent")
    env = {"HARNESS_WORKER_ID": "me"}

    assert "This agent works on it in session 3." in visit("SessionStart", env=env, source="resume").context
    for session_id in ("id-fork", None):
        forked = visit("SessionStart", env=env, source="fork", session_id=session_id).context
        assert "its agent is gone" in forked
        assert "You hold" not in forked


def test_a_fork_that_has_opened_a_session_works_in_it(root: Root, visit: Visit) -> None:
    forked = Session(4, "id-fork", "host", agent_session_id="id-fork")
    held = Task("a", status="in_progress", claimed_by="id-fork")
    make(root, held, sessions=(SESSION, forked), mode="concurrent")

    said = visit("SessionStart", source="fork", session_id="id-fork").context

    assert "This agent works on it in session 4." in said
    assert "You hold a" in said


def test_whoever_begins_again_has_not_ended(root: Root, visit: Visit) -> None:
    make(root, Task("a"))
    for session_id in (ME, OTHER):
        own_files.write_note(str(note(root, "ended", session_id)), b"")

    visit("SessionStart")
    visit("SessionStart", session_id=None)

    assert not note(root, "ended").exists()
    assert note(root, "ended", OTHER).exists()


@pytest.mark.parametrize("session_id", [ME, None])
def test_the_end_of_a_session_is_noted_with_why(root: Root, visit: Visit, session_id: str | None) -> None:
    make(root, Task("a"))
    who = f"{session_id or 'nobody'} {BELL}"
    keep(root, who)
    own_files.write_note(str(note(root, "beats", session_id or "")), b"")

    assert visit("SessionEnd", session_id=session_id, reason="clear") == SILENT

    assert kept(root, who).blocks == 0
    assert not note(root, "beats", session_id or "").exists()
    if session_id:
        assert note(root, "ended").read_bytes() == b"clear"


def test_the_end_of_a_session_that_does_not_work_here_is_not_noted(root: Root, visit: Visit) -> None:
    make(root, Task("a"), sessions=(SESSION, Session(4, "w4", "host")))

    visit("SessionEnd", session_id=OTHER, env={"HARNESS_WORKER_ID": "w4"})
    visit("SessionEnd", session_id=None)

    assert not (root.path / ".harness/ended").exists()


# -- a tool is used


def test_an_edit_of_the_list_is_refused_however_its_path_is_written(
    root: Root, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, Task("a"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(root.state)
    monkeypatch.chdir(tmp_path / "sub")

    def refused(path: str, **fields: Any) -> bool:
        heard = visit("PreToolUse", tool_input={"file_path": path}, **fields)
        assert heard.code == 0
        return "permissionDecision" in heard.out

    assert refused(str(root.state))
    assert refused("../harness-tasks.json")
    assert refused("./x/../../harness-tasks.json")
    assert refused(str(tmp_path / "link"))
    assert refused("harness-tasks.json", cwd=str(tmp_path))
    assert refused("harness-tasks.json", env={"HARNESS_CWD": str(tmp_path)})
    assert not refused("harness-tasks.json")
    assert not refused("harness-tasks.json", cwd=str(tmp_path / "sub"), env={"HARNESS_CWD": str(tmp_path)})
    assert not refused(str(tmp_path / "README.md"))
    for odd in ("", "harness-tasks.json\0", "\ud800"):
        assert not refused(odd)
    assert not refused("a", cwd="a\0b")
    # What is no path hides no other.
    patch = "*** Begin Patch\n*** Update File: \ud800\n*** Update File: harness-tasks.json\n*** End Patch"
    assert "deny" in visit("PreToolUse", tool_input={"command": patch}, cwd=str(tmp_path)).out


Beats = list[tuple[list[str], dict[str, str], str]]


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Beats:
    """Return the beats that are started from here on, instead of processes."""
    calls: Beats = []

    def start(command: list[str], *, env: dict[str, str], cwd: str) -> None:
        calls.append((command, env, cwd))

    monkeypatch.setattr(child, "start", start)
    return calls


LEASED = Task("a", status="in_progress", claimed_by="me", lease_expires_at=LEASE)


def test_a_command_of_the_holder_renews_its_workers_lease(root: Root, visit: Visit, beats: Beats) -> None:
    make(root, LEASED, mode="concurrent")
    before = root.state.read_bytes()

    assert visit("PostToolUse", env={"A": "b"}) == SILENT

    env = {"A": "b", "HARNESS_WORKER_ID": "me", "HARNESS_STATE_ROOT": str(root.path)}
    assert beats == [(["/bin/sh", data_home.LAUNCHER, "beat"], env, str(root.path))]
    assert root.state.read_bytes() == before


@pytest.mark.parametrize(("age", "count"), [(0, 1), (50, 1), (61, 2), (-100, 2)])
def test_each_minute_renews_a_lease(root: Root, visit: Visit, beats: Beats, age: float, count: int) -> None:
    make(root, LEASED, mode="concurrent")
    visit("PostToolUse")
    at = time.time() - age
    os.utime(note(root, "beats"), (at, at))

    assert visit("PostToolUse") == SILENT

    assert len(beats) == count
    assert (note(root, "beats").stat().st_mtime > at + 1) is (count == 2 and age > 0)


def test_who_holds_no_lease_renews_none(root: Root, visit: Visit, beats: Beats) -> None:
    make(root, LEASED)

    visit("PostToolUse")

    assert note(root, "beats").read_bytes() == b""
    assert not beats
