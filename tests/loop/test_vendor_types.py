"""Requests are what the vendors' own packages take for one, whatever the session has been through."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import ANTHROPIC, CHAT, Hs, Serve, Wire
from tests.loop.servers.script import Step, Use, bash, say
from tests.loop.source_files import write

# The types of two vendors take their time to be imported.
pytestmark = [pytest.mark.timeout(300), pytest.mark.release]

AT_WORK = Step(
    text="Let me see.",
    thinking="Two things.",
    uses=(Use("bash", {"command": "echo one"}), Use("read_file", {"path": "missing"})),
)


def test_every_request_of_a_session_holds_to_the_vendors_types(
    wire: Wire, hs: Hs, serve: Serve, project: Path
) -> None:
    from tests.loop.servers import vendor  # noqa: PLC0415 (takes seconds, and only this test needs it)

    write(project / "AGENTS.md", "Be brief.\n")
    # A session that began at another host: its calls are told from the Markdown.
    other = ANTHROPIC if wire.name != "anthropic" else CHAT
    serve(other, AT_WORK, say("Done there."))
    assert hs("begin").code == 0
    server = serve(wire, AT_WORK, bash("false"), say("Done."), say("Bye."))
    env = {"HARNESS_THINKING": "high", "ANTHROPIC_PROMPT_CACHE": "1"}
    for words in ("go on", "and now?"):
        done = hs("--continue", "--provider", wire.provider, "--model", "gpt-5", words, env=env)
        assert done.code == 0, done.err

    assert len(server.requests) == 4
    assert [vendor.complaint(wire.name, body) for body in server.requests] == [""] * 4


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("anthropic", {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        ("anthropic", {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "", "x": 1}]}),
        ("chat", {"model": "m", "messages": [{"role": "tool", "content": "x"}]}),
        ("responses", {"model": "m", "input": [{"type": "function_call", "call_id": "c"}]}),
    ],
)
def test_the_types_refuse_what_is_wrong(name: str, body: dict[str, object]) -> None:
    from tests.loop.servers import vendor  # noqa: PLC0415 (as above)

    assert vendor.complaint(name, body)
