"""Classify an error text of a client or a provider: limit, transient, login.

Only for texts that are known to be errors: a model that talks about rate limits is not limited.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from harness_lib.agents.adapter import Trouble
from harness_lib.agents.stream import one_line

if TYPE_CHECKING:  # see registry.py
    from datetime import datetime

Kind = Literal["limit", "transient", "login"]

MESSAGE = 300
_LOOKED_AT = 4000

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
    r"|\b401\b.{0,3}unauthorized|permission_denied|status:? 40[13]\b"
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
    r"|exceeded your current quota|no capacity"
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

    looked = text[:_LOOKED_AT].replace("\u2019", "'")
    until = resets.moment(looked, now)
    return of_kind(_kind(looked, until) or _by_status(int(status)), text, now, until)


def of_kind(kind: Kind | None, text: str, now: datetime, until: datetime | None) -> Trouble | None:
    """Return trouble of the known `kind`; a wait until `until` may change it."""
    if kind is None:
        return None
    if until is not None and kind != "login":
        kind = "limit" if (until - now).total_seconds() > _SHORT_SECONDS else "transient"
    return Trouble(kind, one_line(text, MESSAGE), until)


def _kind(text: str, until: datetime | None) -> Kind | None:
    if _says(_UNLIMITED, text):
        return "transient"
    # "You exceeded your quota, check your billing, retry in 34 s": a limit that ends by itself needs no
    # human.
    if _says(_PERSON, text) or (until is None and _says(_MONEY, text)):
        return "login"
    if _says(_LIMIT, text):
        return "limit"
    return "transient" if _says(_TRANSIENT, text) else None


def _says(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _by_status(status: int) -> Kind | None:
    return "transient" if status in _SERVER_ERRORS else _STATUS.get(status)
