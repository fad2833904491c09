"""What is typed behind a slash at the prompt, and how Tab completes it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.hs.person import person
from tests.loop.conftest import ANTHROPIC, CHAT, Conversation, Hs, Serve, bodies, session_of
from tests.loop.servers.script import say
from tests.loop.source_files import write_models

LONG = say("long " * 3000)


def test_compact_summarises_what_was_said(serve: Serve, project: Path, home: Path) -> None:
    write_models(home / ".harness", "gpt-4o context=10000")
    server = serve(CHAT, LONG, LONG, say("They said long."), say("Went on."))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.types("/compact\r", when="You:", shows="not summarised: there is too little")
        for cost in ("$0.00007", "$0.00014"):
            someone.types("more\r", when="You:", shows=f"cost {cost}")
            someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("/compact\r")
        someone.types("go on\r", when="The conversation so far was summarised (0005-summary.md).")
        someone.has_on_screen("Went on.")
        assert someone.leaves("/exit\r") == 0

    assert "They said long." in str(server.requests[-1])
    assert "long long" not in str(server.requests[-1])
    assert [name for name, _ in bodies(session_of(home))][4] == "0005-summary.md"


def test_another_session_is_gone_on_in_and_the_first_is_free(
    hs: Hs, serve: Serve, project: Path, home: Path
) -> None:
    server = serve(CHAT, say("Long ago."), say("Here."), say("There."), say("Free."))
    env = CHAT.environment(server)
    hs("begin", env=env)
    before = session_of(home)

    with person("--approve", "auto", cwd=project, env=env) as someone:
        someone.types("hello\r", when="You:")
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
        assert hs(other.name, "free?", env=env).out == "Free.\n"
        assert hs(before.name, "free?", env=env).code == 5
        assert someone.leaves("\x04") == 0

    assert [body.strip() for _, body in bodies(before)] == ["begin", "Long ago.", "go on", "There."]


def test_tab_completes_before_what_is_typed_behind_it_and_takes_one_word_after_another(
    conversation: Conversation,
) -> None:
    with conversation(say("Not a word for the model.")) as (someone, server):
        someone.types("/mod\t gpt-4.1-mi\t\r")
        someone.types("/to\t\r", when="gpt-4.1-mini (openai)", shows="read_file")
        someone.types("/mod\t gpt-4o\t")
        # The others are shown below.
        someone.types("\t", when="  gpt-4o-mini")
        someone.types("\t", when="You: /model gpt-4o\n")
        someone.types("\r", when="You: /model gpt-4o-mini\n", shows="gpt-4o-mini (openai)")

    assert server.requests == []


def test_a_model_of_another_provider_is_asked_there(serve: Serve, project: Path, home: Path) -> None:
    first, second = serve(ANTHROPIC, say("From one.")), serve(CHAT, say("From the other."))
    env = ANTHROPIC.environment(first) | CHAT.environment(second)

    with person(cwd=project, env=env) as someone:
        someone.types("hello\r", when="You:")
        someone.types("/model gpt-4o-min\t", when="From one.")
        someone.types("\r", when="You: /model gpt-4o-mini")
        someone.types("hello\r", when="gpt-4o-mini (openai)")
        someone.types("/model groq/one\r", when="From the other.", shows="GROQ_API_KEY")
        assert "None" not in someone.screen
        someone.types("/model\r")
        someone.until(lambda: someone.screen.count("gpt-4o-mini (openai)") == 2)
        someone.types("/model anthropic/cl\t")
        someone.types("\r", when="You: /model anthropic/claude-", shows="(anthropic)")
        assert someone.leaves("\x04") == 0

    assert second.requests[0]["model"] == "gpt-4o-mini"
    assert "provider=anthropic\n" in (session_of(home) / "session.conf").read_text(encoding="utf-8")
