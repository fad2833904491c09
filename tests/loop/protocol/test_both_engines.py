"""A session changes hands between the original engine and ours, in both directions, as often as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, session_of
from tests.loop.original import Original
from tests.loop.servers.script import ModelServer, Step, Use, say, use
from tests.loop.source_files import write


def env_of(server: ModelServer) -> dict[str, str]:
    return {**CHAT.environment(server), "HARNESS_PROVIDER": "openai"}


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_both_go_on_where_the_other_has_stopped(
    hs: Hs, serve: Serve, home: Path, project: Path, first: str
) -> None:
    turns = [
        step for n in range(4) for step in (use("bash", command=f"echo result {n}"), say(f"Answer {n}."))
    ]
    server = serve(CHAT, *turns)
    url = server.address + CHAT.path
    theirs = Original(home / ".harness/sessions/20260324-143022-12345", url)
    if first == "theirs":
        theirs.begin(project)

    for number in range(4):
        if (number % 2 == 0) == (first == "theirs"):
            assert theirs.turn(f"Question {number}") == f"Answer {number}."
        else:
            name = [theirs.directory.name] if theirs.directory.is_dir() else []
            answer = hs(*name, f"Question {number}", env=env_of(server))
            assert answer.out == f"Answer {number}.\n", answer.err
            theirs = Original(session_of(home), url)

    names = [path.name for path in sorted((theirs.directory / "messages").iterdir())]
    roles = ["user", "assistant", "tool_result", "assistant"] * 4
    assert names == [f"{number:04d}-{role}.md" for number, role in enumerate(roles, 1)]
    sent = str(server.requests[-1]["messages"])
    for number in range(4):
        assert sent.count(f"Question {number}") == sent.count(f"'result {number}'") == 1
    assert sent.count("Answer") == 3


def test_what_we_keep_beside_the_messages_does_not_stop_the_original(
    hs: Hs, serve: Serve, home: Path
) -> None:
    calls = (Use("bash", {"command": "echo one\necho two"}), Use("bash", {"command": "exit 3"}))
    cut = Step(text="half an answer", events=3)
    both = Step(text="Both.", thinking="a thought", uses=calls)
    server = serve(CHAT, both, cut, say("Seen."), say("They."), say("We."))
    hs("look", env=env_of(server))
    session = session_of(home)
    assert any("error" in path.name for path in (session / "messages").iterdir())
    summary = "---\nrole: summary\nseq: 0099\nkeep: 0001\n---\nMuch was said.\n"
    write(session / "messages/0099-summary.md", summary)

    said = Original(session, server.address + CHAT.path).turn("and you?")
    answer = hs(session.name, "and we?", env=env_of(server))

    assert (said, answer.out) == ("They.", "We.\n"), answer.err
    sent = str(server.requests[3]["messages"])
    assert "half an answer" not in sent
    assert "Much was said." not in sent
    assert "[exit status 3]" in sent
    assert (session / "messages/0101-assistant.md").is_file()


def test_arguments_in_several_lines_are_read_as_the_original_meant_them(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    server = serve(
        CHAT,
        Step(uses=(Use("bash", raw='{\n "command":\n  "echo it ran"\n}'),)),
        say("Done."),
        say("Yes."),
    )
    theirs = Original(home / ".harness/sessions/one", server.address + CHAT.path)
    theirs.begin(project)
    theirs.turn("go")

    answer = hs("one", "well?", env=env_of(server))

    assert answer.out == "Yes.\n", answer.err
    call = server.requests[2]["messages"][2]["tool_calls"][0]["function"]
    assert call["name"] == "bash"
    assert "echo it ran" in call["arguments"]
