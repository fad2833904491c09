"""Gemini CLI: the brief on standard input, one JSON object per line; errors on standard error as text.

Recorded from 0.61.0. At a limit it waits in silence as long as the provider says, even for hours.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_lib.agents import adapter, stream

if TYPE_CHECKING:  # see registry.py
    from collections.abc import Sequence
    from datetime import datetime

# Its plain-text lines about the provider or the login; all other lines are noise.
_TOLD = r"(?i)^\W{0,5}\w{0,3}Attempt \d+ failed|auth method|running in a trusted directory|set an Auth"
_TALKING = "talking"
# If the user passes one, it replaces ours.
_APPROVAL = frozenset({"--approval-mode", "--yolo", "-y"})

CREDENTIALS = (".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/.env")
_CLOUDS = {"google": ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT", "vertex")}
SIGNS = adapter.Signs(
    "gemini",
    variables=("GEMINI_CLI", "GEMINI_SESSION_ID"),
    session="GEMINI_SESSION_ID",
    hooks=("GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID"),
)

HOOKS = adapter.Host(
    name="gemini",
    title="Gemini CLI",
    files={"user": (".gemini/settings.json",), "project": (".gemini/settings.json",)},
    events={
        "Stop": "AfterAgent",
        "SessionStart": "SessionStart",
        "SessionEnd": "SessionEnd",
        "PreToolUse": "BeforeTool",
        "PostToolUse": "AfterTool",
    },
    matchers={"PreToolUse": "write_file|replace", "PostToolUse": "run_shell_command", "SessionStart": None},
    timeout_unit=1000,
    has_names=True,
    answers={"deny": {"decision": "deny", "reason": adapter.TEXT}},
    trust={
        "user": "nothing. /hooks in Gemini CLI shows them.",
        "project": "the folder must be a trusted one, and Gemini CLI warns of new hooks of a project once.",
    },
)


def _launch(model: str | None, extra: Sequence[str]) -> adapter.Launch:
    # Without trust in the folder it would ask before each step.
    passed = adapter.arguments(("--approval-mode", "yolo"), _APPROVAL, model, extra)
    argv = ("gemini", "--output-format", "stream-json", *passed)
    trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return adapter.Launch(argv, env=trusted, writable=(".gemini/",), clouds=_CLOUDS)


def _read(report: adapter.Report, line: str, now: datetime) -> adapter.Report:
    event = stream.event(line)
    if event is None:
        return _plain(report, line, now)
    kind = event.get("type")
    if kind == "message" and event.get("role") == "assistant":
        # Pieces of one message follow one another until another event comes.
        before = report.said if report.mark == _TALKING else ""
        return stream.spoke(report, before + stream.text(event, "content"))._replace(mark=_TALKING)
    report = report._replace(mark="")
    if kind == "tool_use":
        arguments = stream.get(event, "parameters")
        shown = stream.first(arguments, "command", "file_path", "query")
        return stream.acted(report, stream.text(event, "tool_name"), arguments, shown)
    if kind == "result":
        return _result(report, event, now)
    if kind == "error":
        return stream.noted(report, stream.text(event, "message"))
    return report


ADAPTER = adapter.Adapter("gemini", "Gemini CLI", "gemini", _launch, _read)


def _result(report: adapter.Report, event: object, now: datetime) -> adapter.Report:
    report = stream.spent(report, stream.number(event, "stats", "total_tokens"))
    if stream.get(event, "status") == "error":
        return stream.failed(report, stream.text(event, "error", "message"), now)
    return report._replace(trouble=None)


def _plain(report: adapter.Report, line: str, now: datetime) -> adapter.Report:
    if not re.search(_TOLD, line[:500]):
        return stream.stray(report, line)
    # It tries again by itself, so at worst the run waits.
    problem = stream.trouble(line, now) or stream.of_kind("transient", line, now)
    return stream.troubled(report, problem)
