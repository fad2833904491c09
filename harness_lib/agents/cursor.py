"""Cursor: its signs and hooks, as documented; `harness run` does not drive it."""

from __future__ import annotations

from harness_lib.agents.adapter import TEXT, Host, Signs

# CURSOR_TRACE_ID is not used: the editor also sets it in the terminals of users.
CREDENTIALS = (".config/cursor/auth.json", ".cursor/auth.json")
SIGNS = Signs(
    "cursor",
    variables=("CURSOR_AGENT",),
    hooks=("CURSOR_PROJECT_DIR", "CURSOR_VERSION"),
    fields=("conversation_id",),
)

HOOKS = Host(
    name="cursor",
    title="Cursor",
    files={"user": (".cursor/hooks.json",), "project": (".cursor/hooks.json",)},
    events={"Stop": "stop", "SubagentStop": "subagentStop", "SessionStart": "sessionStart"},
    form="flat",
    root={"version": 1},
    # Cursor ends a loop after a few rounds; ours ends after eight rounds without progress.
    extra={"Stop": {"loop_limit": 1000}, "SubagentStop": {"loop_limit": 1000}},
    trust={
        "user": "see the hooks page in Cursor's settings.",
        "project": "the workspace must be a trusted one; see the hooks page in Cursor's settings.",
    },
    is_measured=False,
    answers={
        "allow": {},
        "block": {"followup_message": TEXT},
        "context": {"additional_context": TEXT},
        "deny": {"permission": "deny", "user_message": TEXT, "agent_message": TEXT},
    },
)
