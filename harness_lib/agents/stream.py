"""Read a line of an agent's output without trusting it, and fold it into a report of bounded size.

A model, a tool or a broken pipe may put anything into the output, so every access is checked and
every text is cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness_lib.text import cut, harmless, in_one_line

if TYPE_CHECKING:
    from harness_lib.agents.adapter import Report, Trouble

LINE = 200
ACTION = 1000
SAID = 2000

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

# What agents call the key with the name of their conversation.
_SESSION = ("session_id", "sessionId", "sessionID", "thread_id", "session")

# A larger count is garbage, and a sum of such counts would overflow.
_MOST = 10**15


def event(line: str) -> Mapping[str, object] | None:
    """Return the JSON object that `line` is; None for anything else."""
    body = line.strip()
    if not body.startswith("{"):
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def get(source: object, *path: str) -> object:
    """Return the value in nested objects at `path`; None if there is none."""
    for key in path:
        source = source.get(key) if isinstance(source, Mapping) else None
    return source


def text(source: object, *path: str) -> str:
    """Return the string at `path`, or ""."""
    value = get(source, *path)
    return value if isinstance(value, str) else ""


def first(source: object, *keys: str) -> str:
    """Return the first string with something in it among `keys` of the object `source`, or ""."""
    return next((value for value in (text(source, key) for key in keys) if value), "")


def number(source: object, *path: str) -> float:
    """Return the number at `path` if it could be a count or a price, or 0."""
    value = get(source, *path)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= _MOST else 0


def total(source: object, *keys: str) -> int:
    """Return the sum of the counts under `keys` of the object `source`."""
    return int(sum(number(source, key) for key in keys))


def objects(source: object, *path: str) -> list[Mapping[str, object]]:
    """Return the objects of the list at `path`."""
    value = get(source, *path)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def one_line(words: str, limit: int = LINE) -> str:
    """Return the first line with words, printable and at most `limit` characters long."""
    # Cut first: a line may be a megabyte long, and only its beginning is looked at.
    for line in _COLOUR.sub("", words[: 20 * limit]).splitlines():
        shown = in_one_line(line)
        if shown:
            return cut(shown, limit)
    return ""


def canonical(tool: str, arguments: object) -> str:
    """Return a tool call as text in which equal calls are equal; of a long one both ends and the length."""
    try:
        words = json.dumps(arguments, sort_keys=True, ensure_ascii=True)
    except RecursionError:
        words = "…"
    whole = f"{one_line(tool)} {words}"
    if len(whole) <= ACTION:
        return whole
    half = ACTION // 2 - 10
    return f"{whole[:half]}…{len(whole) % 10**12}…{whole[-half:]}"


def session(line: str) -> str:
    """Return what an agent calls its conversation if `line` says it, or ""."""
    if not any(key in line for key in _SESSION):
        return ""
    found = event(line) or {}
    nested = (get(found, "data"), found)
    return next((name for each in nested if (name := one_line(first(each, *_SESSION)))), "")


# -- folding


def noted(report: Report, words: str) -> Report:
    """Note a line that is not evidence of progress."""
    return report._replace(last=one_line(words) or report.last)


def stray(report: Report, line: str) -> Report:
    """Note a line that is no event: the reason why an agent did not start, or noise."""
    return report if report.actions or report.said or report.trouble else noted(report, line)


def spoke(report: Report, words: str) -> Report:
    """Note a message of the model. An answer means that earlier trouble is over."""
    if not words.strip():
        return report
    shown = harmless(words.lstrip()[:SAID], instead=" ", keep="\n\t")
    return noted(report, words)._replace(said=shown, trouble=None)


def acted(report: Report, tool: str, arguments: object, shown: str = "") -> Report:
    """Note a tool call; `shown` is the text for people who watch."""
    line = f"{tool}: {shown}" if shown else tool
    done = report._replace(action=canonical(tool, arguments), actions=report.actions + 1, trouble=None)
    return noted(done, line)


def spent(report: Report, tokens: float = 0, cost_usd: float = 0) -> Report:
    """Take new totals; a total that is smaller than the known one is an older report."""
    cost = max(report.cost_usd or 0, cost_usd) if cost_usd or report.cost_usd is not None else None
    return report._replace(tokens=max(report.tokens, int(tokens)), cost_usd=cost)


def troubled(report: Report, trouble: Trouble | None) -> Report:
    """Note `trouble`, if there is any.

    A transient error does not hide a limit, and a later report without a moment keeps the known one.
    """
    if trouble is None:
        return report
    before = report.trouble
    updated = noted(report, trouble.message)
    if before is not None and trouble.kind == "transient" and before.kind != "transient":
        return updated
    if before is not None and trouble.kind != "login":
        known = [moment for moment in (before.resets_at, trouble.resets_at) if moment is not None]
        trouble = trouble._replace(resets_at=max(known, default=None))
    return updated._replace(trouble=trouble)
