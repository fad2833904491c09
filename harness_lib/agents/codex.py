"""Codex: `codex exec --json`, the brief on standard input, one JSON object per line.

Recorded from 0.169.0. Its own sandbox lets it write only to the work tree, so harness commits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness_lib import typed
from harness_lib.agents import adapter, stream

if TYPE_CHECKING:  # see registry.py
    from collections.abc import Sequence
    from datetime import datetime

_USUAL = "workspace-write"
# If the user passes one, it replaces our sandbox: the client refuses two.
_SANDBOX = (
    "-s",
    "--sandbox",
    "--dangerously-bypass-approvals-and-sandbox",
    "--approve-for-me",
    "--full-auto",
)

# Tools: the kind of item, and which of its keys are the arguments.
_TOOLS = {
    "command_execution": ("command",),
    "file_change": ("changes",),
    "mcp_tool_call": ("server", "tool", "arguments"),
    "web_search": ("query",),
    "collab_tool_call": ("tool", "prompt"),
}
_RETRYING = "Reconnecting..."


def writable(places: Sequence[str]) -> str:
    """Return how to start Codex so that it can commit: its sandbox makes the `places` read-only.

    It closes the git directory of a linked worktree within one that is open, so each is named (0.171.0).
    """
    roots = f"sandbox_workspace_write.writable_roots={json.dumps(list(places))}"
    return f"The user ends this Codex and starts it here with: codex -c {typed.word(roots)}"


CREDENTIALS = (".codex/auth.json",)
SIGNS = adapter.Signs("codex", variables=("CODEX_SESSION_ID", "CODEX_THREAD_ID"), session="CODEX_SESSION_ID")

HOOKS = adapter.Host(
    name="codex",
    title="Codex",
    files={"user": (".codex/hooks.json",), "project": (".codex/hooks.json",)},
    home=("CODEX_HOME", ".codex"),
    events={**adapter.EVENTS, **adapter.TOOLS},
    trust={
        "user": "Codex skips each hook, in `codex exec` without a word, until you have trusted it: start "
        "codex, type /hooks, trust them.",
        "project": "Codex skips each hook until you have trusted it, and this project too: start codex here, "
        "type /hooks, trust them.",
    },
)


def _launch(model: str | None, extra: Sequence[str]) -> adapter.Launch:
    passed = adapter.arguments(("--sandbox", _USUAL), _SANDBOX, model, extra)
    argv = ("codex", "exec", "--json", "--skip-git-repo-check", *passed, "-")
    # Its sandbox does not start in ours; what the user has chosen stays.
    chosen = any(word.partition("=")[0] in _SANDBOX for word in extra)
    return adapter.Launch(
        argv,
        writable=(".codex/",),
        homes=("CODEX_HOME",),
        inside={} if chosen else {_USUAL: "danger-full-access"},
        clouds={"aws": ("bedrock",)},
    )


def _read(report: adapter.Report, line: str, now: datetime) -> adapter.Report:
    event = stream.event(line)
    if event is None:
        return stream.stray(report, line)
    kind = event.get("type")
    if kind in ("item.started", "item.completed"):
        return _item(report, stream.get(event, "item"), done=kind == "item.completed")
    if kind == "turn.completed":
        # Cached tokens are part of the input, reasoning tokens part of the output.
        counted = stream.total(event.get("usage"), "input_tokens", "output_tokens")
        return stream.spent(report, counted)._replace(trouble=None)
    if kind == "error":
        return _error(report, stream.text(event, "message"), now)
    if kind == "turn.failed":
        return _error(report, stream.text(event, "error", "message"), now)
    return report


ADAPTER = adapter.Adapter("codex", "Codex", "codex", _launch, _read)


def _item(report: adapter.Report, item: object, *, done: bool) -> adapter.Report:
    kind = stream.text(item, "type")
    if kind == "agent_message" and done:
        return stream.spoke(report, stream.text(item, "text"))
    if kind not in _TOOLS:
        return stream.noted(report, stream.text(item, "text") or stream.text(item, "message"))
    paths = ", ".join(stream.text(change, "path") for change in stream.objects(item, "changes"))
    shown = stream.first(item, "command", "tool", "query") or paths
    if not done:
        # Counted at its end: a change of files is reported only then.
        return stream.noted(report, f"{kind}: {shown}")._replace(trouble=None)
    return stream.acted(report, kind, {key: stream.get(item, key) for key in _TOOLS[kind]}, shown)


def _error(report: adapter.Report, words: str, now: datetime) -> adapter.Report:
    """Add an error; the last one is reported twice, as `error` and as `turn.failed`."""
    if words.startswith(_RETRYING):
        return stream.troubled(report, stream.of_kind("transient", words, now))
    return stream.failed(report, words, now)
