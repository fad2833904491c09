"""Our own plugins, by name; a module is imported when one of its plugins is first called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from harness_lib.loop.table import BUILT_IN, Kind, Plugin


class Late:
    """Stands for `name` of the module `module`, which it imports when it is used."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name
        self._target: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        return self._loaded()(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loaded(), name)

    def _loaded(self) -> Any:
        if self._target is None:
            self._target = getattr(import_module(self._module), self._name)
        return self._target


_HOOKS = {
    "sources": {
        "30-walk-dirs": "stages.sources:walk",
        "35-auth-env": "stages.sources:merge_credentials",
        "40-scope-providers": "stages.sources:scope",
    },
    "resolve": {
        "10-settings": "stages.resolve:settings",
        "20-detect": "stages.resolve:detect",
        "30-defaults": "stages.resolve:defaults",
    },
    "start": {"10-init": "stages.turn:start", "90-harness": "stages.tasks:begin"},
    "assemble": {
        "05-typed": "stages.typed:tell",
        "10-messages": "stages.assemble:messages",
        "20-tools": "stages.assemble:tools",
        "30-prompts": "stages.prompts:prompts",
        "35-skills": "stages.skills:catalogue",
    },
    "send": {"10-send": "stages.send:send"},
    "receive": {"10-save": "stages.receive:save"},
    "tool_exec": {"10-exec": "stages.tool_calls:execute"},
    "tool_gate": {"50-approve": "stages.approve:decide", "90-harness": "stages.tasks:guard"},
    "tool_done": {"10-save": "stages.tool_calls:save", "90-harness": "stages.tasks:beat"},
    "done": {"90-harness": "stages.tasks:hold"},
    "error": {"10-display": "stages.turn:display"},
    "auth-set": {"10-oauth": "stages.auth_set:log_in", "50-default": "stages.auth_set:ask"},
}
_TOOLS = {
    "agent": "tools.agent:TOOL",
    "bash": "tools.bash:TOOL",
    "edit_file": "tools.edit_file:TOOL",
    "read_file": "tools.read_file:TOOL",
    "replace": "tools.replace:TOOL",
    "skill": "tools.skills:TOOL",
    "write_file": "tools.write_file:TOOL",
}
_PROVIDERS = {
    "anthropic": "providers.anthropic:PROVIDER",
    "claude": "claude.provider:PROVIDER",
    "openai": "providers.openai:PROVIDER",
}
# A provider with a language of its own brings its own hooks, as a pack does; they count while it is in use.
_PACKS = {
    "claude": {
        "assemble": {
            "10-messages": "claude.stages:assemble",
            "20-tools": "claude.stages:pass_on",
            "30-prompts": "claude.stages:pass_on",
            "35-skills": "claude.stages:pass_on",
        },
        "receive": {"10-save": "claude.stages:save"},
    }
}
_COMMANDS = {
    "acp": "commands.acp:COMMAND",
    "agent": "commands.agent:COMMAND",
    "auth": "commands.auth:COMMAND",
    "doctor": "commands.doctor:COMMAND",
    "help": "commands.help:COMMAND",
    "hook": "commands.programs:HOOK_COMMAND",
    "hooks": "commands.listing:HOOKS",
    "provider": "commands.programs:PROVIDER_COMMAND",
    "repl": "commands.agent:REPL",
    "resume": "commands.agent:RESUME",
    "session": "commands.session:COMMAND",
    "tool": "commands.programs:TOOL_COMMAND",
    "tools": "commands.listing:TOOLS",
    "trust": "commands.trust:COMMAND",
    "version": "commands.version:COMMAND",
}


def _plugin(kind: Kind, stage: str, name: str, target: str) -> Plugin:
    module, _, attribute = target.partition(":")
    # The words behind `hs` stand above the loop, which knows them by name alone, as it does foreign plugins.
    room = "harness_lib.hs" if kind == "commands" else "harness_lib.loop"
    return Plugin(kind, stage, name, BUILT_IN, Late(f"{room}.{module}", attribute))


PLUGINS = [
    *(
        _plugin("hooks.d", stage, name, target)
        for stage, names in _HOOKS.items()
        for name, target in names.items()
    ),
    *(_plugin("tools", "", name, target) for name, target in _TOOLS.items()),
    *(_plugin("providers", "", name, target) for name, target in _PROVIDERS.items()),
    *(_plugin("commands", "", name, target) for name, target in _COMMANDS.items()),
]
PACKS = {
    provider: [
        _plugin("hooks.d", stage, name, target)
        for stage, names in stages.items()
        for name, target in names.items()
    ]
    for provider, stages in _PACKS.items()
}
