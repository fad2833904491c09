"""Our own plugins, by name. The commands of `hs` are not among them: they stand above the loop."""

from __future__ import annotations

from harness_lib.loop import gates, plugins
from harness_lib.loop.claude import scribe as claude
from harness_lib.loop.claude.provider import PROVIDER as CLAUDE
from harness_lib.loop.providers import hosted
from harness_lib.loop.stages import assemble, receive, send, setup, tasks, tool_calls
from harness_lib.loop.table import BUILT_IN, Plugin
from harness_lib.loop.tools import agent, bash, edit_file, files
from harness_lib.loop.tools import skills as skill

Hooks = dict[str, dict[str, plugins.Hook]]

_HOOKS: Hooks = {
    "sources": {
        "30-walk-dirs": setup.walk,
        "35-auth-env": setup.merge_credentials,
        "40-scope-providers": setup.scope,
    },
    "resolve": {
        "10-settings": setup.settings,
        "20-detect": setup.detect,
        "30-defaults": setup.defaults,
    },
    "start": {"10-init": assemble.start, "90-harness": tasks.begin},
    "assemble": {
        "05-typed": assemble.tell_typed,
        "10-messages": assemble.messages,
        "20-tools": assemble.tools,
        "30-prompts": assemble.prompts,
        "35-skills": assemble.catalogue,
    },
    "send": {"10-send": send.send},
    "receive": {"10-save": receive.save},
    "tool_exec": {"10-exec": tool_calls.execute},
    "tool_gate": {"50-approve": gates.approve, "90-harness": tasks.guard},
    "tool_done": {"10-save": tool_calls.save, "90-harness": tasks.beat},
    "done": {"90-harness": tasks.hold},
    "error": {"10-display": assemble.display},
    "auth-set": {"10-oauth": setup.log_in, "50-default": setup.ask_key},
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
    files.READ_FILE,
    files.REPLACE,
    skill.TOOL,
    files.WRITE_FILE,
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
    Plugin("providers", "", "anthropic", BUILT_IN, hosted.ANTHROPIC),
    Plugin("providers", "", "claude", BUILT_IN, CLAUDE),
    Plugin("providers", "", "openai", BUILT_IN, hosted.OPENAI),
]
PACKS = {provider: _plugins(hooks) for provider, hooks in _PACKS.items()}
