"""What is drawn on the terminal: answers while they stream and when they are complete, and thoughts."""

from __future__ import annotations

from pathlib import Path

from tests.hs.person import person
from tests.loop.conftest import ANTHROPIC, CHAT, Serve
from tests.loop.servers.script import Step, Use, say


def test_markdown_is_drawn_when_the_answer_is_complete(serve: Serve, project: Path) -> None:
    text = "# A title\n\nSome **bold** words and a [link](http://127.0.0.1/else).\n\n```python\nx = 1\n```\n"
    server = serve(CHAT, say(text))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen("Some bold words and a link (http://127.0.0.1/else).")
        someone.rests()
        # Once, and nothing of what has streamed is left beside it.
        assert someone.screen.count("A title") == 1
        assert "```" not in someone.screen
        someone.leaves("\x04")


def test_an_answer_is_seen_while_it_streams(serve: Serve, project: Path) -> None:
    lines = "\n".join(f"line {number}" for number in range(100))
    server = serve(CHAT, Step(text=lines, events=5, hangs=True))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        # The end of what has come so far, above the line that can be typed in.
        someone.has_on_screen("line 9")
        someone.types("half")
        someone.has_on_screen("You: half")
        assert "line 0\n" not in someone.screen
        someone.types("\x03")
        someone.has_on_screen("interrupted")
        someone.leaves("\x04\x15\x04")


def test_what_a_model_and_a_tool_say_moves_no_cursor(serve: Serve, project: Path) -> None:
    evil = "\x1b[2J\x1b]0;title\x07\x1b[31m\x9b2J\rharmless"
    (project / "evil").write_text(evil, encoding="utf-8")
    server = serve(
        CHAT,
        Step(text=f"Text {evil}", uses=(Use("bash", {"command": f"cat evil; # {evil}"}),)),
        Step(status=400, said=f"Error {evil}"),
    )

    with person("--approve", "auto", cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen("Text")
        someone.has_on_screen("Error")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.leaves("\x04")

    for escape in ("\x1b[2J", "\x1b]0;", "\x9b", "\x07"):
        assert escape not in someone.raw
    assert someone.plain.count("harmless") >= 3


def test_the_line_follows_the_size_of_the_window(serve: Serve, project: Path) -> None:
    server = serve(CHAT, say("word " * 40))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("a message that is longer than the window will be")
        someone.has_on_screen("will be")
        someone.resizes(30, 12)
        someone.has_on_screen("…")
        someone.types("\r")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.until(lambda: server.requests)
        someone.has_on_screen("word word")
        someone.resizes(100, 30)
        someone.has_on_screen("tokens 10 in, 5 out")
        someone.leaves("\x04")

    assert server.requests[0]["messages"][-1]["content"] == "a message that is longer than the window will be"


def test_what_the_encoding_of_the_terminal_lacks_ends_nothing(serve: Serve, project: Path) -> None:
    server = serve(CHAT, say("Fünf · 日本 …"), say("Went on."))
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    with person(cwd=project, env=CHAT.environment(server) | plain) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen("F?nf")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("go on\r")
        someone.has_on_screen("Went on.")
        assert someone.leaves("\x04") == 0


def test_an_answer_that_breaks_is_shown_once(serve: Serve, project: Path) -> None:
    server = serve(CHAT, Step(text="Half of the answer", events=2), say("The whole answer."))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen("Asking again in")
        someone.has_on_screen("Half", gone=True)
        someone.has_on_screen("The whole answer.")
        someone.leaves("\x04")


def test_thoughts_are_shown_before_the_answer(serve: Serve, project: Path) -> None:
    server = serve(ANTHROPIC, Step(thinking="I wonder about it.", text="Here it is."))

    with person(cwd=project, env=ANTHROPIC.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen("Here it is.")
        someone.rests()
        assert someone.screen.index("I wonder about it.") < someone.screen.index("Here it is.")
        assert someone.screen.count("I wonder about it.") == 1
        someone.leaves("\x04")
