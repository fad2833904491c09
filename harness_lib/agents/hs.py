"""hs, our own agent loop: `hs -p --json`, the brief on standard input, one JSON object per line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_lib.agents import adapter, stream

if TYPE_CHECKING:  # see registry.py
    from collections.abc import Mapping, Sequence
    from datetime import datetime

_STATUS = r"^The provider answered (\d{3}):"
# Its messages for errors that another attempt would meet again.
_PERSON = (
    r"^no ready provider|--max-cost cannot be kept| is not set\. Set it, or run: hs auth"
    r"|^Nobody is logged in at |Log in again: hs auth login |^Claude Code is not installed"
    r"|Add credit with the provider, "
)
_OWN_LIMITS = frozenset({"max_turns", "max_cost"})

CREDENTIALS = (".harness/.auth.json", ".harness/.auth-cache.json")
SIGNS = adapter.Signs("hs", variables=("HS_SESSION_ID",), session="HS_SESSION_ID")


def _launch(model: str | None, extra: Sequence[str]) -> adapter.Launch:
    # No user can be asked, whatever the settings say.
    passed = adapter.arguments(("--approve", "auto"), ("--approve",), model, extra)
    argv = ("hs", "-p", "--json", *passed)
    # The output of tools is in the events; on standard error it could be mistaken for an event.
    env = {"HARNESS_LOG": "/dev/null"}
    return adapter.Launch(
        argv,
        env=env,
        cost_flag="--max-cost",
        writable=(".harness/",),
        # Where it is set, it has the place of ~/.harness, and of harness's own data.
        homes=("HARNESS_HOME/sessions/", "HARNESS_HOME/.auth.json", "HARNESS_HOME/.auth-cache.json"),
    )


def _read(report: adapter.Report, line: str, now: datetime) -> adapter.Report:
    event = stream.event(line)
    if event is None:
        return stream.stray(report, line)
    kind = event.get("type")
    if kind == "tool_start":
        return stream.acted(report, stream.text(event, "name"), event.get("input"))
    if kind == "text":
        return report._replace(trouble=None)
    if kind == "usage":
        return _spent(report, event)
    if kind == "retry":
        words = stream.text(event, "message")
        return stream.troubled(
            report,
            stream.trouble(words, now, _status(words)) or stream.of_kind("transient", words, now),
        )
    return _result(report, event, now) if kind == "result" else report


ADAPTER = adapter.Adapter("hs", "hs", "hs", _launch, _read)


def _spent(report: adapter.Report, event: Mapping[str, object]) -> adapter.Report:
    return stream.spent(report, stream.total(event, "tokens_in", "tokens_out"), stream.number(event, "cost"))


def _result(report: adapter.Report, event: Mapping[str, object], now: datetime) -> adapter.Report:
    report = _spent(report, event)
    words = stream.text(event, "error")
    if not words:
        return stream.spoke(report, stream.text(event, "output"))
    if re.search(_PERSON, words):
        return stream.troubled(report, stream.of_kind("login", words, now))
    if stream.text(event, "stop") in _OWN_LIMITS:
        return stream.noted(report, words)._replace(trouble=None)
    return stream.failed(report, words, now, _status(words))


def _status(words: str) -> float:
    match = re.match(_STATUS, words)
    return float(match[1]) if match else 0
