"""Single events that no recording has: documented ones, those of older clients, scripts', and any line."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness_lib.agents import stream
from harness_lib.agents.adapter import Adapter, Report
from harness_lib.agents.command import adapter
from harness_lib.agents.command import adapter as command
from harness_lib.agents.registry import ADAPTERS, named
from harness_lib.agents.stream import MESSAGE

STREAMS = Path(__file__).parent / "streams"
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=timezone.utc)
LATER = NOW + timedelta(hours=2)
EPOCH = int(LATER.timestamp())
SCRIPT = adapter("agent")


def heard(one: Adapter, *events: dict[str, Any] | str) -> Report:
    """Return the report of `one` after lines or events."""
    report = Report()
    for event in events:
        line = event if isinstance(event, str) else json.dumps(event)
        report = one.read(report, line, NOW)
    return report


def told(report: Report, *names: str) -> tuple[object, ...]:
    """Return these fields of `report`, or of the trouble that it tells of."""
    of_trouble = ("kind", "message", "resets_at")
    return tuple(getattr(report.trouble if name in of_trouble else report, name) for name in names)


def rejected(**more: object) -> dict[str, Any]:
    info = {"status": "rejected", "resetsAt": EPOCH, "rateLimitType": "seven_day", **more}
    return {"type": "rate_limit_event", "rate_limit_info": info}


def answered(
    text: str, message: str = "m1", parent: str | None = None, model: str = "some"
) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 30}
    content = [{"type": "text", "text": text}]
    body = {"id": message, "model": model, "content": content, "usage": usage}
    return {"type": "assistant", "message": body, "parent_tool_use_id": parent}


def failed(text: str) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, "result": text}


def retry(attempt: int) -> dict[str, Any]:
    more = {"attempt": attempt, "error_status": 401, "error": "authentication_failed"}
    return {"type": "system", "subtype": "api_retry", **more}


def piece(text: str, **more: object) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True, **more}


def error(message: str, **more: object) -> dict[str, Any]:
    return {"type": "error", "error": {"name": "APIError", "data": {"message": message, **more}}}


PIECES = (piece("One "), piece("two"))
STEP = {
    "type": "step_finish",
    "part": {
        "tokens": {"input": 10, "output": 5, "reasoning": 1, "cache": {"read": 100, "write": 2}},
        "cost": 0.25,
    },
}
HOURS = "Sorry, you've hit a rate limit that restricts requests. Please try again in 2 hours."
COPILOT_USED = {
    "type": "assistant.usage",
    "data": {"inputTokens": 100, "outputTokens": 7, "cacheReadTokens": 90},
}

# Who says what, and what is told of it: the fields of a report, or of its trouble.
Rows = dict[str, tuple[list[dict[str, Any] | str], dict[str, object]]]
CLAUDE: Rows = {
    "an old client says the limit as text": (
        [failed(f"Claude AI usage limit reached|{EPOCH}")],
        {"kind": "limit", "resets_at": LATER},
    ),
    "the event is more exact than the text after it": (
        [rejected(resetsAt=EPOCH + 42), failed("limit reached · resets 12pm (UTC)")],
        {"resets_at": LATER + timedelta(seconds=42)},
    ),
    # The limit ends in seconds, and the minute it is said to end in has begun.
    "the minute of the text is no reason to wait longer": (
        [rejected(resetsAt=int(NOW.timestamp()) + 7), failed("limit reached · resets 10am (UTC)")],
        {"resets_at": NOW + timedelta(seconds=7)},
    ),
    "a limit is named": ([rejected()], {"message": "usage limit (seven_day) reached"}),
    "paid overage is no limit": ([rejected(isUsingOverage=True)], {"trouble": None}),
    "another model that answers ends it": ([rejected(), answered("Going on.")], {"trouble": None}),
    "what a model says about limits is only talk": (
        [answered("You've hit your usage limit · resets 3pm: this is what the test expects.")],
        {"trouble": None},
    ),
    "what Claude Code itself says in place of a model is an error": (
        [answered("API Error: 500 overloaded", model="<synthetic>")],
        {"kind": "transient", "tokens": 0},
    ),
    "a subagent has not the last word": (
        [answered("Mine."), answered("Its own.", "m2", parent="toolu_1")],
        {"said": "Mine.", "last": "Its own."},
    ),
    "a message in several lines is counted once": (
        [answered("a"), answered("b"), answered("c", "m2")],
        {"tokens": 66},
    ),
    "a refused login may be renewed first": ([retry(1)], {"kind": "transient"}),
    "and is none in the end": ([retry(3)], {"kind": "login"}),
}
GEMINI: Rows = {
    "a message comes in pieces": ([*PIECES], {"said": "One two"}),
    "a tool ends a message": (
        [*PIECES, {"type": "tool_use", "tool_name": "t", "parameters": {}}, piece("two")],
        {"said": "two"},
    ),
    "what the user said is not its own": ([piece("the brief", role="user")], {"said": ""}),
    "a short pause is no limit": (
        ["Attempt 1 failed: You have exhausted your capacity. Your quota will reset after 5s.."],
        {"kind": "transient"},
    ),
}
COPILOT: Rows = {
    "copilot counts tokens where it tells them": ([COPILOT_USED, COPILOT_USED], {"tokens": 214}),
    "copilots rate limit of hours is waited out": (
        [{"type": "session.error", "data": {"message": HOURS, "statusCode": 429}}],
        {"kind": "limit", "resets_at": LATER},
    ),
}
OPENCODE: Rows = {
    "opencode adds its steps up": ([STEP, STEP], {"tokens": 236, "cost_usd": 0.5}),
    "an error of opencode has a name at least": (
        [{"type": "error", "error": {"name": "MessageAbortedError"}}],
        {"last": "MessageAbortedError"},
    ),
    "opencodes headers say how long to wait": (
        [error("Too many", statusCode=429, responseHeaders={"retry-after": "7200"})],
        {"kind": "limit", "message": "Too many", "resets_at": LATER},
    ),
}
# The few words with which any script can report; a line of plain text may be its last word on a trouble.
SCRIPTS: Rows = {
    "any line is activity": (["one\n", "\x1b[1mtwo\x1b[0m of them\r\n", "\n"], {"last": "two of them"}),
    "what is used up is a total that only grows": (
        ['{"tokens": 10, "cost_usd": 0.5}', '{"tokens": 30}', '{"tokens": 20, "cost_usd": 0.7}'],
        {"tokens": 30, "cost_usd": 0.7},
    ),
    "a step is an action": (
        ['{"action": "make test"}', '{"action": "make test"}', '{"action": {"edit": "x"}}'],
        {"actions": 3, "action": 'action {"edit": "x"}'},
    ),
    "the last message is kept": (
        ['{"said": "First."}', '{"said": "Added\\nit."}', "noise"],
        {"said": "Added\nit."},
    ),
    "another object is a plain line": (
        ['{"level": "info"}'],
        {"last": '{"level": "info"}', "actions": 0, "tokens": 0, "said": "", "trouble": None},
    ),
    "until the agent works again": (['{"transient": "503"}', '{"action": "again"}'], {"trouble": None}),
    **{
        f"a limit until {value}": ([f'{{"limit_resets_at": {value}}}'], {"kind": "limit", "resets_at": until})
        for value, until in {
            '"2026-11-22T15:00:00Z"': NOW + timedelta(hours=5),
            '"in 3 hours"': NOW + timedelta(hours=3),
            "1795348800": LATER,
            "null": None,
            '"soon"': None,
            "[]": None,
        }.items()
    },
    **{
        f"{kind} stays": ([f'{{"{kind}": "503 here"}}', "giving up"], {"kind": kind, "message": "503 here"})
        for kind in ("transient", "login")
    },
}
TOLD = {"claude": CLAUDE, "gemini": GEMINI, "copilot": COPILOT, "opencode": OPENCODE, "script": SCRIPTS}


def called(name: str) -> Adapter:
    return SCRIPT if name == "script" else named(name)


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, rows in TOLD.items() for row in rows])
def test_what_an_event_tells(name: str, row: str) -> None:
    events, fields = TOLD[name][row]

    assert told(heard(called(name), *events), *fields) == tuple(fields.values())


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "copilot", "opencode"])
def test_why_an_agent_did_not_start_is_the_last_thing_seen(name: str) -> None:
    line = "error: unknown option '--nonsense'"

    assert heard(named(name), line).last == line


@pytest.mark.parametrize(
    ("item", "action"),
    [
        (
            {"type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"a": 1}},
            '"arguments": {"a": 1}',
        ),
        ({"type": "file_change", "changes": [{"path": "src/x.py", "kind": "update"}]}, "src/x.py"),
        ({"type": "web_search", "query": "how"}, "how"),
        # A plan is none.
        ({"type": "todo_list", "items": [{"text": "x", "completed": False}]}, ""),
    ],
)
def test_each_kind_of_codexs_tools_is_an_action(item: dict[str, Any], action: str) -> None:
    events = ({"type": f"item.{step}", "item": item} for step in ("started", "completed"))

    report = heard(named("codex"), *events)

    assert report.actions == bool(action)
    assert action in report.action


@pytest.mark.parametrize(
    ("kind", "more", "shown"),
    [
        ("command_execution", {"command": "make"}, "make"),
        ("file_change", {"changes": [{"path": "a"}, {"path": "b"}]}, "a, b"),
    ],
)
def test_what_codex_has_started_is_seen_at_once(kind: str, more: dict[str, Any], shown: str) -> None:
    report = heard(named("codex"), {"type": "item.started", "item": {"type": kind, **more}})

    assert (report.last, report.actions) == (f"{kind}: {shown}", 0)


EVERY = [*ADAPTERS.values(), command("agent")]
RECORDINGS = [path.read_text() for path in sorted(STREAMS.glob("*.jsonl"))]
RECORDED = [line for text in RECORDINGS for line in text.splitlines()]

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def printable(text: str) -> bool:
    """Return whether a terminal can show `text`; the two joiners belong to letters and emoji."""
    return text.translate(dict.fromkeys(map(ord, "\u200c\u200d"))).isprintable()


def assert_small(report: Report) -> None:
    """Fail unless every text has its bound and can be printed, and the numbers are numbers."""
    assert len(report.last) <= stream.LINE
    assert printable(report.last)
    assert len(report.action) <= stream.ACTION
    assert report.action.isascii() or printable(report.action)
    assert len(report.said) <= stream.SAID
    assert len(report.mark) <= stream.LINE
    assert printable(report.said.replace("\n", "").replace("\t", ""))
    assert report.tokens >= 0
    assert report.cost_usd is None or report.cost_usd >= 0
    if report.trouble:
        assert len(report.trouble.message) <= MESSAGE
        assert printable(report.trouble.message)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return a recorded event with one of its values exchanged for anything."""
    event = json.loads(draw(st.sampled_from([line for line in RECORDED if line.startswith("{")])))
    place = event
    while True:
        key = draw(st.sampled_from(sorted(place)))
        inner = place[key]
        if not isinstance(inner, dict) or not inner or draw(st.booleans()):
            break
        place = inner
    place[key] = draw(VALUES)
    return json.dumps(event)


@st.composite
def torn(draw: st.DrawFn) -> list[str]:
    """Return the lines of a recording that ends anywhere, as whoever reads a dying agent's pipe has them."""
    text = draw(st.sampled_from(RECORDINGS))
    return text[: draw(st.integers(0, len(text)))].splitlines(keepends=True)


LINES = st.one_of(torn(), st.lists(st.one_of(st.text(), damaged(), st.sampled_from(RECORDED)), max_size=6))


MONSTERS = [
    "x" * 1_000_000,
    '{"a":' * 100_000,
    '{"type": "assistant", "message": ' + '{"content":' * 100_000,
    '{"tokens": ' + "9" * 4000 + "}",
    '{"tokens": 1e999, "cost_usd": NaN}',
    '{"said": "\\ud800", "action": "\\ud800\\u001b[2J"}',
    '{"type": "item.completed", "item": {"type": "agent_message", "text": "' + "é" * 1_000_000 + '"}}',
    '{"type":"tool_use","tool_name":"x","parameters":{"a":' + "[" * 500 + "]" * 500 + "}}",
    "\0\ufffd\x1b[31m\r",
]


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
@given(lines=LINES)
@example(lines=["\u200c", "\u200d"])
@example(lines=MONSTERS)
def test_the_report_stays_small_whatever_is_printed(one: Adapter, lines: list[str]) -> None:
    report = Report()
    for line in lines:
        report = one.read(report, line, NOW)
        assert_small(report)


def test_calls_are_equal_only_if_they_are() -> None:
    """Two edits of the same long file are not a repetition."""
    assert len({stream.canonical("Write", {"content": "a" * 5000 + end}) for end in ("x", "y", "zz")}) == 3
    assert stream.canonical("t", {"a": 1, "b": 2}) == stream.canonical("t", {"b": 2, "a": 1})
