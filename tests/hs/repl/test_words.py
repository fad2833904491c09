"""Words that are not for the model as they stand: /NAME, @FILE and !COMMAND."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness_lib.loop.session import Session
from tests.conftest import for_release
from tests.hs.person import person
from tests.loop.conftest import ANTHROPIC, AUTO, CHAT, Conversation, Go, Hs, Serve, bodies, session_of
from tests.loop.servers.script import bash, say
from tests.loop.source_files import at_home, write, write_models

WAITS = bash("while [ ! -e go ]; do sleep 0.05; done")


def test_an_unknown_word_behind_a_slash_says_so_and_costs_nothing(
    conversation: Conversation, project: Path
) -> None:
    """Nor does a command that takes no words: a first message behind `/new` would be lost."""
    write(project / "there", "")
    with conversation(say("Seen."), say("Both seen.")) as someone:
        someone.types("/cots\r", shows="There is no /cots. Did you mean /cost?")
        for word in ("/new", "/clear", "/quit"):
            someone.types(f"{word} fix it\r", shows=f"{word} takes no words.")
            someone.rests()
        assert someone.model.requests == []
        # A path is no such word.
        someone.types("/dev/null and /x\r", shows="Seen.")
        someone.types("/tmp is full\r", shows="Both seen.")

    assert len(someone.model.requests) == 2
    assert not list(at_home().glob("bug-*"))


def test_an_unknown_word_is_not_told_to_a_turn_that_is_under_way(conversation: Conversation) -> None:
    with conversation(WAITS, say("Done."), args=AUTO) as someone:
        someone.types("go\r")
        someone.types("/modle\r", when="bash: while")
        someone.types("!echo $((40 + 2))\r", when="waits: /modle", shows="waits: !echo")
        (someone.cwd / "go").touch()
        someone.has_on_screen("Did you mean /model?")
        # What follows is done.
        someone.has_on_screen("\n42")

    assert "/modle" not in str(someone.model.requests)
    assert len(someone.model.requests) == 2


def test_a_task_with_an_unknown_word_is_refused_before_anything_is_sent(go: Go) -> None:
    server, answer = go(say("never"), words=("/harnes", "run"))

    assert (answer.code, server.requests) == (2, [])
    assert "There is no /harnes. Did you mean /harness?" in answer.err
    assert list(at_home("sessions").iterdir()) == []


@pytest.mark.parametrize("word", ["/new", *for_release("/clear")])
def test_a_new_session_begins_and_the_one_before_can_be_resumed(
    conversation: Conversation, word: str
) -> None:
    # The environment names the model of the first session only.
    env = {"HARNESS_MODEL": "gpt-4o"}
    with conversation(say("First."), say("Second."), say("Third."), env=env) as someone:
        someone.types("/model gpt-4o-mini\r")
        someone.types("one\r", when="gpt-4o-mini (openai)", shows="First.")
        before = session_of()
        someone.types(f"{word}\r")
        someone.types("two\r", when=f"To go on with the one before: /session {before.name}", shows="Second.")
        assert ("First." in someone.screen) is (word == "/new")
        someone.types(f"/session {before.name}\r", shows=f"session: {before.name}")
        someone.types("three\r", shows="Third.")

    assert [request["model"] for request in someone.model.requests] == ["gpt-4o-mini"] * 3
    assert "First." not in str(someone.model.requests[1])
    assert "First." in str(someone.model.requests[2])
    assert len(list(before.parent.iterdir())) == 2


def test_cost_is_told_for_each_model_and_in_all(conversation: Conversation) -> None:
    write_models("big- context=200000 price_in=1 price_out=2")
    with conversation(say("One."), say("Two."), say("Three."), env={"HARNESS_MODEL": "big-one"}) as someone:
        someone.types("go\r")
        someone.types("go\r", when="One.")
        someone.types("/model free\r", when="Two.")
        someone.types("go\r", when="free (openai)")
        someone.types("/cost\r", when="Three.", shows="this session")
        lines = [" ".join(line.split()) for line in someone.screen.splitlines()]

    assert "big-one 2 requests, 20 tokens in (8 from the cache), 10 out, $0.00004" in lines
    assert "free 1 request, 10 tokens in (4 from the cache), 5 out, cost unknown" in lines
    assert "this session 3 requests, 30 tokens in (12 from the cache), 15 out, cost unknown" in lines
    assert len(someone.model.requests) == 3


def test_a_file_is_completed_and_attached(conversation: Conversation, project: Path) -> None:
    write(project / "src/calc.py", "def add(a, b):\n    return a - b\n")
    write(project / ".hidden", "")
    write(project / "my notes/of today.txt", "It rains.\n")
    with conversation(say("Seen."), say("Read.")) as someone:
        someone.types("what is in @s\t")
        someone.types("ca\t", when="You: what is in @src/")
        someone.types(", then?\r", when="@src/calc.py", shows="attached: src/calc.py")
        someone.has_on_screen("Seen.")
        someone.types("and @m\t")
        someone.types("of\t", when='You: and @"my notes/')
        someone.types("\r", when='@"my notes/of today.txt"', shows="attached: my notes/of today.txt")
        someone.has_on_screen("Read.")

    assert "It rains." in someone.model.told(1)
    told = someone.model.told(0)
    assert told.startswith("what is in @src/calc.py, then?\n\n")
    # As read_file shows it, so that it can be edited at once.
    assert '<file path="src/calc.py">\n1#HS:def add(a, b):\n2#HR:    return a - b\n</file>' in told


def test_a_file_is_attached_to_a_task_and_what_is_none_stays_a_word(go: Go, project: Path) -> None:
    write(project / "a file", "its text\n")
    (project / "data").write_bytes(b"\xff\xfe")
    words = 'see @"a file", @data and me@a, @dataclass, @~nobody-there/x @' + "x" * 300
    server, answer = go(say("Done."), words=(words,), stdin="@data of a program\n")

    told = server.told(0)
    assert told.startswith(words)
    assert "its text" in told
    assert told.endswith("</file>\n\n@data of a program")
    assert told.count("<file ") == 1
    assert "@data is not attached" in answer.err


def test_no_credentials_are_attached(go: Go, home: Path) -> None:
    write(home / ".ssh/id", "secret key\n")
    write(home / "notes", "secret key\n")
    write("settings.json", '{"permissions": {"deny": ["Read(~/notes)"]}}')
    server, answer = go(say("Done."), words=("see @~/.ssh/id and @~/.ssh and @~/notes",))

    assert "secret key" not in str(server.requests)
    assert "<file" not in str(server.requests)
    assert answer.err.count("is not attached") == 3


def test_a_command_of_the_user_runs_unasked_and_the_model_is_told(conversation: Conversation) -> None:
    """Of one that was stopped, too, what it had printed."""
    with conversation(say("Seen.")) as someone:
        someone.types("!echo $((40 + 2)) | tee made\r", shows="\n42\n")
        someone.rests()
        someone.types("!echo $((50 + 3)); sleep 300\r", shows="\n53\n")
        someone.types("\x03", shows="\ninterrupted")
        someone.rests()
        assert someone.model.requests == []
        someone.types("and?\r", shows="Seen.")

    assert (someone.cwd / "made").exists()
    told = str(someone.model.requests[0]["messages"]).replace("\\n", "\n")
    assert "I ran this command:\n\n$ echo $((40 + 2)) | tee made\n42" in told
    assert "53\n[interrupted" in told
    assert [name[:-3] for name, _ in bodies()] == ["0001-user", "0002-user", "0003-user", "0004-assistant"]


def test_sessions_are_listed_with_their_titles_for_user_and_by_name_for_a_program(
    go: Go, hs: Hs, project: Path
) -> None:
    write(project / "notes", "x\n")
    go(say("Done."), words=("find the \x1b[2Jmistake in @notes",))
    name = session_of().name

    with person("session", "list", cwd=project, env={}) as someone:
        someone.sees(f"{name}  find the ")
        someone.sees("mistake in @notes")
        assert someone.leaves() == 0
    assert "x" not in someone.plain.partition("@notes")[2]
    assert "\x1b[2J" not in someone.raw
    assert hs("session", "list").out == f"{name}\n"


def test_a_skill_that_was_called_gives_the_session_its_words_as_title(go: Go, project: Path) -> None:
    write(project / ".agents/skills/tell/SKILL.md", "---\nname: tell\n---\nTell all of it.\n")
    go(say("Done."), words=("/tell", "me"))

    assert Session(session_of()).title == "/tell me"


LONG = say("long " * 3000)


def test_compact_summarises_what_was_said(conversation: Conversation) -> None:
    write_models("gpt-4o context=10000")
    with conversation(LONG, LONG, say("They said long."), say("Went on.")) as someone:
        someone.types("/compact\r", shows="not summarised: there is too little")
        for cost in ("$0.00007", "$0.00014"):
            someone.types("more\r", when="You:", shows=f"cost {cost}")
            someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("/compact\r")
        someone.types("go on\r", when="The conversation so far was summarised (0005-summary.md).")
        someone.has_on_screen("Went on.")
        assert someone.leaves("/exit\r") == 0

    assert "They said long." in str(someone.model.requests[-1])
    assert "long long" not in str(someone.model.requests[-1])
    assert [name for name, _ in bodies()][4] == "0005-summary.md"


def test_another_session_is_gone_on_in_and_the_first_is_free(
    hs: Hs, go: Go, conversation: Conversation
) -> None:
    go(say("Long ago."), say("Here."), say("There."), say("Free."), words=("begin",))
    before = session_of()

    with conversation(args=AUTO) as someone:
        someone.types("hello\r")
        someone.types("/session no-such\r", when="Here.")
        someone.types("/ses\t", when="There is no session no-such.")
        # Above it stands what was typed before.
        someone.until(lambda: someone.screen.endswith("You: /session"))
        someone.types(f" {before.name[:8]}\t")
        # Names differ in length, as they end with the number of a process.
        someone.until(lambda: re.search(f"  {before.name} +begin", someone.screen) is not None)
        someone.types("\x15")
        someone.types(f"/session {before.name}\r")
        someone.types("go on\r", when=f"session: {before.name}", shows="There.")
        (other,) = (each for each in before.parent.iterdir() if each != before)
        assert hs(other.name, "free?").out == "Free.\n"
        assert hs(before.name, "free?").code == 5

    assert [body.strip() for _, body in bodies(before)] == ["begin", "Long ago.", "go on", "There."]


def test_tab_completes_before_what_is_typed_behind_it_and_takes_one_word_after_another(
    conversation: Conversation,
) -> None:
    with conversation(say("Not a word for the model.")) as someone:
        someone.types("/mod\t gpt-4.1-mi\t\r")
        someone.types("/to\t\r", when="gpt-4.1-mini (openai)", shows="read_file")
        someone.types("/mod\t gpt-4o\t")
        # The others are shown below.
        someone.types("\t", when="  gpt-4o-mini")
        someone.types("\t", when="You: /model gpt-4o\n")
        someone.types("\r", when="You: /model gpt-4o-mini\n", shows="gpt-4o-mini (openai)")

    assert someone.model.requests == []


def test_a_model_of_another_provider_is_asked_there(serve: Serve, conversation: Conversation) -> None:
    serve(ANTHROPIC, say("From one."))
    second = serve(CHAT, say("From the other."))
    with conversation() as someone:
        someone.types("hello\r")
        someone.types("/model openai/gpt-4o-min\t", when="From one.")
        someone.types("\r", when="You: /model openai/gpt-4o-mini")
        someone.types("hello\r", when="gpt-4o-mini (openai)")
        someone.types("/model groq/one\r", when="From the other.", shows="GROQ_API_KEY")
        assert "None" not in someone.screen
        someone.types("/model\r")
        someone.until(lambda: someone.screen.count("gpt-4o-mini (openai)") == 2)
        someone.types("/model anthropic/cl\t")
        someone.types("\r", when="You: /model anthropic/claude-", shows="(anthropic)")

    assert second.requests[0]["model"] == "gpt-4o-mini"
    assert "provider=anthropic\n" in (session_of() / "session.conf").read_text()
