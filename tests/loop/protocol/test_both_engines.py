"""A session changes hands between the original engine and ours, in both directions, as often as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import ANTHROPIC, CHAT, Hs, Serve, Wire, session_of
from tests.loop.original import Original
from tests.loop.servers.script import Step, Use, say, use
from tests.loop.source_files import write

BOTH = [ANTHROPIC, CHAT]


def env_of(wire: Wire, server: object) -> dict[str, str]:
    return {**wire.environment(server), "HARNESS_PROVIDER": wire.provider}  # type: ignore[arg-type]


@pytest.mark.parametrize("wire", BOTH, ids=lambda wire: wire.name)
@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_both_go_on_where_the_other_has_stopped(
    hs: Hs, serve: Serve, home: Path, project: Path, wire: Wire, first: str
) -> None:
    turns = [
        step for n in range(4) for step in (use("bash", command=f"echo result {n}"), say(f"Answer {n}."))
    ]
    server = serve(wire, *turns)
    url = server.address + wire.path
    theirs = Original(home / ".harness/sessions/20260324-143022-12345", url, wire.provider)
    if first == "theirs":
        theirs.begin(project)

    for number in range(4):
        if (number % 2 == 0) == (first == "theirs"):
            assert theirs.turn(f"Question {number}") == f"Answer {number}."
        else:
            name = [theirs.directory.name] if theirs.directory.is_dir() else []
            answer = hs(*name, f"Question {number}", env=env_of(wire, server))
            assert answer.out == f"Answer {number}.\n", answer.err
            theirs = Original(session_of(home), url, wire.provider)

    names = [path.name for path in sorted((theirs.directory / "messages").iterdir())]
    roles = ["user", "assistant", "tool_result", "assistant"] * 4
    assert names == [f"{number:04d}-{role}.md" for number, role in enumerate(roles, 1)]
    sent = str(server.requests[-1]["messages"])
    for number in range(4):
        assert sent.count(f"Question {number}") == sent.count(f"'result {number}'") == 1
    assert sent.count("Answer") == 3


@pytest.mark.parametrize("wire", BOTH, ids=lambda wire: wire.name)
def test_what_we_keep_beside_the_messages_does_not_stop_the_original(
    hs: Hs, serve: Serve, home: Path, wire: Wire
) -> None:
    calls = (Use("bash", {"command": "echo one\necho two"}), Use("bash", {"command": "exit 3"}))
    cut = Step(text="half an answer", events={"anthropic": 5, "chat": 3}[wire.name])
    both = Step(text="Both.", thinking="a thought", uses=calls)
    server = serve(wire, both, cut, say("Seen."), say("They."), say("We."))
    hs("look", env=env_of(wire, server))
    session = session_of(home)
    assert any("error" in path.name for path in (session / "messages").iterdir())
    summary = "---\nrole: summary\nseq: 0099\nkeep: 0001\n---\nMuch was said.\n"
    write(session / "messages" / "0099-summary.md", summary)

    said = Original(session, server.address + wire.path, wire.provider).turn("and you?")
    answer = hs(session.name, "and we?", env=env_of(wire, server))

    assert (said, answer.out) == ("They.", "We.\n"), answer.err
    sent = str(server.requests[3]["messages"])
    assert "half an answer" not in sent
    assert "Much was said." not in sent
    assert "[exit status 3]" in sent
    assert (session / "messages" / "0101-assistant.md").is_file()


def test_arguments_in_several_lines_are_read_as_the_original_meant_them(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    server = serve(
        CHAT,
        Step(uses=(Use("bash", raw='{\n "command":\n  "echo it ran"\n}'),)),
        say("Done."),
        say("Yes."),
    )
    theirs = Original(home / ".harness/sessions/one", server.address + CHAT.path, "openai")
    theirs.begin(project)
    theirs.turn("go")

    answer = hs("one", "well?", env=env_of(CHAT, server))

    assert answer.out == "Yes.\n", answer.err
    call = server.requests[2]["messages"][2]["tool_calls"][0]["function"]
    assert call["name"] == "bash"
    assert "echo it ran" in call["arguments"]
