"""A model that goes round in circles: the same call with the same result, again and again.

Nothing else would end such a turn before its limit of requests, and each of them costs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import clip

MOST = 5


@dataclass
class Outcomes:
    """What the calls of a turn have come to: all that were seen, and how often since the last new one."""

    turn: int
    seen: set[str] = field(default_factory=set)
    again: dict[str, int] = field(default_factory=dict)
    # The answer in which each was last counted: equal calls of one answer are one repetition.
    counted: dict[str, int] = field(default_factory=dict)


def is_endless(runtime: Runtime, done: Json) -> bool:
    """Note what a call came to; return whether it was so in MOST answers, with nothing new in between."""
    known = runtime.kept.get("outcomes")
    if known is None or known.turn != runtime.first:
        known = runtime.kept["outcomes"] = Outcomes(runtime.first)
    outcome = _digest(done)
    if outcome not in known.seen:
        known.seen.add(outcome)
        known.again.clear()
    if known.counted.get(outcome) != runtime.requests or outcome not in known.again:
        known.counted[outcome] = runtime.requests
        known.again[outcome] = known.again.get(outcome, 0) + 1
    return known.again[outcome] >= MOST


def _digest(done: Json) -> str:
    result = clip.without_place(str(done.get("result", "")))
    text = dumps([done.get("name"), done.get("input"), result, bool(done.get("error"))])
    return hashlib.sha256(text.encode()).hexdigest()
