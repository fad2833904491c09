"""Subagents: what they cost is the cost of who has sent them, and limits hold for both together."""

from __future__ import annotations

import json
from pathlib import Path

from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say, use
from tests.loop.source_files import write_models

# An answer of the test's server costs so much.
PRICES, EACH = "m price_in=1000 price_out=100 price_cached=10", 0.00654


def parent_of(home: Path) -> Path:
    """Return the session that no subagent made."""
    (session,) = (
        path
        for path in (home / ".harness" / "sessions").iterdir()
        if "parent=" not in (path / "session.conf").read_text(encoding="utf-8")
    )
    return session


def result_of(home: Path) -> str:
    (result,) = (parent_of(home) / "messages").glob("*-tool_result.md")
    return result.read_text(encoding="utf-8")


def test_what_a_subagent_costs_is_its_parents_cost(hs: Hs, serve: Serve, home: Path) -> None:
    write_models(home / ".harness", PRICES)
    server = serve(
        CHAT,
        use("agent", prompt="Have it counted."),
        use("agent", prompt="Count."),
        say("Seven."),
        say("It says seven."),
        say("They say seven."),
    )

    answer = hs("-p", "--json", "ask", env=CHAT.environment(server) | {"HARNESS_MODEL": "m"})

    result = json.loads(answer.out.splitlines()[-1])
    assert result["output"] == "They say seven.", answer.err
    assert result["cost"] == round(5 * EACH, 6)
    assert (result["tokens_in"], result["tokens_out"]) == (50, 25)
    assert "\ntokens_in: 30\ntokens_out: 15\ncost: 0.019620\n" in result_of(home)
    assert f"cost={5 * EACH:.4f}\n" in hs("session", "show", parent_of(home).name).out


def test_a_subagent_may_spend_what_its_parent_has_left(hs: Hs, serve: Serve, home: Path) -> None:
    write_models(home / ".harness", PRICES)
    server = serve(CHAT, use("agent", prompt="Count."), use("bash", command="ls"), say("never"))

    answer = hs("--max-cost", "0.01", "ask", env=CHAT.environment(server) | {"HARNESS_MODEL": "m"})

    assert answer.code == 1
    assert "The limit of 0.01 dollars is reached" in answer.err
    assert "The limit of 0.003460 dollars" in (parent_of(home) / "subagents.log").read_text(encoding="utf-8")
    assert len(server.requests) == 2


def test_where_nothing_is_left_no_subagent_begins(hs: Hs, serve: Serve, home: Path) -> None:
    write_models(home / ".harness", PRICES)
    server = serve(CHAT, use("agent", prompt="Count."), say("never"))

    answer = hs("--max-cost", "0.005", "ask", env=CHAT.environment(server) | {"HARNESS_MODEL": "m"})

    assert answer.code == 1
    assert "--max-cost" in result_of(home)
    assert len(server.requests) == 1


def test_what_a_killed_subagent_has_cost_is_unknown(hs: Hs, serve: Serve, home: Path) -> None:
    write_models(home / ".harness", PRICES)
    server = serve(CHAT, use("agent", prompt="Count."), use("bash", command="kill -9 $PPID"), say("Done."))

    answer = hs("-p", "--json", "ask", env=CHAT.environment(server) | {"HARNESS_MODEL": "m"})

    assert json.loads(answer.out.splitlines()[-1])["cost"] is None, answer.err
    assert "exit code -9" in result_of(home)


def test_another_model_keeps_the_provider_and_another_provider_brings_its_model(
    hs: Hs, serve: Serve, home: Path
) -> None:
    server = serve(
        CHAT,
        use("agent", prompt="Count.", model="small"),
        say("One."),
        use("agent", prompt="Count.", provider="ours"),
        say("Two."),
        say("Done."),
    )
    providers = home / ".harness" / "providers"
    providers.mkdir(parents=True)
    url = f"{server.address}/v1/chat/completions"
    (providers / "ours.conf").write_text(f"protocol=openai\nmodel=theirs\nurl={url}\n", encoding="utf-8")

    answer = hs("ask", env=CHAT.environment(server) | {"HARNESS_MODEL": "m", "HARNESS_PROVIDER": "openai"})

    assert answer.out == "Done.\n", answer.err
    assert [request["model"] for request in server.requests] == ["m", "small", "m", "theirs", "m"]


def test_nothing_that_a_subagent_starts_is_taken_for_it(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, use("agent", prompt="Count."), use("bash", command="env"), say("One."), say("Done."))

    hs("ask", env=CHAT.environment(server))

    assert "HARNESS_LEVEL=1" in str(server.requests[2])
    assert "HARNESS_ACCOUNT_FILE" not in str(server.requests[2])
