"""The user is asked before a call runs: what is an answer, and what the words of the user come to."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from harness_lib.loop.tools import asking
from harness_lib.loop.tools.asking import Question, Said
from tests.hs.person import SLOW
from tests.loop.conftest import Conversation
from tests.loop.in_process import begun
from tests.loop.servers.script import bash, say, use
from tests.loop.source_files import at_home, write_script

ASKED = ("--approve", "ask")


@pytest.mark.parametrize("task", ["go", ""], ids=["in a task", "at the prompt"])
def test_the_user_says_yes_always_and_no_with_a_reason(conversation: Conversation, task: str) -> None:
    with conversation(
        bash("echo \x1b[2J\x1b[Hharmless"), bash("touch one"),
        bash("mkdir two"), bash("mkdir three"),
        use("replace", path="one", old="", new="x"), bash("touch four"), say("Done."),
        args=ASKED, task=task,
    ) as someone:  # fmt: skip
        if not task:
            someone.types("go\r")
        someone.types("n\r", when="or say why not:")
        someone.types("y\r", when="command: touch one")
        someone.types("a\r", when="a = always (bash mkdir)")
        someone.types("n\r", when="a = always (replace)")
        someone.types("not on a Sunday\r", when="command: touch four", shows="Done.")

    assert {path.name for path in someone.cwd.iterdir()} == {"one", "two", "three"}
    results = someone.model.results(-1)
    assert ["denied: the user said no" in result for result in results] == [True, *[False] * 3, True, True]
    assert "denied: the user said no: not on a Sunday" in results[-1]
    assert someone.raw.count("may bash run?") == 4
    # What is asked moves no cursor.
    assert "\x1b[2J" not in someone.raw


def test_always_answers_also_the_question_that_waits_behind(project: Path) -> None:
    """Subagents that work at the same time ask about the same program."""
    run = begun(project)
    question = Question("bash", {"command": "touch a"})
    said: list[Said] = []
    other = threading.Thread(target=lambda: said.append(asking.put(run, question)))
    is_asked_again = threading.Event()

    def answers(_: Question) -> Said:
        if other.ident is None:
            other.start()
            is_asked_again.wait(0.3)
        else:
            is_asked_again.set()
        return Said(allowed=True, always=True)

    run.asker = answers
    assert asking.put(run, question).allowed
    other.join()
    assert (said, is_asked_again.is_set()) == ([Said(allowed=True)], False)


def test_what_is_typed_before_a_question_is_no_answer(conversation: Conversation, project: Path) -> None:
    slow = bash("touch runs; while [ ! -e go ]; do sleep 0.05; done")
    with conversation(slow, bash("touch made"), say("Done."), args=ASKED, task="go") as someone:
        someone.sees("or say why not:")
        someone.types("y\n")
        someone.until((project / "runs").exists)
        someone.types("yes\n", then="yes\n")
        (project / "go").touch()
        someone.sees("touch made")
        someone.sees("or say why not:")
        someone.types("not this\n", then="Done.")

    assert not (project / "made").exists()


def test_a_question_that_is_seen_can_be_answered(conversation: Conversation, project: Path) -> None:
    os.mkfifo(project / "awake")
    steps = (bash("touch made"), say("Done."))
    with conversation(*steps, args=("work",), program=SLOW) as someone:
        someone.types("go\r")
        someone.types("not now", when="may bash run?")
        someone.types("\rand this\r", when="or say why not: not now", shows="waits: and this")
        (project / "awake").open("w").close()
        someone.has_on_screen("Done.")

    assert "denied: the user said no: not now" in str(someone.model.requests[1])
    assert someone.model.told(1) == "and this"


def test_what_was_sent_before_a_question_could_be_seen_is_no_answer(
    conversation: Conversation, project: Path
) -> None:
    gate = at_home("hooks.d/tool_gate/00-before")
    write_script(gate, f"touch '{project}/asking'\ncat")
    steps = (bash("touch made"), say("Done."))
    with conversation(*steps, args=("line",), program=SLOW) as someone:
        someone.types("go\r")
        someone.until((project / "waits").exists)
        someone.types("y\rhalf", shows="waits: y")
        someone.has_on_screen("may bash run?")
        someone.types("no\r", when="or say why not:", shows="Done.")
        someone.has_on_screen("You: half")
        someone.leaves("\x15\x04")

    assert not (project / "made").exists()
    assert "denied: the user said no" in str(someone.model.requests[1])
    assert someone.model.told(1) == "y"


def test_what_is_half_typed_is_no_answer_and_is_there_again_behind_it(conversation: Conversation) -> None:
    slow = bash("while [ ! -e go ]; do sleep 0.05; done")
    with conversation(slow, bash("touch made"), say("Done."), say("Sent.")) as someone:
        someone.types("go\r")
        someone.types("y\r", when="or say why not:")
        someone.types("y", when="bash: while", shows="You: y")
        (someone.cwd / "go").touch()
        someone.types("\r", when="touch made", shows="denied: the user said no")
        someone.has_on_screen("Done.")
        someone.types("es\r", when="You: y", shows="Sent.")

    assert not (someone.cwd / "made").exists()
    assert someone.model.told(3) == "yes"


@pytest.mark.release
def test_a_question_of_a_subagent_that_is_stopped_is_gone(conversation: Conversation, project: Path) -> None:
    gate = at_home("hooks.d/tool_gate/00-before")
    # The question comes when the line was sent: otherwise that would be an answer.
    waits = f"case $call in *'touch made'*) while [ ! -e '{project}/go' ]; do sleep 0.05; done; esac"
    write_script(gate, f'call=$(cat)\n{waits}\nprintf "%s" "$call"')
    with conversation(use("agent", prompt="make it"), bash("touch made"), say("Went on.")) as someone:
        someone.types("go\r")
        someone.types("and this\r", when="agent: make it", shows="waits: and this")
        (project / "go").touch()
        someone.has_on_screen("(subagent ")
        someone.types("\x03", when="or say why not:", shows="interrupted")
        someone.has_on_screen("or say why not:", gone=True)
        someone.types("\x15y\r", when="You: and this", shows="Went on.")

    assert not (project / "made").exists()
    assert someone.model.told(-1) == "y"
