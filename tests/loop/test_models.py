"""Models: what is known of one decides how much may be asked of it and what an answer has cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import ANTHROPIC, CHAT, Hs, Serve, Wire, session_of
from tests.loop.servers.script import say
from tests.loop.source_files import write_models

LIMIT = {"anthropic": "max_tokens", "chat": "max_tokens", "responses": "max_output_tokens"}


def test_an_answer_has_the_output_limit_and_the_cost_of_its_model(
    hs: Hs, serve: Serve, wire: Wire, home: Path
) -> None:
    prices = "price_in=1000 price_out=100 price_cached=10 price_write=2000"
    write_models(home / ".harness", "# ours", f"big- context=9000 output=77 {prices}", "big-other output=5")
    server = serve(wire, say("Done."))

    hs("go", env=wire.environment(server) | {"HARNESS_MODEL": "big-one"})

    assert server.requests[0][LIMIT[wire.name]] == 77
    # Anthropic: 10 plain, 7 cached, 3 written; the others: 6 plain, 4 cached; 5 out.
    expected = {"anthropic": "0.016570", "chat": "0.006540", "responses": "0.006540"}[wire.name]
    answer = session_of(home) / "messages" / "0002-assistant.md"
    assert f"\ncost: {expected}\n" in answer.read_text(encoding="utf-8")
    assert f"cost={expected.rstrip('0')}\n" in hs("session", "show", session_of(home).name).out


def test_without_a_price_the_cost_is_unknown_and_not_zero(hs: Hs, serve: Serve, home: Path) -> None:
    write_models(home / ".harness", "big- context=9000 price_in=cheap price_out=1")
    server = serve(CHAT, say("Done."))

    hs("go", env=CHAT.environment(server) | {"HARNESS_MODEL": "big-one"})

    assert server.requests[0]["max_tokens"] == 8192
    assert "cost=unknown\n" in hs("session", "show", session_of(home).name).out


@pytest.mark.parametrize(
    ("model", "limit"), [("big-one", 1), ("big-one-now", 22), ("big-two", 3), ("small", 8192)]
)
def test_the_longest_beginning_counts_and_of_equal_ones_the_most_local(
    hs: Hs, serve: Serve, home: Path, project: Path, model: str, limit: int
) -> None:
    write_models(home / ".harness", "big-one-n output=2", "big-one output=1", "big- output=3")
    write_models(project / ".harness", "big-one-n output=22", "big output=4")
    server = serve(CHAT, say("Done."))
    hs("trust")

    hs("go", env=CHAT.environment(server) | {"HARNESS_MODEL": model})

    assert server.requests[0]["max_tokens"] == limit


def test_a_provider_of_home_can_say_it_of_its_own_model(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, say("Done."))
    write_models(home / ".harness", "m output=5")
    (home / ".harness" / "providers").mkdir()
    (home / ".harness" / "providers" / "there.conf").write_text(
        f"protocol=openai\nmodel=m\nurl={server.address}{CHAT.path}\noutput=66\nprice_in=1\nprice_out=1\n",
        encoding="utf-8",
    )

    hs("go", env={"HARNESS_PROVIDER": "there"})
    hs("go", env={"HARNESS_PROVIDER": "there", "HARNESS_MODEL": "m2"})

    assert [request["max_tokens"] for request in server.requests] == [66, 5]


def test_the_models_of_bundled_providers_have_limits_and_prices(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(ANTHROPIC, say("Done."))

    hs("go", env=ANTHROPIC.environment(server))

    assert server.requests[0]["max_tokens"] == 64000
    assert "cost=unknown" not in hs("session", "show", session_of(home).name).out
