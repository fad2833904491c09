"""Ctrl-C, and what else ends a conversation, in every state: the prompt comes back, nothing is left."""

from __future__ import annotations

import signal
import termios
import time
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.hs.person import HS, PATIENCE, SHELL, Person, person
from tests.loop.conftest import CHAT, Serve, bodies, session_of
from tests.loop.mcp_servers import entry
from tests.loop.servers.script import Step, say, use
from tests.loop.source_files import write_models, write_servers

SLEEPS = use("bash", command="echo $$ > pid; sleep 300")


def pid_of(project: Path, someone: Person) -> int:
    """Wait for a tool to say its process id."""
    path = project / "pid"
    someone.until(lambda: path.exists() and path.read_text(encoding="utf-8").strip())
    return int(path.read_text(encoding="utf-8"))


def ended(pid: int, someone: Person) -> None:
    """Wait until the process `pid` is there no more."""
    someone.until(lambda: not Path(f"/proc/{pid}").exists())


def test_at_the_prompt_it_empties_the_line_which_can_be_had_back(serve: Serve, project: Path) -> None:
    server = serve(CHAT, say("Heard."))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("\x03")
        someone.types("a long thought")
        someone.has_on_screen("You: a long thought")
        someone.types("\x03")
        someone.has_on_screen("a long thought", gone=True)
        someone.types("\x1b[A")
        someone.has_on_screen("You: a long thought")
        someone.types(" indeed\r")
        someone.has_on_screen("Heard.")
        assert someone.leaves("\x04") == 0

    assert server.requests[0]["messages"][-1]["content"] == "a long thought indeed"


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (Step(silent=True), "Ctrl-C: stop"),
        (Step(text="The beginning of it", events=3, hangs=True), "The"),
        (Step(status=429, headers=(("retry-after", "50"),)), "Asking again in 50 s"),
    ],
    ids=["before the answer", "in the answer", "between two tries"],
)
def test_while_the_model_is_asked_it_gives_the_prompt_back(
    serve: Serve, project: Path, step: Step, shown: str
) -> None:
    server = serve(CHAT, step, say("Went on."))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen(shown)
        someone.until(lambda: server.requests)
        someone.types("\x03")
        someone.has_on_screen("interrupted")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("go on\r")
        someone.has_on_screen("Went on.")
        assert someone.leaves("\x04") == 0

    assert len(server.requests) == 2


def test_during_a_tool_it_ends_all_that_the_tool_has_started(serve: Serve, project: Path) -> None:
    server = serve(CHAT, SLEEPS, say("Went on."))

    with person("--approve", "auto", cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("wait\r")
        pid = pid_of(project, someone)
        someone.types("\x03")
        someone.has_on_screen("interrupted")
        ended(pid, someone)
        someone.types("go on\r")
        someone.has_on_screen("Went on.")
        assert someone.leaves("\x04") == 0

    assert "interrupted: this call did not finish" in str(server.requests[1])


def test_twice_it_waits_for_no_tool_that_ignores_the_first(serve: Serve, project: Path) -> None:
    stubborn = use("bash", command="trap 'touch heard' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    server = serve(CHAT, stubborn, say("Went on."))

    with person("--approve", "auto", cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("wait\r")
        pid = pid_of(project, someone)
        someone.types("\x03")
        someone.until((project / "heard").exists)
        someone.types("\x03")
        someone.has_on_screen("interrupted")
        ended(pid, someone)
        assert someone.leaves("\x04") == 0


def test_during_a_call_of_an_mcp_server_it_gives_the_prompt_back(
    serve: Serve, home: Path, project: Path
) -> None:
    write_servers(home / ".harness", slow=entry(program="hanging_mcp_server.py"))
    server = serve(CHAT, use("mcp__slow__hang"), say("Went on."))

    with person("--approve", "auto", cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("wait\r")
        someone.until((project / "hanging").exists)
        someone.types("\x03")
        someone.has_on_screen("interrupted")
        someone.types("go on\r")
        someone.has_on_screen("Went on.")
        assert someone.leaves("\x04") == 0


def test_during_a_summary_it_gives_the_prompt_back(serve: Serve, project: Path, home: Path) -> None:
    write_models(home / ".harness", "gpt-4o context=10000")
    long = say("long " * 3000)
    server = serve(CHAT, long, long, Step(silent=True))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("one\r")
        someone.sees("long")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("two\r")
        someone.until(lambda: len(server.requests) == 2)
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("/compact\r")
        someone.until(lambda: len(server.requests) == 3)
        someone.types("\x03")
        someone.has_on_screen("interrupted")
        assert someone.leaves("\x04") == 0

    assert not [name for name, _ in bodies(session_of(home)) if "summary" in name]


@pytest.mark.parametrize("how", ["TERM", "the terminal is closed"])
def test_a_conversation_that_is_ended_from_outside_leaves_nothing_running(
    serve: Serve, project: Path, how: str
) -> None:
    server = serve(CHAT, SLEEPS)

    with person("--approve", "auto", cwd=project, env=CHAT.environment(server)) as someone:
        before = termios.tcgetattr(someone.leader)
        someone.has_on_screen("You:")
        someone.types("wait\r")
        pid = pid_of(project, someone)
        if how == "TERM":
            someone.process.send_signal(signal.SIGTERM)
            assert someone.leaves() == 130
            assert termios.tcgetattr(someone.leader)[3] & termios.ECHO == before[3] & termios.ECHO
        else:
            someone.hangs_up()
            someone.process.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < end
            time.sleep(0.02)


def test_ctrl_z_gives_the_shell_back_and_the_conversation_goes_on(serve: Serve, project: Path) -> None:
    server = serve(CHAT, say("Went on."))
    env = {"PS1": "shell> ", "PYTHONPATH": str(CHECKOUT), **CHAT.environment(server)}

    with person(cwd=project, env=env, through=SHELL) as someone:
        someone.has_on_screen("shell>")
        someone.types(f"{' '.join(HS)}\r")
        someone.has_on_screen("You:")
        someone.types("half ")
        someone.has_on_screen("You: half")
        someone.types("\x1a")
        someone.has_on_screen("Stopped")
        someone.types("echo $((40 + 2))\r")
        someone.has_on_screen("\n42")
        someone.types("fg\r")
        someone.has_on_screen("You: half")
        someone.types("typed\r")
        someone.has_on_screen("Went on.")
        someone.types("\x04")
        someone.has_on_screen("To go on with it:")
        someone.leaves("exit\r")

    assert server.requests[0]["messages"][-1]["content"] == "half typed"
