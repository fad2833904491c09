"""GitHub Copilot CLI: the brief on standard input, one JSON object per line.

Recorded from 1.0.102 with a provider of the user's own; GitHub's limits are from users' reports.
Its usage is in a file that it writes at its end, not in a line; `assistant.usage` (tokens) is
documented for its SDK and was not seen. GitHub bills AI credits of one cent each, which are counted in
billionths; for a provider of the user's own they are "unavailable".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness_lib.agents import adapter, stream

if TYPE_CHECKING:  # see registry.py
    from collections.abc import Sequence
    from datetime import datetime

# Cached tokens are part of the input.
_COUNTS = ("inputTokens", "outputTokens")
_NANO_CREDITS_PER_DOLLAR = 10**11
# If the user passes one, it replaces ours.
_ALLOWED = frozenset({"--allow-tool", "--allow-all-tools", "--allow-all", "--yolo"})

CREDENTIALS = (".copilot/config.json", ".config/github-copilot")
SIGNS = adapter.Signs(
    "copilot",
    variables=("COPILOT_PROJECT_DIR", "COPILOT_CLI"),
    hooks=("COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR", "COPILOT_PLUGIN_ROOT"),
    fields=("sessionId",),
)

HOOKS = adapter.Host(
    name="copilot",
    title="GitHub Copilot CLI",
    files={"user": (".copilot/hooks/harness.json",), "project": (".github/hooks/harness.json",)},
    events={name: name for name in ("Stop", "SubagentStop", "SessionStart", *adapter.TOOLS)},
    # As it calls its tools at these events: by Claude Code's names.
    extra={"PreToolUse": {"matcher": "Edit|Write"}, "PostToolUse": {"matcher": "Bash"}},
    also={"agentStop": "Stop"},
    form="flat",
    shared=".claude/settings.json",
    holds=" (eight times in each turn)",
    wakes=True,
    command_key="bash",
    timeout_key="timeoutSec",
    root={"version": 1},
    answers={
        "context": {"additionalContext": adapter.TEXT},
        "deny": {"permissionDecision": "deny", "permissionDecisionReason": adapter.TEXT},
    },
    trust={
        "user": "nothing. It lets itself be held eight times in a turn: ask it to go on if it stops early.",
        "project": "without trust in the folder its hooks are skipped silently: say yes when Copilot asks, "
        "or start it with --trust-folder.",
    },
)


def _launch(model: str | None, extra: Sequence[str]) -> adapter.Launch:
    # It may not use files outside the work tree, nor type a command that names one.
    argv = ("copilot", "--output-format", "json", "--no-ask-user", "--no-color")
    passed = adapter.arguments(("--allow-all-tools",), _ALLOWED, model, extra)
    return adapter.Launch(
        (*argv, *passed),
        usage_flag="--usage-output-file",
        dir_flag="--add-dir",
        writable=(".copilot/", ".config/github-copilot"),
        # It may log in by these.
        clouds={"github": ("",)},
    )


def _read(report: adapter.Report, line: str, now: datetime) -> adapter.Report:
    event = stream.event(line)
    if event is None:
        problem = stream.trouble(line, now) if line.startswith("Error: No authentication") else None
        return stream.troubled(stream.stray(report, line), problem)
    kind, data = event.get("type"), stream.get(event, "data")
    if kind == "assistant.message":
        mine = stream.get(data, "parentToolCallId") is None
        words = stream.text(data, "content")
        return stream.spoke(report, words) if mine else stream.noted(report, words)
    if kind == "tool.execution_start":
        arguments = stream.get(data, "arguments")
        shown = stream.first(arguments, "command", "path", "query")
        return stream.acted(report, stream.text(data, "toolName"), arguments, shown)
    if kind == "assistant.usage":
        return report._replace(tokens=report.tokens + stream.total(data, *_COUNTS))
    if kind == "result":
        return report._replace(trouble=None) if event.get("exitCode") == 0 else report
    return _used(report, event) if "modelMetrics" in event else _wrong(report, str(kind), data, now)


ADAPTER = adapter.Adapter("copilot", "GitHub Copilot CLI", "copilot", _launch, _read)


def _used(report: adapter.Report, usage: Mapping[str, object]) -> adapter.Report:
    """Add the usage of the whole run from the file."""
    models = usage["modelMetrics"]
    each = models.values() if isinstance(models, Mapping) else ()
    tokens = sum(stream.total(stream.get(model, "usage"), *_COUNTS) for model in each)
    used = stream.number(usage, "totalNanoAiu")
    known = used or stream.text(usage, "aiCreditsStatus") not in ("", "unavailable")
    cost = used / _NANO_CREDITS_PER_DOLLAR if known else report.cost_usd
    return report._replace(tokens=max(report.tokens, tokens), cost_usd=cost)


def _wrong(report: adapter.Report, kind: str, data: object, now: datetime) -> adapter.Report:
    if kind == "model.call_failure":
        # It tries again by itself; the last failure comes as `session.error`.
        words = f"{int(stream.number(data, 'statusCode')) or ''} {stream.text(data, 'errorMessage')}"
        problem = stream.trouble(words, now, stream.number(data, "statusCode"))
        patient = problem is not None and problem.kind == "login"
        return stream.troubled(report, stream.of_kind("transient", words, now) if patient else problem)
    if kind == "session.error":
        return stream.failed(report, stream.text(data, "message"), now, stream.number(data, "statusCode"))
    return report
