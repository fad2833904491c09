"""What real clients printed is understood; how it was recorded says `streams/README.md`."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness_lib.agents import stream
from harness_lib.agents.adapter import Report
from harness_lib.agents.registry import ADAPTERS, named

STREAMS = Path(__file__).parent / "streams"
NOW = datetime(2026, 11, 22, 0, 53, tzinfo=timezone.utc)
NAMES = sorted(path.stem for path in STREAMS.glob("*.jsonl"))

# What recordings end with: what the user must do, what has only to be tried again, and limits, with when they
# are over if the client says so.
FOR_A_PERSON = {
    "claude": "no-credit no-login no-model",
    "codex": "bad-key no-key no-quota not-included",
    "copilot": "bad-key no-login",
    "gemini": "bad-key no-login no-trust refused",
    "hs": "bad-key no-credit no-provider no-login login-ended no-claude",
    "opencode": "bad-key quota",
}
PAUSES = {
    "claude": "error-500 no-server overloaded-to-the-end rate-limited",
    "codex": "error-500 no-server overloaded rate-limited",
    "copilot": "error-500 rate-limited",
    "opencode": "quota-429",
}
LIMITS = {
    "claude-usage-limit": "03:52:42",
    "codex-usage-limit": "03:55:00",
    "codex-usage-limit-days": "03:55:00",
    "codex-usage-limit-open": None,
    "copilot-quota": None,
    "gemini-capacity": "09:37:07",
    "gemini-quota": None,
    "hs-usage-limit": "02:53:00",
}
TROUBLES: dict[str, tuple[str, str | None]] = {
    **{f"{host}-{case}": ("login", None) for host, cases in FOR_A_PERSON.items() for case in cases.split()},
    **{f"{host}-{case}": ("transient", None) for host, cases in PAUSES.items() for case in cases.split()},
    **{name: ("limit", until) for name, until in LIMITS.items()},
}
# One tool call and one message, with or without an error on the way that the client got over.
WORKED = (
    *("claude-overloaded", "claude-plain", "claude-warning", "codex-plain", "codex-retry", "copilot-plain"),
    *("gemini-minute", "gemini-overloaded", "gemini-plain", "hs-overloaded", "hs-plain", "opencode-plain"),
)
# Ended by a limit that the user had set: the attempt's own failure.
ENDED = ("claude-budget", "claude-turns", "hs-turns")


def reports(name: str) -> list[Report]:
    """Return the report after each line of the recording `name`."""
    adapter = ADAPTERS[name.partition("-")[0]]
    seen = [Report()]
    for line in (STREAMS / f"{name}.jsonl").read_text().splitlines(keepends=True):
        seen.append(adapter.read(seen[-1], line, NOW))
    return seen


def test_every_recording_is_looked_at() -> None:
    assert sorted([*TROUBLES, *WORKED, *ENDED]) == NAMES


@pytest.mark.parametrize("name", WORKED)
def test_work_is_seen(name: str) -> None:
    """The tool call is counted once, the last words are kept, and what was got over is no trouble."""
    end = reports(name)[-1]

    assert (end.actions, end.said, end.last, end.trouble) == (1, "Made the file.", "Made the file.", None)
    assert "echo one > one && cat one" in end.action


@pytest.mark.parametrize("name", [name for name in WORKED if not name.startswith("copilot")])
def test_tokens_are_counted_once(name: str) -> None:
    """Two requests of 10 and 5 tokens each; Copilot does not tell in its lines."""
    assert reports(name)[-1].tokens == 30


@pytest.mark.parametrize(("name", "cost"), [("claude-plain", 0.00028), ("opencode-plain", 0.00004)])
def test_the_cost_is_what_the_client_says(name: str, cost: float) -> None:
    assert reports(name)[-1].cost_usd == pytest.approx(cost)


@pytest.mark.parametrize(
    ("billed", "cost"),
    [
        ({"totalNanoAiu": 0, "aiCreditsStatus": "unavailable"}, None),
        ({"totalNanoAiu": 150_000_000_000, "aiCreditsStatus": "available"}, 1.5),
        ({}, None),
    ],
)
def test_copilot_leaves_tokens_and_credits_in_a_file(billed: dict[str, object], cost: float | None) -> None:
    used = {"usage": {"inputTokens": 20, "outputTokens": 10, "cacheReadTokens": 4}}
    line = json.dumps({"modelMetrics": {"one": used, "two": used}, **billed})

    report = named("copilot").read(Report(), line, NOW)

    assert (report.tokens, report.cost_usd) == (60, cost)


@pytest.mark.parametrize("name", ["codex-plain", "gemini-plain", "copilot-plain", "hs-plain"])
def test_no_cost_is_made_up(name: str) -> None:
    assert reports(name)[-1].cost_usd is None


@pytest.mark.parametrize("name", ["claude-overloaded", "codex-retry", "gemini-minute", "gemini-overloaded"])
def test_an_error_that_is_got_over_was_seen(name: str) -> None:
    """While the client tries again a watcher sees why."""
    assert "transient" in {seen.trouble.kind for seen in reports(name) if seen.trouble}


@pytest.mark.parametrize(("name", "kind", "until"), [(name, *ending) for name, ending in TROUBLES.items()])
def test_trouble_is_told_apart(name: str, kind: str, until: str | None) -> None:
    """What the user must do, what ends by itself, and what only has to be tried again."""
    trouble = reports(name)[-1].trouble

    assert trouble is not None
    assert trouble.kind == kind, trouble
    assert (trouble.resets_at and trouble.resets_at.strftime("%H:%M:%S")) == until
    assert trouble.message


@pytest.mark.parametrize("name", ENDED)
def test_an_end_of_the_agents_own_is_no_trouble(name: str) -> None:
    """It counts as an attempt."""
    end = reports(name)[-1]

    assert end.trouble is None
    assert end.last.startswith(("Reached maximum", "The limit of 1 requests"))


@pytest.mark.parametrize("name", [name for name in WORKED if not name.startswith("copilot-")])
def test_the_name_of_the_conversation_is_read(name: str) -> None:
    lines = (STREAMS / f"{name}.jsonl").read_text().splitlines()
    assert any(stream.session(line) for line in lines)
