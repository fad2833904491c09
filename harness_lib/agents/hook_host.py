"""The agents' programs whose hooks harness can switch on: their files, their names for events, their trust.

What a host hears from a hook is `hookio.dialect`'s; here is only how the hook gets there.
Source: hosts as measured, and for Cursor and Kimi as documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Scope = Literal["user", "project"]
Form = Literal["groups", "flat", "toml"]

SCOPES: tuple[Scope, ...] = ("user", "project")


_NONE: Mapping[str, Any] = MappingProxyType({})


class Host(NamedTuple):
    """`files` holds the hooks, by scope: the first one is written to, the others may hold some as well.

    Paths begin at the home (user) or at the top of the project. `home` is (variable, directory below the home
    that it stands for). `events` says what ours are called there; `matchers` which tools are meant, where the
    host has names of its own. `form`: `groups` of handlers as Claude Code has them, `flat` handlers, or TOML.
    """

    name: str
    title: str
    files: Mapping[Scope, tuple[str, ...]]
    events: Mapping[str, str]
    trust: Mapping[Scope, str]
    form: Form = "groups"
    home: tuple[str, str] | None = None
    matchers: Mapping[str, str | None] = _NONE
    command_key: str = "command"
    timeout_key: str = "timeout"
    timeout_unit: int = 1
    root: Mapping[str, object] = _NONE
    extra: Mapping[str, Mapping[str, object]] = _NONE
    is_measured: bool = True

    def places(self, scope: Scope, env: Mapping[str, str], project: Path) -> list[Path]:
        """Return the files of `scope`."""
        names = self.files.get(scope, ())
        if scope == "project":
            return [project / name for name in names]
        variable, folder = self.home or ("", "")
        moved = env.get(variable) if variable else None
        home = Path(env.get("HOME") or Path.home())
        return [
            Path(moved) / Path(name).relative_to(folder)
            if moved and Path(moved).is_absolute()
            else home / name
            for name in names
        ]


_LIKE_OURS = {name: name for name in ("Stop", "SubagentStop", "SessionStart", "SessionEnd")}
_SUBAGENTS = {"SubagentStart": "SubagentStart"}
_TOOLS = {name: name for name in ("PreToolUse", "PostToolUse")}

CLAUDE = Host(
    name="claude",
    title="Claude Code",
    # In the project, the file for this machine: the shared one would carry a path of ours into every clone,
    # and Copilot reads it too.
    files={
        "user": (".claude/settings.json",),
        "project": (".claude/settings.local.json", ".claude/settings.json"),
    },
    home=("CLAUDE_CONFIG_DIR", ".claude"),
    events={**_LIKE_OURS, **_SUBAGENTS, **_TOOLS, "TeammateIdle": "TeammateIdle"},
    trust={
        "user": "none is needed. /hooks in Claude Code shows them; a session that is open reads them when it "
        "starts anew.",
        "project": "none beyond the trust in this folder that Claude Code asks for when it is opened.",
    },
)

CODEX = Host(
    name="codex",
    title="Codex",
    files={"user": (".codex/hooks.json",), "project": (".codex/hooks.json",)},
    home=("CODEX_HOME", ".codex"),
    events={**_LIKE_OURS, **_SUBAGENTS, **_TOOLS},
    trust={
        "user": "Codex skips each hook, in `codex exec` without a word, until you have trusted it: start "
        "codex, type /hooks, trust them.",
        "project": "Codex skips each hook until you have trusted it, and this project too: start codex here, "
        "type /hooks, trust them.",
    },
)

GEMINI = Host(
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
    trust={
        "user": "none is needed. /hooks in Gemini CLI shows them.",
        "project": "the folder must be a trusted one, and Gemini CLI warns of new hooks of a project once.",
    },
)

COPILOT = Host(
    name="copilot",
    title="GitHub Copilot CLI",
    files={"user": (".copilot/hooks/harness.json",), "project": (".github/hooks/harness.json",)},
    events={name: name for name in ("Stop", "SubagentStop", "SessionStart")},
    form="flat",
    command_key="bash",
    timeout_key="timeoutSec",
    root={"version": 1},
    trust={
        "user": "none is needed.",
        "project": "without trust in the folder its hooks are skipped silently: say yes when Copilot asks, "
        "or start it with --trust-folder.",
    },
)

CURSOR = Host(
    name="cursor",
    title="Cursor",
    files={"user": (".cursor/hooks.json",), "project": (".cursor/hooks.json",)},
    events={"Stop": "stop", "SubagentStop": "subagentStop", "SessionStart": "sessionStart"},
    form="flat",
    root={"version": 1},
    # Cursor ends a loop after a few rounds of its own; ours ends after eight without progress.
    extra={"Stop": {"loop_limit": 1000}, "SubagentStop": {"loop_limit": 1000}},
    trust={
        "user": "see the hooks page in Cursor's settings.",
        "project": "the workspace must be a trusted one; see the hooks page in Cursor's settings.",
    },
    is_measured=False,
)

KIMI = Host(
    name="kimi",
    title="Kimi Code CLI",
    files={"user": (".kimi-code/config.toml",)},
    events={"Stop": "Stop"},
    form="toml",
    trust={"user": "see what Kimi Code says at its next start."},
    is_measured=False,
)

HOSTS: Mapping[str, Host] = {host.name: host for host in (CLAUDE, CODEX, GEMINI, COPILOT, CURSOR, KIMI)}

# They run no command when they are about to stop, so nothing could hold them.
WITHOUT_HOOKS = {
    "opencode": "opencode runs no command when it is about to stop, so no hook can hold it; there is nothing "
    "to install. The skill works there: `npx skills add` puts it where opencode looks, and the agent follows "
    "the list by itself. Ask it to go on if it stops early; `harness status` shows what is left."
}
