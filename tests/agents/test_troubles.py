"""Error texts, as clients and providers spell them, and what whoever waits must do."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from harness_lib.agents.stream import MESSAGE, trouble

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=timezone.utc)

LIMITS = (
    "You've hit your limit · resets 2pm (Asia/Shanghai)",
    "You\u2019ve hit your usage limit. To get more access now, send a request to your admin.",
    "You're out of extra usage · resets 5pm (America/Los_Angeles)",
    "Claude AI usage limit reached|1795348800",
    '{"type":"usage_limit_reached","message":"The usage limit has been reached"}',
    "You have exhausted your daily quota on this model.",
    "You have exceeded your premium request allowance.",
    # Not called a usage limit, but to be waited for like one.
    "Sorry, you've hit a rate limit that restricts the number of requests. Please try again in 2 hours.",
    "You exceeded your current quota, please check your plan and billing details. Please retry in 9h.",
)
PAUSES = (
    "API Error: Server is temporarily limiting requests (not your usage limit)",
    "Rate limit reached for tokens per minute (TPM): Limit 30000. Please try again in 2s.",
    "You have exhausted your capacity on this model. Your quota will reset after 5s.",
    "You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.",
    "exceeded retry limit, last status: 429 Too Many Requests",
    "stream disconnected before completion: error sending request",
    "getaddrinfo ENOTFOUND api.example.invalid",
    "The model is overloaded. Please try again later.",
    "Request timed out.",
    "upstream connect error, 502 Bad Gateway",
    # A stream of Gemini CLI that was cut, and an empty answer in Copilot CLI.
    "[API Error: terminated]",
    "No response was returned. Send your message again to retry.",
)
FOR_A_PERSON = (
    "Invalid API key · Please run /login",
    "OAuth token has expired · Please run /login",
    "Credit balance is too low",
    "You've hit your org's monthly spend limit · run /usage-credits to ask your admin",
    "Your workspace is out of credits. Ask your workspace owner to refill in order to continue.",
    "insufficient_quota: You exceeded your current quota, please check your plan and billing details.",
    "unexpected status 401 Unauthorized: Incorrect API key provided",
    "Please set an Auth method in your settings",
    "The model `gpt-9` does not exist or you do not have access to it.",
)
OWN_FAULTS = (
    "Prompt is too long",
    "Reached maximum number of turns (2)",
    "invalid_request_error: bad tool",
    "",
    "no",
)


@pytest.mark.parametrize(
    ("text", "status", "kind"),
    [
        *((text, 0, "limit") for text in LIMITS),
        *((text, 0, "transient") for text in PAUSES),
        *((text, 0, "login") for text in FOR_A_PERSON),
        *((text, 0, None) for text in OWN_FAULTS),
        # Where the text says nothing the status does, unless it is nobody's fault but ours.
        *(("it failed", status, "login") for status in (401, 402, 403)),
        *(("it failed", status, "transient") for status in (408, 429, 599)),
        *(("it failed", status, None) for status in (200, 400, 404, 1e14)),
    ],
)
def test_a_trouble_is_known_by_its_text_or_its_status(text: str, status: float, kind: str | None) -> None:
    recognised = trouble(text, NOW, status)

    assert (recognised and recognised.kind) == kind


def test_the_wait_comes_with_it() -> None:
    recognised = trouble("usage limit reached, try again in 3 hours", NOW)

    assert recognised is not None
    assert recognised.resets_at == NOW + timedelta(hours=3)


def test_the_message_is_one_bounded_line() -> None:
    recognised = trouble("usage limit\x1b[31m reached\x07 " + "x" * 10_000 + "\nmore", NOW)

    assert recognised is not None
    assert len(recognised.message) == MESSAGE
    assert recognised.message.isprintable()
