"""Read from a client's error text when its usage limit ends.

The forms are those of Claude Code, Codex, Gemini and Copilot; an unknown form gives None, never a guess.
A time without a zone is the client's local time, so it is read in the zone of `now`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from harness_lib import timestamps

# The longest wait; a limit that ends later is looked at again.
LONGEST = timedelta(days=8)
_BELIEVED = timedelta(days=40)

# A time of day has no seconds: "3:52" may mean 3:52:42.
_JUST_PAST = timedelta(minutes=10)
_SOON = timedelta(minutes=1)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

_ANCHOR = re.compile(r"reset|again|until|retry|renew|available|limit reached", re.IGNORECASE)
_WINDOW = 90

_EPOCH = re.compile(r"\W{0,4}\b(?:s?_?at\W{0,4})?(\d{10})(?:\d{3})?\b")
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?", re.IGNORECASE)
_AMOUNT = (
    r"(\d{1,12}(?:\.\d{1,9})?)\s*"
    r"(ms|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
)
_SPAN = re.compile(rf"(?:\bin|\bafter|^delay)\W{{1,4}}((?:{_AMOUNT}[\s,]*(?:and\s+)?)+)", re.IGNORECASE)
_ONE_AMOUNT = re.compile(_AMOUNT, re.IGNORECASE)
_SECONDS = re.compile(r"(?:[-_ ]?after|s?_in_seconds)\W{1,4}(\d{1,9})(?![\d.:]|\s*[a-z])", re.IGNORECASE)
_DATED = re.compile(
    rf"(?:\b(?P<weekday>{'|'.join(_DAYS)})[a-z]*\b\W{{1,3}})?"
    rf"(?:\b(?P<month>{'|'.join(_MONTHS)})[a-z]*\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b"
    r"(?:,? (?P<year>20\d\d)\b)?)?"
    r"\W{0,3}(?:at )?"
    r"(?:\b(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)?\b)?"
    r"(?:\s*\(?(?P<zone>UTC|GMT|[A-Za-z_]{1,20}(?:/[A-Za-z0-9_+-]{1,30}){1,2})\b\)?)?",
    re.IGNORECASE,
)


def moment(text: str, now: datetime) -> datetime | None:
    """Return the moment (UTC) until which `text` says to wait: after `now`, at most `LONGEST` after it.

    None: it names no moment, or one that has passed or is impossible.
    """
    for anchor in _ANCHOR.finditer(text[:20_000]):
        window = " ".join(text[anchor.end() : anchor.end() + _WINDOW].split())
        try:
            readings = (form(window, now) for form in (_epoch, _iso, _span, _seconds, _dated))
            # Only the first form that fits is believed.
            reset = _bounded(next((each for each in readings if each), None), now)
        except (ValueError, OverflowError):
            continue  # not a date, or one that no calendar has
        if reset:
            return reset
    return None


def at_epoch(seconds: float, now: datetime) -> datetime | None:
    """Return the moment `seconds` after 1970; the limits of `moment` apply."""
    try:
        return _bounded(datetime.fromtimestamp(seconds, timezone.utc), now)
    except (ValueError, OverflowError, OSError):
        return None


def _bounded(reset: datetime | None, now: datetime) -> datetime | None:
    if reset is None or reset - now > _BELIEVED or now - reset > _JUST_PAST:
        return None
    wait = min(max(reset - now, _SOON if reset <= now else timedelta(0)), LONGEST)
    return now.astimezone(timezone.utc) + wait


def _epoch(window: str, _now: datetime) -> datetime | None:
    match = _EPOCH.match(window)
    return datetime.fromtimestamp(int(match[1]), timezone.utc) if match else None


def _iso(window: str, _now: datetime) -> datetime | None:
    match = _ISO.search(window)
    return timestamps.parse(match[0].upper()) if match else None


def _span(window: str, now: datetime) -> datetime | None:
    match = _SPAN.search(window)
    if not match:
        return None
    amounts = _ONE_AMOUNT.findall(match[1])
    seconds = sum(
        float(much) * _UNITS["ms" if unit.lower() == "ms" else unit[0].lower()] for much, unit in amounts
    )
    # "reset after 0s" is now: in a moment.
    return now + timedelta(seconds=seconds)


def _seconds(window: str, now: datetime) -> datetime | None:
    match = _SECONDS.match(window)
    return now + timedelta(seconds=int(match[1])) if match else None


def _dated(window: str, now: datetime) -> datetime | None:
    for match in _DATED.finditer(window):
        if match["month"] or match["half"] or match["minute"]:
            return next((day for day in _candidates(match, now) if now - day <= _JUST_PAST), None)
    return None


def _candidates(match: re.Match[str], now: datetime) -> Iterator[datetime]:
    """Yield the moments that `match` may mean, the earliest first."""
    today = now.astimezone(_zone(match["zone"], now.tzinfo or timezone.utc))
    at = today.replace(hour=_hour(match), minute=int(match["minute"] or 0), second=0, microsecond=0)
    if match["month"]:
        at = at.replace(month=_MONTHS.index(match["month"].lower()) + 1, day=int(match["day"]))
        years = [int(match["year"])] if match["year"] else [today.year, today.year + 1]
        yield from (at.replace(year=year) for year in years)
        return
    for ahead in range(8):
        day = at + timedelta(days=ahead)
        if not match["weekday"] or day.weekday() == _DAYS.index(match["weekday"].lower()):
            yield day


def _hour(match: re.Match[str]) -> int:
    hour = int(match["hour"] or 0)
    if not match["half"]:
        return hour
    if not 1 <= hour <= 12:  # noqa: PLR2004 - a clock face
        raise ValueError(match["hour"])
    return hour % 12 + (12 if match["half"].lower() == "pm" else 0)


def _zone(name: str | None, local: tzinfo) -> tzinfo:
    if not name:
        return local
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # This machine does not know the zone, or the word after the time is no zone.
        return timezone.utc
