"""opencode: `opencode run`, the brief on standard input, one JSON object per line.

Recorded from 1.18.33. At a limit it waits in silence and only writes to its log, so we ask for the log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_lib.agents import adapter, stream

if TYPE_CHECKING:  # see registry.py
    from collections.abc import Sequence
    from datetime import datetime

# `small=true` is a request for a title, which nothing waits for.
_LOGGED = r'level=ERROR\b.*message="stream error".* small=false\b.* error\.error="(?P<text>[^"]*)'
_COUNTS = ("input", "output", "reasoning")
_CACHE = ("read", "write")

SIGNS = adapter.Signs("opencode", variables=("OPENCODE",))
CREDENTIALS = (".local/share/opencode/auth.json", ".local/share/opencode/mcp-auth.json")
_CLOUDS = {"aws": ("bedrock",), "google": ("vertex",)}
WRITABLE = (".config/opencode/", ".local/share/opencode/", ".local/state/opencode/")

# It runs no hook before it stops, so nothing could hold it.
WITHOUT_HOOKS = (
    "opencode runs no command when it is about to stop, so no hook can hold it; there is nothing "
    "to install. The skill works there: `npx skills add` puts it where opencode looks, and the agent follows "
    "the list by itself. Ask it to go on if it stops early; `harness status` shows what is left."
)


def _launch(model: str | None, extra: Sequence[str]) -> adapter.Launch:
    # `model` has the form `provider/model`.
    argv = ("opencode", "run", "--format", "json", "--auto", "--print-logs", "--log-level", "ERROR")
    passed = adapter.arguments((), (), model, extra)
    return adapter.Launch((*argv, *passed), writable=WRITABLE, clouds=_CLOUDS)


def _read(report: adapter.Report, line: str, now: datetime) -> adapter.Report:
    event = stream.event(line)
    if event is None:
        return _plain(report, line, now)
    kind, part = event.get("type"), stream.get(event, "part")
    if kind == "text":
        return stream.spoke(report, stream.text(part, "text"))
    if kind == "tool_use":
        arguments = stream.get(part, "state", "input")
        return stream.acted(report, stream.text(part, "tool"), arguments, stream.text(part, "state", "title"))
    if kind == "step_finish":
        counted = stream.get(part, "tokens")
        tokens = stream.total(counted, *_COUNTS) + stream.total(stream.get(counted, "cache"), *_CACHE)
        cost = (report.cost_usd or 0.0) + stream.number(part, "cost")
        return report._replace(tokens=report.tokens + tokens, cost_usd=cost, trouble=None)
    if kind == "error":
        return _error(report, event.get("error"), now)
    return report


ADAPTER = adapter.Adapter("opencode", "opencode", "opencode", _launch, _read)


def _error(report: adapter.Report, error: object, now: datetime) -> adapter.Report:
    words = stream.text(error, "data", "message") or stream.text(error, "name")
    headers = stream.get(error, "data", "responseHeaders")
    wait = stream.text(headers, "retry-after")[:20]
    body = stream.text(error, "data", "responseBody")[:2000]
    status = stream.number(error, "data", "statusCode")
    problem = stream.trouble(f"{words} {body}" + (f" retry-after: {wait}" if wait else ""), now, status)
    report = stream.noted(report, words)
    return stream.troubled(report, problem._replace(message=report.last) if problem else None)


def _plain(report: adapter.Report, line: str, now: datetime) -> adapter.Report:
    match = re.search(_LOGGED, line[:4000])
    if not match:
        return stream.stray(report, line)
    # It tries again by itself; the final failure comes as an event.
    seen = stream.trouble(match["text"], now)
    patient = not seen or seen.kind == "login"
    return stream.troubled(report, stream.of_kind("transient", match["text"], now) if patient else seen)
