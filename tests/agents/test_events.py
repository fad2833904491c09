"""Single events that no recording has: what is documented, and what older clients said."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from harness_lib.agents import named
from harness_lib.agents.adapter import Report

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=timezone.utc)
LATER = NOW + timedelta(hours=2)
EPOCH = int(LATER.timestamp())


def heard(name: str, *events: dict[str, Any] | str) -> Report:
    """Return what the adapter `name` makes of `events`."""
    report = Report()
    for event in events:
        line = event if isinstance(event, str) else json.dumps(event)
        report = named(name).read(report, line, NOW)
    return report


def rejected(**more: object) -> dict[str, Any]:
    info = {"status": "rejected", "resetsAt": EPOCH, "rateLimitType": "seven_day", **more}
    return {"type": "rate_limit_event", "rate_limit_info": info}


def answered(text: str, message: str = "m1", parent: str | None = None) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 30}
    content = [{"type": "text", "text": text}]
    body = {"id": message, "model": "some", "content": content, "usage": usage}
    return {"type": "assistant", "message": body, "parent_tool_use_id": parent}


def failed(text: str, **more: object) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, "result": text, **more}


class TestClaude:
    def test_an_old_client_says_the_limit_as_text(self) -> None:
        trouble = heard("claude", failed(f"Claude AI usage limit reached|{EPOCH}")).trouble

        assert trouble is not None
        assert (trouble.kind, trouble.resets_at) == ("limit", LATER)

    def test_the_event_is_more_exact_than_the_text_after_it(self) -> None:
        trouble = heard(
            "claude", rejected(resetsAt=EPOCH + 42), failed("limit reached · resets 12pm (UTC)")
        ).trouble

        assert trouble is not None
        assert trouble.resets_at == LATER + timedelta(seconds=42)

    def test_the_minute_of_the_text_is_no_reason_to_wait_longer(self) -> None:
        """The limit ends in seconds, and the minute it is said to end in has begun."""
        trouble = heard(
            "claude", rejected(resetsAt=int(NOW.timestamp()) + 7), failed("limit reached · resets 10am (UTC)")
        ).trouble

        assert trouble is not None
        assert trouble.resets_at == NOW + timedelta(seconds=7)

    def test_paid_overage_is_no_limit(self) -> None:
        assert heard("claude", rejected(isUsingOverage=True)).trouble is None

    def test_another_model_that_answers_ends_it(self) -> None:
        assert heard("claude", rejected(), answered("Going on.")).trouble is None

    def test_what_a_model_says_about_limits_is_only_talk(self) -> None:
        text = "You've hit your usage limit · resets 3pm: this is what the test expects."

        assert heard("claude", answered(text)).trouble is None

    def test_a_subagent_has_not_the_last_word(self) -> None:
        report = heard("claude", answered("Mine."), answered("Its own.", "m2", parent="toolu_1"))

        assert (report.said, report.last) == ("Mine.", "Its own.")

    def test_a_message_in_several_lines_is_counted_once(self) -> None:
        assert heard("claude", answered("a"), answered("b"), answered("c", "m2")).tokens == 66

    @pytest.mark.parametrize(("attempt", "kind"), [(1, "transient"), (3, "login")])
    def test_a_refused_login_may_be_renewed_first(self, attempt: int, kind: str) -> None:
        retry = {"type": "system", "subtype": "api_retry", "attempt": attempt, "error_status": 401}

        trouble = heard("claude", {**retry, "error": "authentication_failed"}).trouble

        assert trouble is not None
        assert trouble.kind == kind


class TestCodex:
    @pytest.mark.parametrize(
        ("item", "action"),
        [
            (
                {"type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"a": 1}},
                '"arguments": {"a": 1}',
            ),
            ({"type": "file_change", "changes": [{"path": "src/x.py", "kind": "update"}]}, "src/x.py"),
            ({"type": "web_search", "query": "how"}, "how"),
        ],
    )
    def test_each_kind_of_tool_is_an_action(self, item: dict[str, Any], action: str) -> None:
        report = heard(
            "codex", {"type": "item.started", "item": item}, {"type": "item.completed", "item": item}
        )

        assert report.actions == 1
        assert action in report.action

    def test_a_started_command_is_seen_at_once(self) -> None:
        item = {"type": "command_execution", "command": "make"}

        assert heard("codex", {"type": "item.started", "item": item}).last == "command_execution: make"

    def test_a_plan_is_no_action(self) -> None:
        item = {"type": "todo_list", "items": [{"text": "x", "completed": False}]}

        assert heard("codex", {"type": "item.completed", "item": item}).actions == 0


class TestGemini:
    def test_a_message_comes_in_pieces(self) -> None:
        pieces = [
            {"type": "message", "role": "assistant", "content": text, "delta": True}
            for text in ("One ", "two")
        ]
        tool = {"type": "tool_use", "tool_name": "t", "parameters": {}}

        assert heard("gemini", *pieces).said == "One two"
        assert heard("gemini", *pieces, tool, pieces[1]).said == "two"

    def test_what_the_user_said_is_not_its_own(self) -> None:
        assert heard("gemini", {"type": "message", "role": "user", "content": "the brief"}).said == ""

    def test_a_short_pause_is_no_limit(self) -> None:
        line = "Attempt 1 failed: You have exhausted your capacity. Your quota will reset after 5s.."

        trouble = heard("gemini", line).trouble

        assert trouble is not None
        assert trouble.kind == "transient"


def test_copilot_counts_tokens_where_it_tells_them() -> None:
    usage = {
        "type": "assistant.usage",
        "data": {"inputTokens": 100, "outputTokens": 7, "cacheReadTokens": 90},
    }

    assert heard("copilot", usage, usage).tokens == 214


def test_copilots_rate_limit_of_hours_is_waited_out() -> None:
    message = "Sorry, you've hit a rate limit that restricts requests. Please try again in 2 hours."

    trouble = heard(
        "copilot", {"type": "session.error", "data": {"message": message, "statusCode": 429}}
    ).trouble

    assert trouble is not None
    assert (trouble.kind, trouble.resets_at) == ("limit", LATER)


def test_opencode_adds_its_steps_up() -> None:
    tokens = {"input": 10, "output": 5, "reasoning": 1, "cache": {"read": 100, "write": 2}}
    step = {"type": "step_finish", "part": {"tokens": tokens, "cost": 0.25}}

    report = heard("opencode", step, step)

    assert (report.tokens, report.cost_usd) == (236, 0.5)


def test_opencodes_headers_say_how_long_to_wait() -> None:
    data = {"message": "Too many", "statusCode": 429, "responseHeaders": {"retry-after": "7200"}}

    trouble = heard("opencode", {"type": "error", "error": {"name": "APIError", "data": data}}).trouble

    assert trouble is not None
    assert (trouble.kind, trouble.message, trouble.resets_at) == ("limit", "Too many", LATER)


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "copilot", "opencode"])
def test_why_it_did_not_start_is_the_last_thing_seen(name: str) -> None:
    assert heard(name, "error: unknown option '--nonsense'").last == "error: unknown option '--nonsense'"
