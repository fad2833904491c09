"""What the user types while `hs` works: kept, shown as waiting, and sent where they said."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harness_lib.hs import session_store
from harness_lib.hs.repl import conversation as conversation_of
from harness_lib.loop import processes, request
from harness_lib.loop.processes import Interrupted
from tests.loop.conftest import ANTHROPIC, AUTO, Conversation, Go, bodies, session_of
from tests.loop.in_process import begun
from tests.loop.servers.script import bash, say
from tests.loop.source_files import write

WAITS = bash("while [ ! -e go ]; do sleep 0.05; done; echo went")
LATER = "\x1b\r"


def test_enter_sends_it_behind_the_running_tools_and_alt_enter_when_the_turn_ends(
    conversation: Conversation, project: Path
) -> None:
    with conversation(WAITS, say("Both seen."), say("The third, too."), args=AUTO, wire=ANTHROPIC) as someone:
        someone.types("first\r")
        someone.types(f"third{LATER}", when="bash: while")
        someone.types("second\r", when="waits: third", shows="waits: second")
        (project / "go").touch()
        someone.has_on_screen("The third, too.")
        someone.has_on_screen("waits:", gone=True)

    assert [body.strip() for name, body in bodies() if "user" in name] == ["first", "second", "third"]
    roles = " ".join(name[5:-3] for name, _ in bodies())
    assert roles == "user assistant tool_result user assistant user assistant"
    assert "second" in str(someone.model.requests[1])
    assert "third" not in str(someone.model.requests[1])
    assert len(someone.model.requests) == 3


def test_what_is_half_typed_stays_while_answers_are_shown(conversation: Conversation, project: Path) -> None:
    with conversation(WAITS, say("# Shown\n\nabove it"), say("Sent."), args=AUTO) as someone:
        someone.types("first\r")
        someone.types("half ", when="bash: while", shows="You: half")
        (project / "go").touch()
        someone.has_on_screen("above it")
        someone.types("typed\r", when="You: half", shows="Sent.")

    assert someone.model.told(-1) == "half typed"


def test_what_waits_is_typed_again_when_the_turn_is_stopped(conversation: Conversation) -> None:
    with conversation(WAITS, say("Went on."), args=AUTO) as someone:
        someone.types("first\r")
        someone.types("second\r", when="bash: while")
        someone.types("third", when="waits: second")
        someone.types("\x03", shows="interrupted")
        someone.types("\r", when="You: second", shows="Went on.")

    assert len(someone.model.requests) == 2
    assert someone.model.told(1) == "second\nthird"


def test_what_is_sent_behind_ctrl_c_is_done_and_what_waited_before_is_typed_again(
    conversation: Conversation,
) -> None:
    with conversation(WAITS, say("Went on."), args=AUTO) as someone:
        someone.types("first\r")
        someone.types("second\r", when="bash: while")
        someone.types("\x03third\r", when="waits: second", shows="Went on.")
        someone.rests("second")
        someone.leaves("\x15\x04")

    assert len(someone.model.requests) == 2
    assert someone.model.told(1) == "third"


def test_what_is_typed_behind_the_way_to_another_session_is_said_there(
    go: Go, conversation: Conversation
) -> None:
    go(say("Long ago."), say("There."), words=("begin",))
    before = session_of()

    with conversation() as someone:
        someone.types(f"/session {before.name}\rgo on\rhalf", shows="There.")
        someone.rests("half")
        someone.leaves("\x15\x04")

    assert [body.strip() for _, body in bodies(before)] == ["begin", "Long ago.", "go on", "There."]


def test_our_own_commands_wait_for_the_end_of_the_turn(conversation: Conversation, project: Path) -> None:
    with conversation(WAITS, say("Done with it."), args=AUTO) as someone:
        someone.types("first\r")
        someone.types("/session\r", when="bash: while")
        # Ctrl-D is the wish to leave, and waits, too.
        someone.types("\x04", when="waits: /session", shows="waits: /quit")
        (project / "go").touch()
        code = someone.leaves()

    assert code == 0
    assert someone.plain.index("Done with it.") < someone.plain.index(str(session_of()))
    assert "/session" not in str(someone.model.requests)


def test_a_skill_that_is_called_meanwhile_is_loaded(conversation: Conversation, project: Path) -> None:
    write("skills/tell/SKILL.md", "---\nname: tell\ndescription: Tell\n---\nTell all of it.\n")

    with conversation(WAITS, say("Told."), args=AUTO) as someone:
        someone.types("first\r")
        someone.types("/te\t", when="bash: while")
        someone.types(" now\r", when="You: /tell", shows="waits: /tell now")
        (project / "go").touch()
        someone.has_on_screen("Told.")

    assert "Tell all of it." in someone.model.told(1)


def test_what_the_turn_has_just_taken_is_not_lost_by_ctrl_c(project: Path) -> None:
    run = begun(project)
    session = session_store.create(run)
    run.enter(session)

    def takes() -> list[str]:
        processes.interrupt(signal.SIGINT, None)
        return ["heard"]

    run.typed_meanwhile = takes
    with pytest.raises(Interrupted):
        request.tell_typed(run, {})

    assert [message.body.strip() for message in session.messages()] == ["heard"]


def test_ctrl_c_takes_back_what_waits_before_the_turn_can_end(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(project)
    run.enter(session_store.create(run))
    talk = conversation_of.Conversation(run, ["next"])
    monkeypatch.setattr(talk._under_way, "interrupt", lambda: not talk._typed.waiting)

    with talk._under_way:
        assert talk.stopped()
