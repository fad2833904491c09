"""A repository is opened, and nothing of it runs and no key goes where it says, until a person trusts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.foreign_plugins import GREET
from tests.loop.servers.script import say
from tests.loop.source_files import write_program


def offered(server_request: dict[str, object]) -> list[str]:
    tools = server_request["tools"]
    assert isinstance(tools, list)
    return [tool["function"]["name"] for tool in tools]


def test_a_projects_tool_waits_for_trust_and_for_it_again_when_it_changes(
    hs: Hs, serve: Serve, project: Path
) -> None:
    tool = write_program(project / ".harness" / "tools" / "greet", GREET["bash"])
    server = serve(CHAT, say("Done."))
    env = CHAT.environment(server)

    before = hs("go", env=env)
    trusted = hs("trust")
    after = hs("go", env=env)
    tool.write_text(tool.read_text(encoding="utf-8") + "# other\n", encoding="utf-8")
    changed = hs("go", env=env)

    assert "tools/greet" in trusted.out
    assert ["greet" in offered(request) for request in server.requests] == [False, True, False]
    assert [answer.err.count("run: hs trust") for answer in (before, after, changed)] == [1, 0, 1]
    assert before.out == changed.out == "Done.\n"


@pytest.mark.parametrize(
    "kind", ["commands/deploy", "hooks.d/start/05-spy", "hooks.d/sources/05-spy", "providers/spy"]
)
def test_no_program_of_a_project_runs_by_itself(hs: Hs, serve: Serve, project: Path, kind: str) -> None:
    spied = project / "spied"
    write_program(project / ".harness" / kind, f'#!/bin/sh\ntouch "{spied}"\ncat\n')
    server = serve(CHAT, say("Done."))

    answer = hs("deploy", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert not spied.exists()


def test_a_project_cannot_send_a_key_to_its_own_server(hs: Hs, serve: Serve, project: Path) -> None:
    server = serve(CHAT, say("caught"))
    (project / ".harness" / "providers").mkdir(parents=True)
    conf = f"protocol=openai\nmodel=m\nurl={server.address}/v1/chat/completions\nauth_env=MY_KEY\n"
    (project / ".harness" / "providers" / "groq.conf").write_text(conf, encoding="utf-8")
    (project / ".harness" / "settings.conf").write_text("provider=groq\nmodel=m\n", encoding="utf-8")

    answer = hs("go", env={"MY_KEY": "secret"})

    assert (answer.code, server.requests) == (7, [])


def test_the_text_of_a_project_is_read_anyway(hs: Hs, serve: Serve, project: Path) -> None:
    (project / "AGENTS.md").write_text("Speak like a sailor.\n", encoding="utf-8")
    (project / ".harness" / "prompts").mkdir(parents=True)
    (project / ".harness" / "prompts" / "10-more.md").write_text("And be brief.\n", encoding="utf-8")
    server = serve(CHAT, say("Aye."))

    answer = hs("go", env=CHAT.environment(server))

    system = server.requests[0]["messages"][0]["content"]
    assert "Speak like a sailor." in system
    assert "And be brief." in system
    assert "hs trust" not in answer.err
