"""`hs` for scripts: options, events, limits, and the session that is meant."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.loop.conftest import WIRES, Hs, Serve, bodies, session_of
from tests.loop.environment import environment
from tests.loop.servers.script import Step, say, use

CHAT = WIRES[1]


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_events_stand_one_in_a_line_and_the_result_is_the_last(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, use("bash", command="echo hello"), say("All done."))

    answer = hs("-p", "--json", "RUN it", env=CHAT.environment(server))

    found = events(answer.out)
    kinds = [event["type"] for event in found]
    assert answer.code == 0, answer.err
    assert kinds[0] == "session"
    assert {"tool_start", "tool_done", "text", "usage", "done"} <= set(kinds)
    assert found[-1] == {
        "type": "result",
        "output": "All done.",
        "session": session_of(home).name,
        "stop": "end",
        "tokens_in": 20,
        "tokens_out": 10,
        "cost": found[-1]["cost"],
        "error": None,
    }


def test_a_program_is_told_of_every_failure_by_the_last_event(hs: Hs, serve: Serve) -> None:
    refused = serve(CHAT, Step(status=401, said="invalid key of yours"))

    answer = hs("--json", "do it", env=CHAT.environment(refused))
    nobody = hs("--json", "do it")

    last = events(answer.out)[-1]
    assert (answer.code, last["type"], last["stop"], last["output"]) == (1, "result", "error", "")
    assert "invalid key of yours" in last["error"]
    assert (nobody.code, events(nobody.out)[-1]["stop"]) == (7, "error")
    assert "OPENAI_API_KEY" in events(nobody.out)[-1]["error"]


def test_requests_are_limited_and_the_session_goes_on_afterwards(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, use("bash", command="true"), use("bash", command="true"), say("Done."))
    env = CHAT.environment(server)

    answer = hs("--json", "--max-turns", "2", "RUN it", env=env)
    again = hs("--resume", session_of(home).name, "go on", env=env)

    assert (answer.code, events(answer.out)[-1]["stop"]) == (1, "max_turns")
    assert (again.code, again.out) == (0, "Done.\n"), again.err
    assert len(server.requests) == 3


def test_a_limit_of_cost_without_a_price_ends_before_a_second_request(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, use("bash", command="true"), say("Done."))

    answer = hs(
        "--json", "--max-cost=0.5", "--model", "nobody-knows-its-price", "RUN", env=CHAT.environment(server)
    )

    last = events(answer.out)[-1]
    assert (answer.code, last["stop"], last["cost"]) == (1, "max_cost", None)
    assert "no price is known for nobody-knows-its-price" in last["error"]
    assert len(server.requests) == 1


def test_model_tools_and_system_are_what_was_asked_for(hs: Hs, serve: Serve, project: Path) -> None:
    (project / "AGENTS.md").write_text("Be brief.\n", encoding="utf-8")
    server = serve(CHAT, use("write_file", path="made", content="x"), say("Done."))
    asked = ("--model=model-two", "--tools", "bash,read_file", "--system", "You are a parrot.")

    answer = hs(*asked, "do it", env=CHAT.environment(server))

    request = server.requests[0]
    assert answer.code == 0, answer.err
    assert request["model"] == "model-two"
    assert [tool["function"]["name"] for tool in request["tools"]] == ["bash", "read_file"]
    assert request["messages"][0]["content"].startswith("You are a parrot.\n\nBe brief.")
    assert not (project / "made").exists()
    assert "not found" in str(server.requests[1])


@pytest.mark.parametrize(
    "args",
    [
        ("--frobnicate", "x"),
        ("--max-turns", "many", "x"),
        ("--max-cost", "-1", "x"),
        ("--tools", "hammer", "x"),
        ("--resume", "nowhere", "x"),
        ("--continue", "x"),
        ("--model",),
    ],
)
def test_a_wrong_option_is_a_mistake_in_the_command_and_makes_no_session(
    hs: Hs, serve: Serve, home: Path, args: tuple[str, ...]
) -> None:
    answer = hs(*args, env=CHAT.environment(serve(CHAT, say("x"))))

    assert (answer.code, answer.out) == (2, "")
    assert not (home / ".harness" / "sessions").exists()


def test_behind_two_dashes_all_are_words(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say("It is an option."))

    answer = hs("--", "--json", "what is it?", env=CHAT.environment(server))

    assert (answer.code, answer.out) == (0, "It is an option.\n"), answer.err
    assert server.requests[0]["messages"][-1]["content"] == "--json what is it?"


def test_continue_passes_by_a_session_in_which_nothing_was_said(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    server = serve(CHAT, say("One."), say("Two."))
    env = CHAT.environment(server)
    hs("begin", env=env)
    before = session_of(home)
    # As an editor leaves one that nobody has used.
    unused = before.with_name("20990101-000000-1")
    (unused / "messages").mkdir(parents=True)
    (unused / "session.conf").write_text(f"id={unused.name}\ncwd={project}\n", encoding="utf-8")

    assert hs("--continue", "and now?", env=env).out == "Two.\n"
    assert len(bodies(before)) == 4


def test_continue_is_the_newest_session_of_this_directory(hs: Hs, serve: Serve, tmp_path: Path) -> None:
    server = serve(CHAT, say("Here."), say("Elsewhere."), say("Again."))
    env = CHAT.environment(server)
    other = tmp_path / "other"
    other.mkdir()
    hs("begin here", env=env)
    hs("begin elsewhere", env=env, cwd=other)

    answer = hs("--continue", "and now?", env=env)

    assert answer.out == "Again.\n", answer.err
    assert "begin here" in str(server.requests[2])
    assert "begin elsewhere" not in str(server.requests[2])


def test_resume_is_the_session_that_changed_last(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say("First."), say("Second."))
    hs("begin", env=CHAT.environment(server))

    answer = hs("resume", "go on", env=CHAT.environment(server))

    assert answer.out == "Second.\n", answer.err
    assert "First." in str(server.requests[1])


def test_a_fork_goes_on_from_a_message_and_leaves_the_original_alone(
    hs: Hs, serve: Serve, home: Path
) -> None:
    server = serve(CHAT, say("Blue."), say("Green."), say("Red."))
    env = CHAT.environment(server)
    hs("a colour", env=env)
    first = session_of(home)
    hs(first.name, "another", env=env)

    made = hs("session", "fork", first.name, "2").out.strip()
    answer = hs(made, "a third", env=env)

    assert answer.out == "Red.\n", answer.err
    sent = str(server.requests[2])
    assert "Blue." in sent
    assert "Green." not in sent
    assert len(bodies(first)) == 4
    assert hs("session", "fork", first.name, "9").code == 2


def test_show_sums_what_was_spent_and_export_tells_all(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, use("bash", command="echo hello"), say("Done."))
    hs("RUN it", "--model", "nobody-knows-its-price", env=CHAT.environment(server))
    name = session_of(home).name

    shown = hs("session", "show", name).out
    text = hs("session", "export", name).out
    whole = json.loads(hs("session", "export", name, "--json").out)
    assert json.loads(hs("session", "export", "--json", name).out) == whole

    assert "tokens_in=20\ntokens_out=10\ncost=unknown\n" in shown
    assert all(words in text for words in ("RUN it", "hello", "Done."))
    assert [message["role"] for message in whole["messages"]] == [
        "user", "assistant", "tool_result", "assistant",
    ]  # fmt: skip


def test_rm_takes_the_session_and_its_subagents_but_none_in_use(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, use("agent", prompt="help"), say("Helped."), say("Done."))
    hs("RUN it", env=CHAT.environment(server))
    store = home / ".harness" / "sessions"
    (name,) = hs("session", "list").out.split()
    holder = "import fcntl,sys;f=open(sys.argv[1]);fcntl.flock(f,2);print('held',flush=True);input()"
    lock = str(store / name / ".lock")
    with subprocess.Popen(
        [sys.executable, "-c", holder, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as held:
        assert held.stdout
        held.stdout.readline()
        refused = hs("session", "rm", name)
        held.communicate(b"\n")

    assert refused.code == 5
    assert len(list(store.iterdir())) == 2
    assert hs("session", "rm", name).code == 0
    assert list(store.iterdir()) == []


def test_a_pipe_that_nobody_writes_to_does_not_keep_a_task_waiting(serve: Serve, project: Path) -> None:
    server = serve(CHAT, say("Done."))
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "harness_lib.hs", "do it"],
            stdin=reading, capture_output=True, encoding="utf-8", timeout=90, check=False,
            cwd=project, env=environment(CHAT.environment(server)),
        )  # fmt: skip
    finally:
        os.close(reading)
        os.close(writing)

    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert "nothing came on standard input" in done.stderr


def test_input_that_takes_its_time_is_waited_for_when_asked(serve: Serve, project: Path) -> None:
    server = serve(CHAT, say("Because."))
    with subprocess.Popen(
        [sys.executable, "-m", "harness_lib.hs", "why?", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project,
        env=environment(CHAT.environment(server)),
    ) as process:  # fmt: skip
        time.sleep(4)
        out, _ = process.communicate(b"a late log\n", timeout=90)

    assert out == b"Because.\n"
    assert "a late log" in str(server.requests[0])


def test_on_a_terminal_the_answer_streams_and_moves_no_cursor(serve: Serve, project: Path) -> None:
    server = serve(CHAT, use("bash", command=r"printf '\033]0;owned\a'"), say("All \x1b[2Jdone."))
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "harness_lib.hs", "RUN it"],
        stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, timeout=90, check=False,
        cwd=project, env=environment(CHAT.environment(server)),
    )  # fmt: skip
    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)

    assert done.returncode == 0, shown
    assert shown.count("done.") == 1
    assert "\x1b" not in shown
