"""Ctrl-C, and what else ends a conversation, in every state: the prompt comes back, nothing is left."""

from __future__ import annotations

import shlex
import signal
import sys
import termios
from pathlib import Path

import pytest

from tests.hs.person import SHELL, Person, person
from tests.loop.conftest import AUTO, CHAT, Conversation, Serve, bodies
from tests.loop.mcp_servers import entry
from tests.loop.servers.script import Step, bash, say, use
from tests.loop.source_files import write_models, write_servers
from tests.waiting import until

SLEEPS = bash("echo $$ > pid; sleep 300")


def pid_of(someone: Person) -> int:
    """Wait for a tool to say its process id."""
    path = someone.cwd / "pid"
    someone.until(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())


def ended(pid: int, someone: Person) -> None:
    """Wait until the process `pid` is there no more."""
    someone.until(lambda: not Path(f"/proc/{pid}").exists())


def test_at_the_prompt_it_empties_the_line_which_can_be_had_back(conversation: Conversation) -> None:
    with conversation(say("Heard.")) as someone:
        someone.types("\x03")
        someone.types("a long thought")
        someone.types("\x03", when="You: a long thought")
        someone.has_on_screen("a long thought", gone=True)
        someone.types("\x1b[A")
        someone.types(" indeed\r", when="You: a long thought", shows="Heard.")

    assert someone.model.told(0) == "a long thought indeed"


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
    conversation: Conversation, step: Step, shown: str
) -> None:
    with conversation(step, say("Went on.")) as someone:
        someone.types("go\r", shows=shown)
        someone.until(lambda: someone.model.requests)
        someone.types("\x03", shows="interrupted")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("go on\r", shows="Went on.")

    assert len(someone.model.requests) == 2


def test_during_a_tool_it_ends_all_that_the_tool_has_started(conversation: Conversation) -> None:
    """And twice it waits for no tool that ignores the first."""
    stubborn = bash("trap 'touch heard' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    with conversation(SLEEPS, stubborn, args=AUTO) as someone:
        someone.types("wait\r")
        pid = pid_of(someone)
        someone.types("\x03", shows="interrupted")
        ended(pid, someone)
        (someone.cwd / "pid").unlink()
        someone.types("go on\r")
        pid = pid_of(someone)
        someone.types("\x03")
        someone.until((someone.cwd / "heard").exists)
        someone.types("\x03")
        ended(pid, someone)
        someone.has_on_screen("Ctrl-C: stop", gone=True)

    assert "interrupted: this call did not finish" in str(someone.model.requests[1])


@pytest.mark.release
def test_during_a_call_of_an_mcp_server_it_gives_the_prompt_back(conversation: Conversation) -> None:
    write_servers(slow=entry())
    with conversation(use("mcp__slow__hang"), say("Went on."), args=AUTO) as someone:
        someone.types("wait\r")
        someone.until((someone.cwd / "hanging").exists)
        someone.types("\x03")
        someone.types("go on\r", when="interrupted", shows="Went on.")


def test_during_a_summary_it_gives_the_prompt_back(conversation: Conversation) -> None:
    write_models("gpt-4o context=10000")
    long = say("long " * 3000)
    with conversation(long, long, Step(silent=True)) as someone:
        someone.types("one\r", then="long")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("two\r")
        someone.until(lambda: len(someone.model.requests) == 2)
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("/compact\r")
        someone.until(lambda: len(someone.model.requests) == 3)
        someone.types("\x03", shows="interrupted")

    assert not [name for name, _ in bodies() if "summary" in name]


@pytest.mark.parametrize("how", ["TERM", "the terminal is closed"])
def test_a_conversation_that_is_ended_from_outside_leaves_nothing_running(
    conversation: Conversation, how: str
) -> None:
    with conversation(SLEEPS, args=AUTO) as someone:
        someone.types("wait\r")
        pid = pid_of(someone)
        if how == "TERM":
            someone.process.send_signal(signal.SIGTERM)
            assert someone.leaves() == 130
            assert termios.tcgetattr(someone.leader)[3] & termios.ECHO
        else:
            someone.hangs_up()
            someone.process.wait()
        until("its end", lambda: not Path(f"/proc/{pid}").exists())


def test_ctrl_z_gives_the_shell_back_and_the_conversation_goes_on(
    serve: Serve, served: dict[str, str], project: Path
) -> None:
    server = serve(CHAT, say("Went on."))

    with person(cwd=project, env={"PS1": "shell> ", **served}, program=SHELL) as someone:
        someone.types(f"{shlex.quote(sys.executable)} -m harness_lib.hs\r", when="shell>")
        someone.types("half ", when="You:")
        someone.types("\x1a", when="You: half")
        someone.types("echo $((40 + 2))\r", when="Stopped")
        someone.types("fg\r", when="\n42")
        someone.has_on_screen("You: half")
        # By keys, and not by the lines and signals of a terminal that nobody has taken.
        someone.until(lambda: not termios.tcgetattr(someone.leader)[3] & (termios.ICANON | termios.ECHO))
        someone.types("typed\r")
        someone.types("\x04", when="Went on.", shows="To go on with it:")
        someone.leaves("exit\r")

    assert server.told(0) == "half typed"
