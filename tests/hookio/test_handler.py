"""Whole visits, in this process and without a repository: what is answered, kept, logged and taken away."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_lib.hookio import facts, handler, messages, payload, policy, stop_counter
from harness_lib.hookio.situation import Answer, Tally
from harness_lib.state.filestore.store import Store
from harness_lib.system.place import checkout, session_notes
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import detached
from harness_lib.task import Session, SessionConfig, State, Task

ME, OTHER = "id-me", "id-other"
SESSION = Session(3, "me", "host", agent_session_id=ME)
DONE = Task("d", status="completed")
LEASE = "2999-01-01T00:00:00Z"
BELL = "hooks"


@dataclass(frozen=True)
class Heard:
    code: int
    out: str
    err: str

    @property
    def reason(self) -> str:
        assert self.code == 0
        said = json.loads(self.out)
        assert set(said) == {"decision", "reason"}
        return str(said["reason"])


Ring = Callable[..., Heard]


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path.resolve())


@pytest.fixture
def ring(root: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ring:
    """Return a callable that visits the list at `root` with fields of a payload."""
    monkeypatch.setattr(sys, "argv", [f"{BELL}/harness-x.py"])
    monkeypatch.chdir("/")

    def call(event: str, /, *argv: str, env: dict[str, str] | None = None, **said: object) -> Heard:
        data = json.dumps({"session_id": ME, "hook_event_name": event, **said}).encode()
        code = handler.run(event, argv, data, str(root.path), env or {})
        told = capsys.readouterr()
        return Heard(code, told.out, told.err)

    return call


def make(root: Root, *tasks: Task, mode: str = "exclusive", **fields: Any) -> None:
    """Make a list of ours, switched on, in which `me` works in session 3; no process stands for that."""
    root.state.unlink(missing_ok=True)
    fields.setdefault("sessions", (SESSION,))
    config = SessionConfig(mode)  # type: ignore[arg-type]
    assert Store(root, timeout=10).create(State(tasks=tasks, session_config=config, **fields)) == ()
    marker(root).touch()


def by_hand(root: Root, *tasks: dict[str, object], **fields: object) -> None:
    """Make a list as the prose does."""
    root.state.write_text(json.dumps({"tasks": tasks, **fields}), encoding="utf-8")
    marker(root).touch()


def marker(root: Root) -> Path:
    return root.path / ".harness-active"


def log(root: Root) -> list[str]:
    return [line.partition("] ")[2] for line in root.log.read_text(encoding="utf-8").splitlines()]


def kept(root: Root, who: str = f"{ME} {BELL}") -> Tally:
    return stop_counter.read(str(root.path), who)


def keep(root: Root, who: str) -> None:
    stop_counter.keep(str(root.path), who, Tally(), Answer("block", progress="p"))


def note(root: Root, kind: Any, session_id: str = ME) -> Path:
    return Path(session_notes.path(str(root.path), kind, session_id))


def test_the_marker_stays_where_somebody_has_added_a_task_meanwhile(root: Root) -> None:
    make(root, DONE, Task("a"))
    said = payload.read("Stop", json.dumps({"session_id": ME}).encode())

    handler._finish(handler.Visit(str(root.path), {}, said, BELL))

    assert marker(root).exists()
    assert not root.log.exists()


def test_what_is_wrong_with_the_list_is_told(root: Root, ring: Ring) -> None:
    make(root, Task("a"))
    text = root.state.read_text(encoding="utf-8").replace('"pending"', '"pendign"')
    root.state.write_text(text, encoding="utf-8")

    assert "is 'pendign', must be one of" in ring("Stop").reason


def test_whoever_works_is_held_and_that_is_counted(root: Root, ring: Ring) -> None:
    make(root, Task("a", "Title"))

    heard = ring("Stop")

    assert heard.err == ""
    assert f'Next is a "Title". Type: {checkout.LAUNCHER} claim\n' in heard.reason
    assert heard.out.endswith("}\n")
    assert (kept(root).progress, kept(root).blocks) == ("3:0 ", 1)


def test_each_installation_counts_for_itself(root: Root, ring: Ring) -> None:
    make(root, Task("a"))
    ring("Stop", "gemini")

    assert (kept(root, f"{ME} {BELL} gemini").blocks, kept(root).blocks) == (1, 0)


def test_agents_without_an_id_share_one_count(root: Root, ring: Ring) -> None:
    make(root, Task("a"))
    ring("Stop", session_id=None)

    assert kept(root, f"nobody {BELL}").blocks == 1


def test_after_enough_blocks_one_is_let_go_and_warned_of_once(root: Root, ring: Ring) -> None:
    make(root, Task("a"))

    heard = [ring("Stop") for _ in range(policy.PATIENCE + 2)]

    told = messages.released(policy.PATIENCE, checkout.LAUNCHER)
    assert [bool(each.out) for each in heard] == [True] * policy.PATIENCE + [False, False]
    assert [each.err for each in heard[-2:]] == [f"WARN harness: {told}\n", ""]
    assert log(root) == [f"[SESSION-3] WARN {told}"]


def test_of_a_list_of_the_prose_the_log_tells_what_its_session_has_done(root: Root, ring: Ring) -> None:
    by_hand(
        root, {"id": "a", "status": "pending"}, session_count=2, session_config={"max_tasks_per_session": 1}
    )
    assert "Go on with" in ring("Stop").reason
    root.log.write_text("[2026-01-01T00:00:00Z] [SESSION-2] Completed [b]\n", encoding="utf-8")

    heard = ring("Stop")

    assert (heard.out, heard.err.partition(" (")[0]) == (
        "", "WARN harness: this session has done as many tasks as it may"
    )  # fmt: skip
    assert log(root)[-1].startswith("[SESSION-2] WARN this session")


def test_in_a_list_of_the_prose_only_the_named_worker_is_told_apart(root: Root, ring: Ring) -> None:
    by_hand(
        root,
        {"id": "a", "status": "in_progress", "claimed_by": ME},
        session_config={"concurrency_mode": "concurrent"},
    )

    assert ring("Stop").reason
    assert ring("Stop", env={"HARNESS_WORKER_ID": "w"}).out == ""


def test_when_all_is_done_the_marker_comes_down_with_the_numbers_in_the_log(root: Root, ring: Ring) -> None:
    tasks = (DONE, Task("f", status="failed", attempts=3, max_attempts=3))
    make(root, *tasks)

    assert ring("Stop") == Heard(0, "", "")
    assert not marker(root).exists()
    assert log(root) == [
        (
            "[SESSION-3] STATS tasks_total=2 completed=1 failed=1 pending=0 blocked=0 attempts_total=3 "
            "checkpoints=0"
        )
    ]


def test_of_a_list_that_cannot_be_read_no_session_is_known(root: Root, ring: Ring) -> None:
    root.state.write_text("{", encoding="utf-8")
    marker(root).touch()
    ring("Stop")

    heard = ring("Stop", stop_hook_active=True)

    assert heard.err.startswith("WARN harness: ")
    assert log(root) == [f"[SESSION-0] {heard.err.strip().replace(' harness:', '')}"]


def test_who_is_not_concerned_leaves_the_marker(root: Root, ring: Ring) -> None:
    make(root, DONE)

    assert ring("Stop", session_id=OTHER) == Heard(0, "", "")
    assert marker(root).exists()
    assert not root.log.exists()


@pytest.mark.parametrize("said", [{"hook_event_name": "beforeSubmitPrompt"}, {"hook_event_name": "x"}])
def test_an_event_that_is_not_ours_is_answered_with_nothing(root: Root, said: dict[str, object]) -> None:
    make(root, Task("a"))

    data = json.dumps({"session_id": ME, **said}).encode()

    assert handler.run("Stop", [], data, str(root.path), {}) == 0
    assert not (root.path / ".harness" / "stops").exists()


def test_each_host_hears_it_in_its_own_words(root: Root, ring: Ring) -> None:
    make(root, Task("a"))

    kimi = ring("Stop", "kimi")

    assert (kimi.code, kimi.out) == (2, "")
    assert kimi.err.startswith("harness: 0 of 1 tasks are completed")
    assert set(json.loads(ring("Stop", env={"HARNESS_HOST": "cursor"}).out)) == {"followup_message"}


def test_a_subagent_is_told_its_name_where_many_share_the_list(root: Root, ring: Ring) -> None:
    make(root, Task("a"), mode="concurrent")

    said = json.loads(ring("SubagentStart", agent_id="sub-1").out)["hookSpecificOutput"]

    assert said["hookEventName"] == "SubagentStart"
    assert f"HARNESS_WORKER_ID=sub-1 {checkout.LAUNCHER} claim" in said["additionalContext"]


def test_a_subagent_is_held_for_its_task_and_forgotten_when_it_goes(root: Root, ring: Ring) -> None:
    make(root, Task("a", status="in_progress", claimed_by="sub-1"), mode="concurrent")
    keep(root, f"{ME} {BELL} sub-2")

    assert "You hold a." in ring("SubagentStop", agent_id="sub-1").reason
    assert kept(root, f"{ME} {BELL} sub-1").progress == "sub-1 a/0/0"
    assert ring("SubagentStop", agent_id="sub-2") == Heard(0, "", "")
    assert kept(root, f"{ME} {BELL} sub-2").blocks == 0
    # By the name that its parent has given it, and not by its parent's own.
    assert ring("SubagentStop", env={"HARNESS_WORKER_ID": "sub-1"}).reason
    assert ring("SubagentStop", env={"HARNESS_WORKER_ID": "me"}, agent_id="x").out == ""


def test_a_subagent_that_gets_nowhere_is_let_go_in_the_end(root: Root, ring: Ring) -> None:
    make(root, Task("a", status="in_progress", claimed_by="sub-1"), mode="concurrent")

    heard = [ring("SubagentStop", agent_id="sub-1") for _ in range(policy.PATIENCE + 1)]

    assert [bool(each.out) for each in heard] == [True] * policy.PATIENCE + [False]


def test_an_idle_teammate_is_kept_and_counted_by_its_name(root: Root, ring: Ring) -> None:
    make(root, Task("a"), mode="concurrent")

    heard = ring("TeammateIdle", teammate_name="mate")

    assert (heard.code, heard.out) == (2, "")
    assert "Next is a." in heard.err
    assert kept(root, f"{ME} {BELL} mate").progress == "waiting a"


def test_a_teammate_that_gets_nowhere_is_let_go_in_the_end(root: Root, ring: Ring) -> None:
    make(root, Task("a"), mode="concurrent")

    heard = [ring("TeammateIdle", teammate_name="mate") for _ in range(policy.PATIENCE + 1)]

    assert [each.code for each in heard] == [2] * policy.PATIENCE + [0]


@pytest.mark.parametrize(
    ("source", "blocks"), [("startup", 0), ("resume", 0), ("new", 0), ("compact", 1), ("clear", 1)]
)
def test_only_whoever_comes_back_is_counted_anew(root: Root, ring: Ring, source: str, blocks: int) -> None:
    make(root, Task("a"))
    keep(root, f"{ME} {BELL}")
    keep(root, f"{OTHER} {BELL}")

    ring("SessionStart", source=source)

    assert (kept(root).blocks, kept(root, f"{OTHER} {BELL}").blocks) == (blocks, 1)


def begun(heard: Heard) -> str:
    said = json.loads(heard.out)["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    return str(said["additionalContext"])


def test_whoever_begins_hears_whose_list_it_is(root: Root, ring: Ring) -> None:
    other = Session(4, "w4", "elsewhere", agent_session_id=OTHER, started_at="2999-01-01T00:00:00Z")
    make(root, Task("a"), sessions=(SESSION, other))

    assert f"there is a task list in {root.path}." in begun(ring("SessionStart"))
    assert "This agent works on it in session 3." in begun(ring("SessionStart"))
    assert 'Another agent works on it ("me", "w4")' in begun(ring("SessionStart", session_id="id-new"))


def test_a_fork_is_not_its_parent(root: Root, ring: Ring) -> None:
    nameless = Session(3, "me", "host", started_at="2000-01-01T00:00:00Z")
    make(root, Task("a", status="in_progress", claimed_by="w"), sessions=(nameless,), mode="concurrent")
    env = {"HARNESS_WORKER_ID": "me"}

    assert "This agent works on it in session 3." in begun(ring("SessionStart", env=env, source="resume"))
    assert "its agent is gone" in begun(ring("SessionStart", env=env, source="fork", session_id="id-fork"))
    assert "its agent is gone" in begun(ring("SessionStart", env=env, source="fork", session_id=None))


def test_a_fork_that_has_opened_a_session_works_in_it(root: Root, ring: Ring) -> None:
    make(root, Task("a"), sessions=(Session(4, "f", "host", agent_session_id="id-fork"),))

    said = begun(ring("SessionStart", source="fork", session_id="id-fork"))

    assert "This agent works on it in session 4." in said


def test_a_fork_holds_what_it_has_claimed_under_its_own_id(root: Root, ring: Ring) -> None:
    forked = Session(4, "id-fork", "host", agent_session_id="id-fork")
    held = Task("a", status="in_progress", claimed_by="id-fork")
    make(root, held, sessions=(SESSION, forked), mode="concurrent")

    assert "You hold a" in begun(ring("SessionStart", source="fork", session_id="id-fork"))


def test_in_a_list_of_ours_an_agent_may_have_claimed_under_its_id(root: Root, ring: Ring) -> None:
    make(root, Task("a", status="in_progress", claimed_by=ME), mode="concurrent")

    assert "You hold a." in ring("Stop").reason


def test_whoever_begins_again_has_not_ended(root: Root, ring: Ring) -> None:
    make(root, Task("a"))
    for session_id in (ME, OTHER):
        session_notes.write(str(note(root, "ended", session_id)), b"")

    ring("SessionStart")
    ring("SessionStart", session_id=None)

    assert not note(root, "ended").exists()
    assert note(root, "ended", OTHER).exists()


def test_the_end_of_a_session_is_noted_with_why_and_its_notes_go(root: Root, ring: Ring) -> None:
    make(root, Task("a"))
    keep(root, f"{ME} {BELL}")
    session_notes.write(str(note(root, "beats")), b"")

    assert ring("SessionEnd", reason="clear") == Heard(0, "", "")

    assert note(root, "ended").read_bytes() == b"clear"
    assert kept(root).blocks == 0
    assert not note(root, "beats").exists()


def test_the_end_of_a_session_that_does_not_work_here_is_not_noted(root: Root, ring: Ring) -> None:
    make(root, Task("a"), sessions=(SESSION, Session(4, "w4", "host")))

    ring("SessionEnd", session_id=OTHER, env={"HARNESS_WORKER_ID": "w4"})
    ring("SessionEnd", session_id=None)

    assert not (root.path / ".harness" / "ended").exists()


def test_an_edit_of_the_list_is_refused_however_its_path_is_written(
    root: Root, ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, Task("a"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(root.state)
    monkeypatch.chdir(tmp_path / "sub")

    def refused(path: str, **fields: Any) -> bool:
        heard = ring("PreToolUse", tool_input={"file_path": path}, **fields)
        assert heard.code == 0
        return "permissionDecision" in heard.out

    assert refused(str(root.state))
    assert refused("../harness-tasks.json")
    assert refused(str(tmp_path / "link"))
    assert refused("harness-tasks.json", cwd=str(tmp_path))
    assert refused("harness-tasks.json", env={"HARNESS_CWD": str(tmp_path)})
    assert not refused("harness-tasks.json")
    assert not refused("harness-tasks.json", cwd=str(tmp_path / "sub"), env={"HARNESS_CWD": str(tmp_path)})
    assert not refused(str(tmp_path / "README.md"))
    assert not refused("harness-tasks.json\0")


@dataclass
class Started:
    """Beats that were started, instead of processes."""

    calls: list[tuple[Any, ...]]

    def __call__(self, command: list[str], *, env: dict[str, str], cwd: str) -> None:
        self.calls.append((command, env, cwd))


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Started:
    made = Started([])
    monkeypatch.setattr(detached, "start", made)
    return made


LEASED = Task("a", status="in_progress", claimed_by="me", lease_expires_at=LEASE)


def test_a_command_of_the_holder_renews_its_lease_for_its_worker(
    root: Root, ring: Ring, beats: Started
) -> None:
    make(root, LEASED, mode="concurrent")

    assert ring("PostToolUse", env={"A": "b"}) == Heard(0, "", "")

    env = {"A": "b", "HARNESS_WORKER_ID": "me", "HARNESS_STATE_ROOT": str(root.path)}
    assert beats.calls == [(["/bin/sh", checkout.LAUNCHER, "beat"], env, str(root.path))]


@pytest.mark.parametrize(("age", "count"), [(0, 1), (50, 1), (61, 2), (-100, 2)])
def test_a_lease_is_renewed_once_a_minute(
    root: Root, ring: Ring, beats: Started, age: float, count: int
) -> None:
    make(root, LEASED, mode="concurrent")
    ring("PostToolUse")
    at = time.time() - age
    os.utime(note(root, "beats"), (at, at))

    assert ring("PostToolUse") == Heard(0, "", "")

    assert len(beats.calls) == count
    assert (note(root, "beats").stat().st_mtime > at + 1) is (count == 2 and age > 0)


def test_who_holds_no_lease_renews_none(root: Root, ring: Ring, beats: Started) -> None:
    make(root, LEASED)

    ring("PostToolUse")

    assert note(root, "beats").read_bytes() == b""
    assert not beats.calls


def test_without_the_launcher_beside_us_its_name_is_typed(
    root: Root, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, Task("a"))
    monkeypatch.setattr(checkout, "LAUNCHER", "/no/such")

    assert "Type: harness claim\n" in ring("Stop").reason


def test_a_session_in_a_sandbox_leaves_a_sign_at_every_visit(root: Root, ring: Ring) -> None:
    outside = Session(3, "me", "host", pid=1, pid_started="x", boot_id="boot", agent_session_id=ME)
    make(root, Task("a"), sessions=(outside,))
    ring("Stop")
    assert not note(root, "seen").exists()

    make(root, Task("a"))
    ring("Stop")
    assert note(root, "seen").exists()


@pytest.mark.parametrize(
    ("event", "thorough"),
    [
        ("Stop", True),
        ("SubagentStop", True),
        ("TeammateIdle", True),
        ("SessionStart", True),
        ("SubagentStart", False),
        ("SessionEnd", False),
        ("PostToolUse", False),
    ],
)
def test_the_schema_is_asked_where_somebody_is_let_go_or_told_how_things_stand(
    root: Root, ring: Ring, monkeypatch: pytest.MonkeyPatch, event: str, *, thorough: bool
) -> None:
    asked: list[bool] = []

    def looks(*_args: object, thorough: bool) -> tuple[None, str]:
        asked.append(thorough)
        return None, "torn"

    make(root, Task("a"))
    monkeypatch.setattr(facts, "read", looks)

    ring(event)

    assert asked == [thorough]
