"""Our own plugins, by name. The commands of `hs` are not among them: they stand above the loop."""

from __future__ import annotations

from harness_lib.loop import plugins
from harness_lib.loop.claude import stages as claude
from harness_lib.loop.claude.provider import PROVIDER as CLAUDE
from harness_lib.loop.providers import anthropic, openai
from harness_lib.loop.stages import (
    approve,
    assemble,
    auth_set,
    prompts,
    receive,
    resolve,
    send,
    skills,
    sources,
    tasks,
    tool_calls,
    turn,
    typed,
)
from harness_lib.loop.table import BUILT_IN, Plugin
from harness_lib.loop.tools import agent, bash, edit_file, read_file, replace, write_file
from harness_lib.loop.tools import skills as skill

Hooks = dict[str, dict[str, plugins.Hook]]

_HOOKS: Hooks = {
    "sources": {
        "30-walk-dirs": sources.walk,
        "35-auth-env": sources.merge_credentials,
        "40-scope-providers": sources.scope,
    },
    "resolve": {
        "10-settings": resolve.settings,
        "20-detect": resolve.detect,
        "30-defaults": resolve.defaults,
    },
    "start": {"10-init": turn.start, "90-harness": tasks.begin},
    "assemble": {
        "05-typed": typed.tell,
        "10-messages": assemble.messages,
        "20-tools": assemble.tools,
        "30-prompts": prompts.prompts,
        "35-skills": skills.catalogue,
    },
    "send": {"10-send": send.send},
    "receive": {"10-save": receive.save},
    "tool_exec": {"10-exec": tool_calls.execute},
    "tool_gate": {"50-approve": approve.decide, "90-harness": tasks.guard},
    "tool_done": {"10-save": tool_calls.save, "90-harness": tasks.beat},
    "done": {"90-harness": tasks.hold},
    "error": {"10-display": turn.display},
    "auth-set": {"10-oauth": auth_set.log_in, "50-default": auth_set.ask},
}
# A provider with a language of its own brings its own hooks, as a pack does; they count while it is in use.
_PACKS: dict[str, Hooks] = {
    "claude": {
        "assemble": {
            "10-messages": claude.assemble,
            "20-tools": claude.pass_on,
            "30-prompts": claude.pass_on,
            "35-skills": claude.pass_on,
        },
        "receive": {"10-save": claude.save},
    }
}
_TOOLS = (
    agent.TOOL,
    bash.TOOL,
    edit_file.TOOL,
    read_file.TOOL,
    replace.TOOL,
    skill.TOOL,
    write_file.TOOL,
)


def _plugins(hooks: Hooks) -> list[Plugin]:
    return [
        Plugin("hooks.d", stage, name, BUILT_IN, hook)
        for stage, names in hooks.items()
        for name, hook in names.items()
    ]


PLUGINS = [
    *_plugins(_HOOKS),
    *(Plugin("tools", "", tool.name, BUILT_IN, tool) for tool in _TOOLS),
    Plugin("providers", "", "anthropic", BUILT_IN, anthropic.PROVIDER),
    Plugin("providers", "", "claude", BUILT_IN, CLAUDE),
    Plugin("providers", "", "openai", BUILT_IN, openai.PROVIDER),
]
PACKS = {provider: _plugins(hooks) for provider, hooks in _PACKS.items()}
