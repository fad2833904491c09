"""Wall-clock moments as they stand on disk: ISO-8601, UTC, whole seconds, `Z`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def render(moment: datetime) -> str:
    """Return an aware `moment` as `2025-07-01T10:00:00Z`; fractions of a second are dropped."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    """Return `text` as an aware UTC moment.

    Accepts what people and agents of the legacy protocol write: `Z` or an offset, with or without fractions.
    A moment without a zone is taken as UTC.
    Raises ValueError if it is no ISO-8601 moment.
    """
    # fromisoformat() of Python 3.10 knows neither `Z` nor fractions other than 3 or 6 digits long.
    body = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    head, dot, rest = body.partition(".")
    if dot:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        body = head + rest[len(digits) :]
    moment = datetime.fromisoformat(body)
    if not moment.tzinfo:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc)


def later(moment: datetime, seconds: float) -> str:
    """Return the stamp `seconds` after `moment`."""
    return render(moment + timedelta(seconds=seconds))
