"""Claude Code: `claude -p`, the brief on standard input, one JSON object per line.

Recorded from 2.1.330; older clients say a limit as `Claude AI usage limit reached|<epoch>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness_lib.agents import adapter, stream

if TYPE_CHECKING:  # see registry.py
    from collections.abc import Sequence
    from datetime import datetime

# The kinds of error that the client reports; for any other kind, the text of the error decides.
_KINDS: dict[str, stream.Kind] = {
    "authentication_failed": "login",
    "oauth_org_not_allowed": "login",
    "billing_error": "login",
    "model_not_found": "login",
    "overloaded": "transient",
    "server_error": "transient",
}
_FATAL = ("root/sudo privileges", "Invalid API key", "Please run /login")

# A login that was just renewed is refused once or twice.
_PATIENCE = 3

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_MODEL_COUNTS = ("inputTokens", "outputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")

# If the user passes one of them, it replaces ours, which allows everything because no user can be asked.
_PERMISSIONS = frozenset({"--permission-mode", "--allowedTools", "--allowed-tools"})

# Where its logins are, below the home.
CREDENTIALS = (".claude/.credentials.json", ".claude.json")

SIGNS = adapter.Signs(
    "claude",
    variables=("CLAUDECODE",),
    session="CLAUDE_CODE_SESSION_ID",
    process="CLAUDE_PID",
    details=("CLAUDE_CODE_ENTRYPOINT",),
    fields=("permission_mode",),
    # `/clear` ends the conversation before.
    one_at_a_time=True,
)

HOOKS = adapter.Host(
    name="claude",
    title="Claude Code",
    # In the project, the file for this machine: the shared file would carry a path of this machine into every
    # clone, and Copilot reads it too.
    files={
        "user": (".claude/settings.json",),
        "project": (".claude/settings.local.json", ".claude/settings.json"),
    },
    home=("CLAUDE_CONFIG_DIR", ".claude"),
    events={**adapter.EVENTS, **adapter.TOOLS, "TeammateIdle": "TeammateIdle"},
    kept=("async", "onFailure"),
    # Copilot and others read its settings, and are recognised by what they send.
    is_named=False,
    trust={
        "user": "nothing. /hooks in Claude Code shows them; an open session reads them when it restarts.",
        "project": "nothing beyond the trust in this folder that Claude Code asks for when it is opened.",
    },
)


def _launch(model: str | None, extra: Sequence[str]) -> adapter.Launch:
    # As root it needs IS_SANDBOX=1, which only a user can set.
    argv = ("claude", "-p", "--output-format", "stream-json", "--verbose")
    usual = ("--dangerously-skip-permissions",)
    return adapter.Launch(
        (*argv, *adapter.arguments(usual, _PERMISSIONS, model, extra)),
        # By default it ends its background agents after ten minutes; the limits of the run are enough.
        env={"CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS": "0"},
        cost_flag="--max-budget-usd",
        writable=(".claude/", ".claude.json", ".local/state/claude", ".local/share/claude"),
        homes=("CLAUDE_CONFIG_DIR/",),
        clouds={
            "aws": ("CLAUDE_CODE_USE_BEDROCK",),
            "google": ("CLAUDE_CODE_USE_VERTEX",),
            "azure": ("CLAUDE_CODE_USE_FOUNDRY",),
        },
    )


def _read(report: adapter.Report, line: str, now: datetime) -> adapter.Report:
    event = stream.event(line)
    if event is None:
        fatal = any(words in line for words in _FATAL)
        return stream.troubled(stream.stray(report, line), stream.trouble(line, now) if fatal else None)
    kind = event.get("type")
    if kind == "assistant":
        return _assistant(report, event, now)
    if kind == "result":
        return _result(report, event, now)
    if kind == "rate_limit_event":
        return _rate_limit(report, event, now)
    if kind == "system" and event.get("subtype") == "api_retry":
        return _retry(report, event, now)
    return report


ADAPTER = adapter.Adapter("claude", "Claude Code", "claude", _launch, _read)


def _assistant(report: adapter.Report, event: Mapping[str, object], now: datetime) -> adapter.Report:
    blocks = stream.objects(event, "message", "content")
    if event.get("is_api_error_message") or stream.text(event, "message", "model") == "<synthetic>":
        words = " ".join(stream.text(block, "text") for block in blocks)
        return _error(report, words, event, now)
    message = stream.text(event, "message", "id")[:100]
    if message and message != report.mark:
        # Each block of a message repeats its tokens.
        tokens = stream.total(stream.get(event, "message", "usage"), *_COUNTS)
        report = report._replace(tokens=report.tokens + tokens, mark=message)
    for block in blocks:
        if block.get("type") == "tool_use":
            arguments = stream.get(block, "input")
            shown = stream.first(arguments, "command", "file_path", "pattern", "description", "url")
            report = stream.acted(report, stream.text(block, "name"), arguments, shown)
        elif block.get("type") == "text":
            words = stream.text(block, "text")
            # A message of a subagent is not the last message of the agent.
            mine = event.get("parent_tool_use_id") is None
            report = stream.spoke(report, words) if mine else stream.noted(report, words)
    return report


def _result(report: adapter.Report, event: Mapping[str, object], now: datetime) -> adapter.Report:
    # Those of the whole run: by model with subagents, or in the form of older clients.
    models = event.get("modelUsage")
    used = models.values() if isinstance(models, Mapping) else ()
    tokens = sum(stream.total(one, *_MODEL_COUNTS) for one in used) or stream.total(
        event.get("usage"), *_COUNTS
    )
    report = stream.spent(report, tokens, stream.number(event, "total_cost_usd"))
    report = report._replace(cost_usd=report.cost_usd or 0.0)
    words = stream.text(event, "result")
    if event.get("is_error") is True:
        errors = event.get("errors")
        first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], str) else ""
        # The end of the turns or the budget belongs to the attempt, although its text speaks of limits.
        ended = stream.text(event, "subtype").startswith("error_max")
        return stream.noted(report, first) if ended else _error(report, words or first, event, now)
    return stream.spoke(report, words)._replace(trouble=None)


def _error(report: adapter.Report, words: str, event: Mapping[str, object], now: datetime) -> adapter.Report:
    from harness_lib.agents import resets  # noqa: PLC0415 (its patterns take a while to compile)

    report = stream.noted(report, words)
    status = stream.number(event, "api_error_status")
    kind = _KINDS.get(stream.text(event, "error"))
    known = stream.of_kind(kind, words, now) if kind else stream.trouble(words, now, status)
    if event.get("api_error") == "usage_limit_reached":
        known = stream.of_kind("limit", words, now, resets.moment(words, now))
    if known and known.kind != "login" and report.trouble and report.trouble.resets_at:
        # The text rounds the moment, perhaps into the past; an event has told it to the second.
        known = known._replace(resets_at=report.trouble.resets_at)
    return stream.troubled(report, known)


def _rate_limit(report: adapter.Report, event: Mapping[str, object], now: datetime) -> adapter.Report:
    from harness_lib.agents import resets  # noqa: PLC0415 (its patterns take a while to compile)

    info = stream.get(event, "rate_limit_info")
    if stream.text(info, "status") != "rejected" or stream.get(info, "isUsingOverage") is True:
        return report
    until = resets.at_epoch(stream.number(info, "resetsAt"), now)
    words = f"usage limit ({stream.text(info, 'rateLimitType') or 'unnamed'}) reached"
    return stream.troubled(report, stream.of_kind("limit", words, now, until))


def _retry(report: adapter.Report, event: Mapping[str, object], now: datetime) -> adapter.Report:
    error = stream.text(event, "error") or "unknown"
    attempt = int(stream.number(event, "attempt"))
    refused = _KINDS.get(error) == "login" and attempt >= _PATIENCE
    status = int(stream.number(event, "error_status"))
    words = f"API error {status or ''} ({error}), retry {attempt}"
    return stream.troubled(report, stream.of_kind("login" if refused else "transient", words, now))
