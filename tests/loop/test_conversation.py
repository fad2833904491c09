"""A person who talks to `hs` on a real terminal."""

from __future__ import annotations

import time
from pathlib import Path

from tests.loop.conftest import WIRES, Serve, bodies, session_of
from tests.loop.person import person
from tests.loop.servers.script import say, use

CHAT = WIRES[1]


def test_a_conversation_goes_on_until_the_person_leaves(serve: Serve, project: Path, home: Path) -> None:
    server = serve(CHAT, say("Hello **you**."), say("Again."))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.sees("You:")
        someone.types("hello\r")
        someone.sees("Hello you.")
        someone.sees("You:")
        someone.types("\x1b[200~two\nlines\x1b[201~\r")
        someone.sees("Again.")
        someone.sees("You:")
        someone.types("/tools\r")
        someone.sees("read_file")
        someone.sees("You:")
        code = someone.leaves("/quit\r")

    assert code == 0
    assert len(server.requests) == 2
    said = [body.strip() for name, body in bodies(session_of(home)) if "user" in name]
    assert said == ["hello", "two\nlines"]
    assert "gpt-4o" in someone.plain


def test_ctrl_c_ends_the_tool_and_gives_the_prompt_back(serve: Serve, project: Path) -> None:
    server = serve(CHAT, use("bash", command="touch began; sleep 60"), say("Went on."))

    with person("--approve", "auto", cwd=project, env=CHAT.environment(server)) as someone:
        someone.sees("You:")
        someone.types("\x03")
        someone.sees("You:")
        someone.types("wait\r")
        end = time.monotonic() + 60
        while not (project / "began").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        someone.types("\x03")
        someone.sees("interrupted")
        someone.sees("You:")
        someone.types("go on\r")
        someone.sees("Went on.")
        someone.sees("You:")
        code = someone.leaves("\x04")

    assert code == 0
    assert "interrupted: this call did not finish" in str(server.requests[1])


def test_a_person_is_asked_and_may_stop_all_at_the_question(serve: Serve, project: Path) -> None:
    server = serve(
        CHAT, use("bash", command="touch one"), use("bash", command="touch two"), say("Stopped, then.")
    )

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.sees("You:")
        someone.types("do both\r")
        someone.sees("or say why not:")
        someone.types("y\n")
        someone.sees("touch two")
        someone.sees("or say why not:")
        someone.types("\x03")
        someone.sees("interrupted")
        someone.sees("You:")
        someone.types("and?\r")
        someone.sees("Stopped, then.")
        code = someone.leaves("\x04")

    assert code == 0
    assert {path.name for path in project.iterdir()} == {"one"}


def test_a_session_goes_on_at_the_prompt_with_another_model(serve: Serve, project: Path, home: Path) -> None:
    server = serve(CHAT, say("First."), say("Second."))
    with person("begin", cwd=project, env=CHAT.environment(server)) as someone:
        someone.leaves()

    with person("resume", cwd=project, env=CHAT.environment(server)) as someone:
        someone.sees("You:")
        someone.types("/model model-two\r")
        someone.sees("model-two (openai)")
        someone.sees("You:")
        someone.types("go on\r")
        someone.sees("Second.")
        someone.leaves("\x04")

    assert server.requests[1]["model"] == "model-two"
    assert "First." in str(server.requests[1])
    assert len(list(session_of(home).glob("messages/*"))) == 4
