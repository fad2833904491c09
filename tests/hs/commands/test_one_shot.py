"""`hs` for scripts: events, limits, and what comes on standard input."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.loop.conftest import CHAT, Hs, Serve, session_of
from tests.loop.environment import environment
from tests.loop.servers.script import Step, say, use

# `hs` that waits for no input to begin, and says when it reads to the end of it.
IMPATIENT = """
import sys
from harness_lib.hs import main
from harness_lib.hs.commands import task
task._WAIT_SECONDS = 0.0
read = sys.stdin.read
def reads():
    print("hs reads", file=sys.stderr, flush=True)
    return read()
sys.stdin.read = reads
sys.exit(main.entry())
"""


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_events_stand_one_in_a_line_and_the_result_is_the_last(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, use("bash", command="echo hello"), say("All done."))

    answer = hs("-p", "--json", "RUN it", env=CHAT.environment(server))

    printed = events(answer.out)
    kinds = [event["type"] for event in printed]
    assert answer.code == 0, answer.err
    assert kinds[0] == "session"
    assert {"tool_start", "tool_done", "text", "usage", "done"} <= set(kinds)
    assert printed[-1] == {
        "type": "result",
        "output": "All done.",
        "session": session_of(home).name,
        "stop": "end",
        "tokens_in": 20,
        "tokens_out": 10,
        "cost": printed[-1]["cost"],
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
        [sys.executable, "-c", IMPATIENT, "why?", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        cwd=project, env=environment(CHAT.environment(server)),
    ) as process:  # fmt: skip
        assert process.stderr
        assert process.stderr.readline() == "hs reads\n"
        out, _ = process.communicate("a late log\n", timeout=90)

    assert out == "Because.\n"
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


def test_without_a_provider_one_line_says_what_to_do(hs: Hs) -> None:
    answer = hs("hello")
    assert answer.code == 7
    assert answer.err.count("no ready provider found") == 1, answer.err
    assert "hook resolve" not in answer.err
