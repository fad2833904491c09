"""Kimi Code CLI: its signs and hooks, measured with 2.1.0; `harness run` does not drive it."""

from __future__ import annotations

from harness_lib.agents.adapter import TOOLS, Host, Signs

# It sets no variable. Its process calls itself `kimi-code`, some versions `kimi-co` or `Kimi Code`.
# Its settings hold the keys of providers.
CREDENTIALS = (
    *(".kimi/credentials", ".kimi/config.json", ".kimi/config.toml"),
    *(".kimi-code/credentials", ".kimi-code/config.toml"),
)
SIGNS = Signs("kimi", programs=("kimi", "kimi-cli", "kimi-co", "kimi-code", "Kimi Code"))

HOOKS = Host(
    name="kimi",
    title="Kimi Code CLI",
    files={"user": (".kimi-code/config.toml",)},
    home=("KIMI_CODE_HOME", ".kimi-code"),
    events={name: name for name in (*TOOLS, "Stop")},
    extra={"PreToolUse": {"matcher": "Edit|Write"}, "PostToolUse": {"matcher": "Bash"}},
    form="toml",
    trust={"user": "nothing. It lets itself be held once in each turn: ask it to go on if it stops early."},
    holds=" (once in each turn)",
    wakes=True,
    # It reads only the exit code of a block, and no context.
    answers={"allow": {}, "block": None, "context": {}, "deny": None},
)
