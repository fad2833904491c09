"""Error texts of clients and providers: what whoever waits must do, and when a limit ends."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib import timestamps
from harness_lib.agents import resets
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


def test_the_wait_comes_with_it_and_the_message_is_one_bounded_line() -> None:
    recognised = trouble(
        "usage limit\x1b[31m reached, try again in 3 hours\x07 " + "x" * 10_000 + "\nmore", NOW
    )

    assert recognised is not None
    assert recognised.resets_at == NOW + timedelta(hours=3)
    assert len(recognised.message) == MESSAGE
    assert recognised.message.isprintable()


# -- when a limit ends, in every form that a client has said it


EVE = datetime(2026, 12, 31, 20, 0, tzinfo=timezone.utc)

FORMS = {
    # Claude Code
    "Claude AI usage limit reached|1795348800": "2026-11-22T12:00:00Z",
    "Claude AI usage limit reached|1795348800000": "2026-11-22T12:00:00Z",
    "You've hit your 5-hour limit · resets 3:52am (UTC)": "2026-11-23T03:52:00Z",
    "You've hit your limit · resets 3pm (Europe/Berlin)": "2026-11-22T14:00:00Z",
    "You've hit your session limit · resets 9:30pm": "2026-11-22T21:30:00Z",
    "5-hour limit reached ∙ resets 12pm": "2026-11-22T12:00:00Z",
    "5-hour limit reached ∙ resets 12am": "2026-11-23T00:00:00Z",
    "You've hit your weekly limit · resets Nov 24, 5am (America/Sao_Paulo)": "2026-11-24T08:00:00Z",
    "You've hit your weekly limit · resets Nov 26 at 1pm (Asia/Seoul)": "2026-11-26T04:00:00Z",
    "You've hit your weekly limit · resets Mon 12:00am": "2026-11-23T00:00:00Z",
    "You're out of extra usage · resets 5pm (America/Los_Angeles)": "2026-11-23T01:00:00Z",
    "resets 3pm (Atlantis/Capital)": "2026-11-22T15:00:00Z",
    # Codex
    "or try again at 3:05 PM.": "2026-11-22T15:05:00Z",
    "or try again at 9:05 AM.": "2026-11-23T09:05:00Z",
    "or try again at Nov 25th, 2026 3:55 AM.": "2026-11-25T03:55:00Z",
    "or try again in 2 days 3 hours 5 minutes.": "2026-11-24T13:05:00Z",
    "Please try again in 2s.": "2026-11-22T10:00:02Z",
    '"resets_at":1795348800,"eligible_promo":null': "2026-11-22T12:00:00Z",
    '"resets_in_seconds":7200': "2026-11-22T12:00:00Z",
    "Try again Nov 28.": "2026-11-28T00:00:00Z",
    # Gemini
    "Your quota will reset after 8h44m7s.. Retrying after 31447000ms...": "2026-11-22T18:44:07Z",
    "Please retry in 34.07s.": "2026-11-22T10:00:34Z",
    '"retryDelay": "34074s"': "2026-11-22T19:27:54Z",
    # Copilot and others
    "Please try again in 58 hours. Please review our Terms": "2026-11-24T20:00:00Z",
    "Retry-After: 120": "2026-11-22T10:02:00Z",
    "resets at 2026-11-22T15:00:00+01:00": "2026-11-22T14:00:00Z",
    "available again on 2026-11-23 08:30": "2026-11-23T08:30:00Z",
    "limit resets at 15:00 UTC": "2026-11-22T15:00:00Z",
}

SILENT = (
    "",
    "Please try again later.",
    "try again in less than a minute",
    "resets 25:00",
    "resets 13pm",
    "resets Feb 30 at 3pm",
    "limit reached|1755806400",
    "resets at 2019-01-01T00:00:00Z",
    "resets at 9999-12-31T23:59:59-23:59",
    "resets at 0001-01-01T00:00:00+23:59",
    "try again in 999999999999 days",
    "API retry 7 of 10",
    "The 3pm build of 15:00 failed",
    f"resets {'9' * 5000}pm",
)


@pytest.mark.parametrize(("text", "expected"), FORMS.items())
def test_the_moment_is_understood(text: str, expected: str) -> None:
    moment = resets.moment(text, NOW)

    assert moment is not None
    assert timestamps.render(moment) == expected


@pytest.mark.parametrize("text", SILENT)
def test_what_says_no_moment_is_none(text: str) -> None:
    assert resets.moment(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "now", "moment"),
    [
        # Without a zone it is the time of the client's own machine, which is ours.
        ("try again at 3:05 PM.", NOW.astimezone(ZoneInfo("Europe/Berlin")), NOW.replace(hour=14, minute=5)),
        # It is said to the minute: one that has just passed is soon, and not tomorrow.
        ("resets 9:59am (UTC)", NOW, NOW + timedelta(minutes=1)),
        ("limit reached|1795341590", NOW, NOW + timedelta(minutes=1)),
        # Nobody waits longer than eight days.
        ("resets Dec 22 at 1pm (UTC)", NOW, NOW + resets.LONGEST),
        # The year may end meanwhile.
        ("resets Jan 2 at 4am (UTC)", EVE, EVE + timedelta(days=1, hours=8)),
    ],
)
def test_the_moment_comes_next_and_soon(text: str, now: datetime, moment: datetime) -> None:
    assert resets.moment(text, now) == moment


@pytest.mark.parametrize("seconds", [0, 1, -1, 1e12, 1e300, float("inf"), float("nan")])
def test_an_epoch_that_nobody_can_mean_is_none(seconds: float) -> None:
    assert resets.at_epoch(seconds, NOW) is None


PIECES = st.sampled_from(
    [
        *("reset", "resets ", "try again ", "limit reached", "at ", "in ", "after ", "|", ":"),
        *("Nov ", "Mon ", "25th, ", "2026 ", "3:55 ", "12", "pm ", "(Europe/", "Berlin)", "(UTC)"),
        *("1795348800", "2026-11-22T10:00:00", "Z", "days ", "h", "m", "s "),
    ]
)
TEXTS = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=12).map("".join))
MOMENTS = st.datetimes(
    timezones=st.sampled_from([timezone.utc, ZoneInfo("America/Sao_Paulo"), ZoneInfo("Asia/Kolkata")])
)


@given(TEXTS, MOMENTS)
def test_any_text_gives_a_near_future_or_nothing(text: str, now: datetime) -> None:
    moment = resets.moment(text, now)

    if moment is not None:
        assert moment.tzinfo is timezone.utc
        assert timedelta(0) < moment - now <= resets.LONGEST
