"""What the user sees of an edit before it is done, and of a tool while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import AUTO, Conversation, bodies
from tests.loop.servers.script import bash, say, use
from tests.loop.source_files import write

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b1m\u202e"
ADDS = "    return a + b"
EDIT = use("edit_file", path="calc.py", edits=[{"type": "replace_range", "pos": "2#HR", "content": ADDS}])
REPLACE = use("replace", path="calc.py", old="a - b", new="a + b")


@pytest.fixture
def calc(project: Path) -> Path:
    path = project / "calc.py"
    path.write_text("def add(a, b):\n    return a - b\n")
    return path


def test_the_difference_of_an_edit_stands_coloured_before_the_question(
    conversation: Conversation, calc: Path
) -> None:
    with conversation(EDIT, say("Done.")) as someone:
        someone.types("go\r", shows="or say why not:")
        assert "  -    return a - b\n  +    return a + b\n" in someone.screen
        assert "   def add(a, b):" in someone.screen
        assert f"edit {calc}" in " ".join(someone.plain.split())
        # Red goes, green comes.
        assert "\x1b[31m  -    return a - b" in someone.raw
        assert "\x1b[32m  +    return a + b" in someone.raw
        assert "a - b" in calc.read_text()
        someone.types("y\r", shows="Done.")

    assert "a + b" in calc.read_text()
    # Once: the user has read it.
    assert someone.plain.count("+    return a + b") == 1


def test_an_edit_that_nobody_is_asked_about_shows_its_difference_too(
    conversation: Conversation, calc: Path
) -> None:
    with conversation(REPLACE, say("Done."), args=AUTO) as someone:
        someone.types("go\r", shows="Done.")
        assert "  -    return a - b\n  +    return a + b\n" in someone.screen

    assert "a + b" in calc.read_text()


def test_a_question_of_a_task_and_of_a_subagent_shows_it(conversation: Conversation, calc: Path) -> None:
    with conversation(
        use("agent", prompt="fix it"), REPLACE, say("Fixed."), say("Done."),
        args=("--approve", "ask"), task="go", env={"NO_COLOR": ""},
    ) as someone:  # fmt: skip
        someone.sees("(subagent ")
        someone.sees("-    return a - b")
        someone.sees("+    return a + b")
        assert "\x1b[32m  +    return a + b\x1b[0m" in someone.raw
        someone.types("y\n", when="or say why not:", then="Done.")

    assert "a + b" in calc.read_text()


def test_nothing_in_a_difference_moves_the_cursor(conversation: Conversation, project: Path) -> None:
    write(project / "evil", f"{EVIL}before\n")
    (project / "way").symlink_to(project / "evil")
    with conversation(use("write_file", path="way", content=f"{EVIL}after\n"), say("Done.")) as someone:
        someone.types("go\r", shows="after")
        # What is really written, where a link leads there; the line may be broken between any two words.
        someone.sees("(leads")
        someone.types("y\r", when="or say why not:", shows="Done.")

    for escape in ("\x1b[2J", "\x1b]0;", "\x9b", "\u202e"):
        assert escape not in someone.raw
    assert someone.raw.count("\x07") == 0


PRINTS = bash("printf 'on\\033[2Je\\n'; echo $((40 + 2)); while [ ! -e go ]; do sleep 0.05; done")


def test_what_a_tool_prints_is_seen_while_it_runs_and_told_to_the_model_though_it_is_interrupted(
    conversation: Conversation, project: Path
) -> None:
    with conversation(PRINTS, PRINTS, say("Went on."), args=AUTO) as someone:
        someone.types("go\r", shows="\n42\n")
        assert "bash: printf" in someone.screen
        someone.types("\x03", shows="interrupted: this call did not finish")
        someone.rests()
        assert "\n42\n" in someone.screen
        someone.types("go on\r")
        someone.until(lambda: someone.screen.count("\n42\n") == 2)
        (project / "go").touch()
        someone.has_on_screen("Went on.")

    assert "\x1b[2J" not in someone.raw
    (result,) = someone.model.results(1)
    assert "42\n[interrupted: this call did not finish" in result
    assert "0003-tool_result.md" in [name for name, _ in bodies()]


def test_a_program_that_reads_events_is_told_what_a_tool_prints(conversation: Conversation) -> None:
    with conversation(PRINTS, say("Done."), args=("-p", "--json"), task="go") as someone:
        someone.sees('{"type":"tool_progress","id":"')
        (someone.cwd / "go").touch()
