"""Options of a task: what they choose, what is none of them, and where they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say, use


def test_model_tools_and_system_are_what_was_asked_for(hs: Hs, serve: Serve, project: Path) -> None:
    (project / "AGENTS.md").write_text("Be brief.\n", encoding="utf-8")
    server = serve(CHAT, use("write_file", path="made", content="x"), say("Done."))
    asked = ("--model=model-two", "--tools", "bash,read_file", "--system", "You are a parrot.")

    answer = hs(*asked, "do it", env=CHAT.environment(server))

    request = server.requests[0]
    assert answer.code == 0, answer.err
    assert request["model"] == "model-two"
    assert [tool["function"]["name"] for tool in request["tools"]] == ["bash", "read_file"]
    assert request["messages"][0]["content"].startswith("You are a parrot.\n\nBe brief.")
    assert not (project / "made").exists()
    assert "not found" in str(server.requests[1])


@pytest.mark.parametrize(
    "args",
    [
        ("--frobnicate", "x"),
        ("--max-turns", "many", "x"),
        ("--max-cost", "-1", "x"),
        ("--tools", "hammer", "x"),
        ("--resume", "nowhere", "x"),
        ("--continue", "x"),
        ("--model",),
    ],
)
def test_a_wrong_option_is_a_mistake_in_the_command_and_makes_no_session(
    hs: Hs, serve: Serve, home: Path, args: tuple[str, ...]
) -> None:
    answer = hs(*args, env=CHAT.environment(serve(CHAT, say("x"))))

    assert (answer.code, answer.out) == (2, "")
    assert not (home / ".harness" / "sessions").exists()


def test_behind_two_dashes_all_are_words(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say("It is an option."))

    answer = hs("--", "--json", "what is it?", env=CHAT.environment(server))

    assert (answer.code, answer.out) == (0, "It is an option.\n"), answer.err
    assert server.requests[0]["messages"][-1]["content"] == "--json what is it?"
