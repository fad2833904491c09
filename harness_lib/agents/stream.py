"""Read a line of an agent's output without trusting it, and fold it into a report of bounded size.

A model, a tool or a broken pipe may put anything into the output, so every access is checked and
every text is cut. Only texts that are known to be errors of a client or a provider are classified as trouble:
a model that talks about rate limits is not limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from harness_lib.agents.adapter import Trouble
from harness_lib.text import cut, harmless, in_one_line

if TYPE_CHECKING:  # see registry.py
    from datetime import datetime

    from harness_lib.agents.adapter import Report

LINE = 200
ACTION = 1000
SAID = 2000

_COLOUR = r"\x1b\[[0-9;]*[A-Za-z]"

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
    for line in re.sub(_COLOUR, "", words[: 20 * limit]).splitlines():
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
    if not trouble:
        return report
    before = report.trouble
    updated = noted(report, trouble.message)
    if before and trouble.kind == "transient" and before.kind != "transient":
        return updated
    if before and trouble.kind != "login":
        known = [moment for moment in (before.resets_at, trouble.resets_at) if moment]
        trouble = trouble._replace(resets_at=max(known, default=None))
    return updated._replace(trouble=trouble)


def failed(report: Report, words: str, now: datetime, status: float = 0) -> Report:
    """Note the error `words` of a client, with the trouble that it is; `status` as in `trouble`."""
    return troubled(noted(report, words), trouble(words, now, status))


# -- trouble


Kind = Literal["limit", "transient", "login"]

MESSAGE = 300

# A shorter limit counts as a pause, a longer pause as a limit.
_SHORT_SECONDS = 5 * 60

# Compiled at the first error: the patterns take longer than most commands.
_MONEY = (
    r"billing|insufficient[ _](?:balance|quota|credits?|funds)|credit balance|out of credits"
    r"|quota exceeded\. check|spend(?:ing)? (?:limit|cap)|payment required|usage[ _]not[ _]included"
    r"|upgrade to plus"
)
_PERSON = (
    r"not logged in|please run /login|run 'gh auth login'|no authentication information"
    r"|(?:invalid|set an) auth method"
    r"|(?:invalid|incorrect|missing|expired)[ _](?:x-)?api[- _]key|api[ _]key (?:not valid|expired)"
    r"|api_key_invalid|missing environment variable|token (?:has )?(?:expired|been revoked)|authenticat"
    r"|\b401\b.{0,3}unauthorized|permission_denied|(?:status|\"code\"):? ?40[13]\b"
    r"|issue with the selected model|model.{0,60}(?:not (?:found|supported)|does not exist)"
    r"|root/sudo privileges|not running in a trusted directory"
)
_LIMIT = (
    r"usage[ _]?limit|hit your .{0,40}limit|limit reached|out of (?:extra )?usage|daily quota|no quota"
    r"|quota (?:will reset|exhausted|_exceeded)|quota_ex|exhausted your (?:capacity|quota)"
    r"|premium request (?:allowance|limit)|token usage|free usage exceeded"
)
_TRANSIENT = (
    r"overloaded|high demand|at capacity|rate.?limit|too many requests|\b429\b|\b5[02]\d\b"
    r"|temporar|timed?[- ]?out|connect|reconnecting|network|econn|enotfound|eai_again|fetch failed"
    r"|stream (?:disconnected|error|closed)|socket|server[ _]error|unavailable|bad gateway|resource_exhausted"
    r"|exceeded your current quota|no capacity|api error: terminated|no response was returned"
)
_UNLIMITED = r"not your usage limit|per minute"

_STATUS: dict[int, Kind] = {401: "login", 402: "login", 403: "login", 408: "transient", 429: "transient"}
_SERVER_ERRORS = range(500, 600)


def trouble(text: str, now: datetime, status: float = 0) -> Trouble | None:
    """Classify an error `text` with the HTTP `status` (0: unknown).

    None: the failure is the agent's own, such as a wrong argument, a prompt that is too long, or no turns
    left.
    """
    from harness_lib.agents import resets  # noqa: PLC0415 (its patterns take a while to compile)

    looked = text[:4000].replace("\u2019", "'")
    until = resets.moment(looked, now)
    by_status: Kind | None = "transient" if int(status) in _SERVER_ERRORS else _STATUS.get(int(status))
    return of_kind(_kind(looked, until) or by_status, text, now, until)


def of_kind(kind: Kind | None, text: str, now: datetime, until: datetime | None = None) -> Trouble | None:
    """Return trouble of the known `kind`; a wait until `until` may change it."""
    if kind is None:
        return None
    if until and kind != "login":
        kind = "limit" if (until - now).total_seconds() > _SHORT_SECONDS else "transient"
    return Trouble(kind, one_line(text, MESSAGE), until)


def _kind(text: str, until: datetime | None) -> Kind | None:
    if _says(_UNLIMITED, text):
        return "transient"
    # "You exceeded your quota, check your billing, retry in 34 s": a limit that ends by itself needs no
    # human.
    if _says(_PERSON, text) or (not until and _says(_MONEY, text)):
        return "login"
    if _says(_LIMIT, text):
        return "limit"
    return "transient" if _says(_TRANSIENT, text) else None


def _says(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None
