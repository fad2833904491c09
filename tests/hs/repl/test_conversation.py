"""The user who talks to `hs` on a real terminal: what is drawn, and the line of status."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hs.person import SLOW, STARTED, person
from tests.loop.conftest import ANTHROPIC, AUTO, Conversation, Go, bodies, session_of
from tests.loop.foreign_plugins import write_echo_pack
from tests.loop.servers.script import Step, Use, bash, say
from tests.loop.source_files import at_home, write, write_models, write_servers


def test_a_conversation_goes_on_until_the_user_leaves(conversation: Conversation) -> None:
    with conversation(say("Hello **you**."), say("Again.")) as someone:
        someone.types("hello\r", then="Hello you.")
        someone.sees("You:")
        someone.types("\x1b[200~two\nlines\x1b[201~\r", then="Again.")
        someone.sees("You:")
        someone.types("/tools\r", then="read_file")
        someone.sees("You:")
        code = someone.leaves("/quit\r")

    assert code == 0
    assert len(someone.model.requests) == 2
    said = [body.strip() for name, body in bodies() if "user" in name]
    assert said == ["hello", "two\nlines"]
    assert "gpt-4o" in someone.plain


def test_the_user_is_asked_and_may_stop_all_at_the_question(conversation: Conversation) -> None:
    both = (bash("touch one"), bash("touch two"))
    with conversation(*both, say("Stopped, then.")) as someone:
        someone.types("do both\r", then="or say why not:")
        someone.types("y\n", then="touch two")
        someone.sees("or say why not:")
        someone.types("\x03", then="interrupted")
        someone.sees("You:")
        someone.types("and?\r", then="Stopped, then.")

    assert {path.name for path in someone.cwd.iterdir()} == {"one"}


def test_a_session_goes_on_at_the_prompt_with_another_model(go: Go, conversation: Conversation) -> None:
    server, _ = go(say("First."), say("Second."), words=("begin",))

    with conversation(args=("repl", session_of().name)) as someone:
        # What was said last, for whoever has forgotten it.
        someone.sees("You: begin")
        someone.sees("First.")
        someone.sees("You:")
        someone.types("/model model-two\r", then="model-two (openai)")
        someone.sees("You:")
        someone.types("go on\r", then="Second.")
        someone.leaves("\x04")
        assert f"To go on with it: hs --resume {session_of().name}" in someone.plain

    assert server.requests[1]["model"] == "model-two"
    assert "First." in str(server.requests[1])
    assert len(list(session_of().glob("messages/*"))) == 4


def test_what_we_notice_is_said_above_the_line(conversation: Conversation) -> None:
    write_servers(absent={"command": "/no/such/program"})
    with conversation(say("Done.")) as someone:
        someone.types("go\r", shows="the MCP server absent is left out")
        someone.has_on_screen("Done.")


def test_the_answer_of_a_provider_that_does_not_stream_is_shown(conversation: Conversation) -> None:
    write_echo_pack()
    with conversation(args=("--provider", "echo")) as someone:
        someone.types("hello\r", then="echo-1: hello")


def test_a_session_in_which_nothing_was_said_is_not_kept(go: Go, conversation: Conversation) -> None:
    go(say("Hello."), words=("begin",))
    before = session_of()

    with conversation() as someone:
        someone.types("/tools\r", shows="read_file")
    assert session_of() == before
    # One that is gone on in stays, whether anything is said or not.
    with conversation(args=("--continue",)):
        pass
    assert len(bodies(before)) == 2

    with conversation():
        (unused,) = (each for each in before.parent.iterdir() if each != before)
        # A file of somebody else's stays, and with it the session.
        write(unused / "notes.txt", "mine")
    assert {path.name for path in unused.iterdir()} >= {"notes.txt", "session.conf"}


def test_a_message_is_sent_also_where_what_was_typed_cannot_be_kept(conversation: Conversation) -> None:
    """As on a full disk; where home cannot be written at all, the prompt says so."""
    at_home("repl_history").mkdir(parents=True)
    with conversation(say("Done.")) as someone:
        someone.types("hi\r", shows="Done.")


def test_a_terminal_that_can_draw_nothing_is_told_so(project: Path) -> None:
    with person(cwd=project, env={"OPENAI_API_URL": "http://127.0.0.1:9", "TERM": "dumb"}) as someone:
        assert someone.leaves() == 2

    assert "can draw nothing" in someone.raw
    assert "\x1b" not in someone.raw


def test_a_session_that_a_tool_deletes_ends_the_turn_and_not_the_conversation(
    conversation: Conversation,
) -> None:
    with conversation(
        # Again where hs has noted meanwhile, in the session, that the command runs.
        bash(f"until rm -rf {at_home()}/sessions/*; do :; done"),
        say("Never said."),
        args=AUTO,
    ) as someone:
        someone.types("go\r", shows="It has been removed")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("/help\r", shows="Tab completes")

    assert len(someone.model.requests) == 1


def test_markdown_is_drawn_when_the_answer_is_complete(conversation: Conversation) -> None:
    text = "# A title\n\nSome **bold** words and a [link](http://127.0.0.1/else).\n\n```python\nx = 1\n```\n"
    with conversation(say(text)) as someone:
        someone.types("go\r", shows="Some bold words and a link (http://127.0.0.1/else).")
        someone.rests()
        # Once, and nothing of what has streamed is left beside it.
        assert someone.screen.count("A title") == 1
        assert "```" not in someone.screen


def test_without_colours_only_weight_and_underlining_are_left(conversation: Conversation) -> None:
    with conversation(say("**Heavy** and `code`"), env={"NO_COLOR": "1"}) as someone:
        someone.types("go\r", shows="Heavy and code")
        someone.rests()
    # 3x, 4x and 9x are colours.
    assert not re.search(r"\x1b\[([0-9]+;)*[349][0-9][;m]", someone.raw)


def test_an_answer_is_seen_while_it_streams(conversation: Conversation) -> None:
    lines = "\n".join(f"line {number}" for number in range(100))
    with conversation(Step(text=lines, events=5, hangs=True)) as someone:
        someone.types("go\r")
        # The end of what has come so far, above the line that can be typed in.
        someone.types("half", when="line 9", shows="You: half")
        assert "line 0\n" not in someone.screen
        someone.types("\x03", shows="interrupted")
        someone.leaves("\x04\x15\x04")


def test_what_a_model_and_a_tool_say_moves_no_cursor(conversation: Conversation, project: Path) -> None:
    evil = "\x1b[2J\x1b]0;title\x07\x1b[31m\x9b2J\rharmless"
    write(project / "evil", evil)
    with conversation(
        Step(text=f"Text {evil}", uses=(Use("bash", {"command": f"cat evil; # {evil}"}),)),
        Step(status=400, said=f"Error {evil}"),
        args=AUTO,
    ) as someone:
        someone.types("go\r", shows="Text")
        someone.has_on_screen("Error")
        someone.has_on_screen("Ctrl-C: stop", gone=True)

    for escape in ("\x1b[2J", "\x1b]0;", "\x9b", "\x07"):
        assert escape not in someone.raw
    assert someone.plain.count("harmless") >= 3


def test_the_line_follows_the_size_of_the_window(conversation: Conversation) -> None:
    with conversation(say("word " * 40)) as someone:
        someone.types("a message that is longer than the window will be", shows="will be")
        someone.resizes(30, 12)
        someone.types("\r", when="…")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.until(lambda: someone.model.requests)
        someone.has_on_screen("word word")
        someone.resizes(100, 30)
        someone.has_on_screen("tokens 10 in, 5 out")

    assert someone.model.told(0) == "a message that is longer than the window will be"


def test_of_a_very_long_line_both_ends_are_drawn_and_all_of_it_is_sent(conversation: Conversation) -> None:
    line = f"begins {'x' * 40_000} ends"
    with conversation(say("Done.")) as user:
        # Drawing all of it would take the package several calls for each character.
        user.types(f"\x1b[200~{line}\x1b[201~", when="You:", shows="(36012 more characters)")
        user.types("\r", shows="Done.")

    assert user.model.told(0) == line


def test_a_question_is_whole_in_a_narrow_window(conversation: Conversation) -> None:
    with conversation(bash("git status"), say("Done.")) as user:
        user.resizes(40, 30)
        user.types("go\r")
        for words in ("y = once", "a = always", "s = save", "why not:"):
            user.has_on_screen(words)
        user.types("not now\r")
        user.has_on_screen("Done.")
        user.rests()


@pytest.mark.release
def test_what_the_encoding_of_the_terminal_lacks_ends_nothing(conversation: Conversation) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with conversation(say("Fünf · 日本 …"), say("Went on."), env=plain, program=STARTED) as someone:
        someone.types("go\r", shows="F?nf")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("go on\r", shows="Went on.")


def test_an_answer_that_breaks_is_shown_once(conversation: Conversation) -> None:
    with conversation(Step(text="Half of the answer", events=2), say("The whole answer.")) as someone:
        someone.types("go\r", shows="Asking again in")
        someone.has_on_screen("Half", gone=True)
        someone.has_on_screen("The whole answer.")


def test_thoughts_are_shown_before_the_answer(conversation: Conversation) -> None:
    with conversation(Step(thinking="I wonder about it.", text="Here it is."), wire=ANTHROPIC) as someone:
        someone.types("go\r", shows="Here it is.")
        someone.rests()
        assert someone.screen.index("I wonder about it.") < someone.screen.index("Here it is.")
        assert someone.screen.count("I wonder about it.") == 1


def test_whether_something_is_under_way_is_seen_at_once(conversation: Conversation) -> None:
    with conversation(Step(silent=True), say("Done."), args=("work",), program=SLOW) as someone:
        someone.rests()
        someone.types("go\r", shows="Ctrl-C: stop")
        someone.until(lambda: someone.model.requests)
        someone.types("\x03", shows="interrupted")
        someone.rests()
        someone.types("go on\r", shows="Done.")
        someone.rests()


def test_the_status_tells_model_context_tokens_and_cost(conversation: Conversation) -> None:
    write_models("big- context=200000 price_in=1 price_out=2")
    with conversation(say("One."), say("Two."), env={"HARNESS_MODEL": "big-one"}) as someone:
        someone.types("go\r", when="big-one  context 0 of 200k  tokens 0 in, 0 out  cost $0")
        someone.types(
            "/model other\r", when="big-one  context 15 of 200k  tokens 10 in, 5 out  cost $0.00002"
        )
        someone.types("go\r", when="other  context 15  tokens 10 in, 5 out  cost $0.00002")
        someone.has_on_screen("other  context 15  tokens 20 in, 10 out  cost unknown")


def test_the_status_tells_another_model_as_soon_as_there_is_one(conversation: Conversation) -> None:
    with conversation(args=("work",), program=SLOW) as someone:
        someone.types("/model gpt-4o-mini\r", when=" gpt-4o  context 0", shows=" gpt-4o-mini  context 0")
