"""What an adapter makes of what an agent prints."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from harness_lib.agents.adapter import Adapter, Report

STREAMS = Path(__file__).parent / "streams"
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=timezone.utc)
LATER = NOW + timedelta(hours=2)


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
