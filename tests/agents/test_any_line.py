"""An agent's output is never trusted: any line at all gives a small report."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness_lib.agents import stream
from harness_lib.agents.adapter import Adapter, Report
from harness_lib.agents.command import adapter as command
from harness_lib.agents.registry import ADAPTERS
from harness_lib.agents.stream import MESSAGE
from tests.agents.heard import NOW, STREAMS

EVERY = [*ADAPTERS.values(), command("agent")]
RECORDINGS = [path.read_text(encoding="utf-8") for path in sorted(STREAMS.glob("*.jsonl"))]
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


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
@given(lines=LINES)
@example(lines=["\u200c", "\u200d"])
def test_the_report_stays_small_whatever_is_printed(one: Adapter, lines: list[str]) -> None:
    report = Report()
    for line in lines:
        report = one.read(report, line, NOW)
        assert_small(report)


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
def test_monsters(one: Adapter) -> None:
    for line in MONSTERS:
        assert_small(one.read(Report(), line, NOW))


def test_calls_are_equal_only_if_they_are() -> None:
    """Two edits of the same long file are not a repetition."""
    assert len({stream.canonical("Write", {"content": "a" * 5000 + end}) for end in ("x", "y", "zz")}) == 3
    assert stream.canonical("t", {"a": 1, "b": 2}) == stream.canonical("t", {"b": 2, "a": 1})
