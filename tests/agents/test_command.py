"""The few words with which any script can report."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from harness_lib.agents.adapter import Report
from harness_lib.agents.command import adapter

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=timezone.utc)


def heard(*lines: str) -> Report:
    report = Report()
    for line in lines:
        report = adapter("agent").read(report, line, NOW)
    return report


def test_any_line_is_activity() -> None:
    assert heard("one\n", "\x1b[1mtwo\x1b[0m of them\r\n", "\n").last == "two of them"


def test_used_is_a_total_that_only_grows() -> None:
    report = heard('{"tokens": 10, "cost_usd": 0.5}', '{"tokens": 30}', '{"tokens": 20, "cost_usd": 0.7}')

    assert (report.tokens, report.cost_usd) == (30, 0.7)


def test_a_step_is_an_action() -> None:
    report = heard('{"action": "make test"}', '{"action": "make test"}', '{"action": {"edit": "x"}}')

    assert report.actions == 3
    assert report.action == 'action {"edit": "x"}'


def test_the_last_message_is_kept() -> None:
    assert heard('{"said": "First."}', '{"said": "Added\\nit."}', "noise").said == "Added\nit."


@pytest.mark.parametrize(
    ("value", "until"),
    [
        ('"2026-11-22T15:00:00Z"', NOW + timedelta(hours=5)),
        ('"in 3 hours"', NOW + timedelta(hours=3)),
        ("1795348800", NOW + timedelta(hours=2)),
        ("null", None),
        ('"soon"', None),
        ("[]", None),
    ],
)
def test_a_limit(value: str, until: datetime | None) -> None:
    trouble = heard(f'{{"limit_resets_at": {value}}}').trouble

    assert trouble is not None
    assert (trouble.kind, trouble.resets_at) == ("limit", until)


@pytest.mark.parametrize("kind", ["transient", "login"])
def test_trouble_stays_until_the_agent_works_again(kind: str) -> None:
    """A line of plain text may be the script's last word on it."""
    line = f'{{"{kind}": "503 from the API"}}'

    trouble = heard(line, "giving up").trouble
    assert trouble is not None
    assert (trouble.kind, trouble.message) == (kind, "503 from the API")
    assert heard(line, '{"action": "again"}').trouble is None


def test_other_objects_are_plain_lines() -> None:
    assert heard('{"level": "info"}') == Report(last='{"level": "info"}')
