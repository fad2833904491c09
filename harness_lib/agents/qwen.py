"""Qwen Code: its signs and hooks, measured with 0.24.4; `harness run` does not drive it."""

from __future__ import annotations

from harness_lib.agents.adapter import EVENTS, TOOLS, Host, Signs

CREDENTIALS = (".qwen/oauth_creds.json", ".qwen/.env", ".qwen/settings.json")
SIGNS = Signs("qwen", variables=("QWEN_CODE", "QWEN_CODE_SESSION_ID"), session="QWEN_CODE_SESSION_ID")

HOOKS = Host(
    name="qwen",
    title="Qwen Code",
    files={"user": (".qwen/settings.json",), "project": (".qwen/settings.json",)},
    events={**EVENTS, **TOOLS},
    matchers={"PreToolUse": "write_file|edit", "PostToolUse": "run_shell_command"},
    kept=("async", "env", "shell"),
    has_names=True,
    holds=" (eight times in each turn)",
    trust={
        "user": "nothing. It lets itself be held eight times in a turn: ask it to go on if it stops early.",
        "project": "the folder must be a trusted one.",
    },
)
