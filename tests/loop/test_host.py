"""`hs` as a host of the task list: it is told of the list, held while there is work, and let go after it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.hs.person import person
from tests.loop.conftest import AUTO, CHAT, Go, Hs, Serve, bodies
from tests.loop.servers.script import ModelServer, Step, bash, say, use
from tests.run_to_end import Said
from tests.runs.workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path, served: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Workshop]:
    workshop = Workshop.make(tmp_path, mode=getattr(request, "param", "exclusive"))
    served["HARNESS_HOME"] = str(workshop.home)
    yield workshop
    workshop.close()


@pytest.fixture
def work(go: Go, workshop: Workshop) -> Go:
    """Return a callable that lets `hs` work through steps of a model in the workshop."""

    def work(*steps: Step, **options: Any) -> tuple[ModelServer, Said]:
        server, answer = go(*steps, cwd=workshop.top, **options)
        assert answer.code == 0, answer.err
        return server, answer

    return work


def harness(*words: str) -> str:
    """Return the command of a model in `hs`, which has to find the list and who it is by itself."""
    command = " ".join(words)
    return f'PYTHONPATH="{CHECKOUT}" "{sys.executable}" -m harness_lib {command}'


def test_a_session_is_held_until_its_task_is_done(work: Go, workshop: Workshop) -> None:
    task = workshop.add("Make one", "grep -q done one")
    server, answer = work(
        bash(harness("run")),
        say("I would rather stop here."),
        bash(f"{harness('claim')} && echo done > one"),
        bash(harness("finish", task)),
        say("All tasks are completed."),
        words=("/harness run",),
    )
    assert answer.out == "All tasks are completed.\n"
    assert workshop.statuses() == {task: "completed"}
    sent = json.dumps(server.requests[0])
    assert "# Harness" in sent
    assert "The user typed: /harness run" in sent
    held = server.requests[2]["messages"][-1]
    assert held["role"] == "user"
    assert task in held["content"]
    assert "held" in answer.err


@pytest.mark.release
def test_a_session_that_is_held_is_let_go_by_ctrl_c(
    serve: Serve, served: dict[str, str], workshop: Workshop
) -> None:
    workshop.add("Make one", "grep -q done one")
    serve(CHAT, bash(harness("run")), say("Enough."), Step(silent=True), say("Hello."))

    with person(*AUTO, cwd=workshop.top, env=served) as someone:
        someone.types("/harness run\r", when="You:", then="held: ")
        someone.types("\x03", shows="interrupted")
        assert someone.leaves("\x04") == 0


def test_where_no_list_is_under_way_nothing_is_said(work: Go, workshop: Workshop) -> None:
    workshop.add("Make one", "grep -q done one")
    workshop.ok("pause")
    _, answer = work(say("Hello."), words=("hello",))
    assert answer.out == "Hello.\n"
    (session,) = (workshop.home / "sessions").iterdir()
    assert [name for name, _ in bodies(session)] == ["0001-user.md", "0002-assistant.md"]


def test_a_resumed_session_is_told_of_its_list(hs: Hs, serve: Serve, workshop: Workshop) -> None:
    task = workshop.add("Make one", "grep -q done one")
    server = serve(CHAT, bash(harness("run")), bash(harness("pause")), say("Later."))
    hs("--max-turns", "1", "begin", cwd=workshop.top)

    hs("--continue", "--max-turns", "1", "go on", cwd=workshop.top)

    texts = [message["content"] for message in server.requests[1]["messages"] if message["role"] == "user"]
    assert any(task in text for text in texts[1:]), texts


def test_an_agent_of_a_run_is_not_held(work: Go, workshop: Workshop) -> None:
    workshop.add("Make one", "grep -q done one")
    _, answer = work(bash(harness("run")), say("Stop."), env={"HARNESS_DISABLED": "1"})
    assert answer.out == "Stop.\n"


def test_no_tool_edits_the_list_by_hand(work: Go, workshop: Workshop) -> None:
    workshop.add("Make one", "grep -q done one")
    (workshop.top / "sub").mkdir()
    (workshop.top / "link").symlink_to("harness-tasks.json")
    before = (workshop.top / "harness-tasks.json").read_bytes()
    server, answer = work(
        use("write_file", path="harness-tasks.json", content="{}"),
        use("write_file", path="sub/../link", content="{}"),
        use("replace", path="sub/../link", old="pending", new="completed", all=True),
        use("read_file", path="harness-tasks.json"),
        use("write_file", path="mine", content="mine"),
        bash(harness("pause")),
        say("Done."),
    )
    assert answer.out == "Done.\n"
    results = [str(request["messages"][-1]["content"]) for request in server.requests[1:6]]
    assert ["is kept by harness" in text for text in results] == [True, True, True, False, False]
    assert "Make one" in results[3]
    assert (workshop.top / "harness-tasks.json").read_bytes() == before
    assert (workshop.top / "mine").is_file()


@pytest.mark.parametrize("workshop", ["concurrent"], indirect=True)
def test_work_renews_the_lease_of_a_task(work: Go, workshop: Workshop) -> None:
    task = workshop.add("Make one", "grep -q done one")
    claim, pause = bash(f"HARNESS_LEASE_SECONDS=600 {harness('claim')}"), bash(harness("pause"))
    server, answer = work(claim, pause, say("Later."), env={"HARNESS_LEASE_SECONDS": "36000"})
    assert answer.out == "Later.\n"

    def hours() -> float:
        ends = datetime.fromisoformat(workshop.task(task)["lease_expires_at"].replace("Z", "+00:00"))
        return (ends - datetime.now(timezone.utc)).total_seconds() / 3600

    workshop.wait_for(f"the lease is not renewed: {server.requests[1]['messages'][-1]}", lambda: hours() > 9)
