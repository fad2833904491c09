"""The agents we know, the one to prefer first: how each is known, driven, and given our hooks.

Most verbs ask it who types, so the files of the agents load no other module before it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness_lib.agents import adapter, claude, codex, copilot, cursor, gemini, hs, kimi, opencode
from harness_lib.agents.hook_host import Host
from harness_lib.agents.signs import Signs
from harness_lib.errors import UsageError

_ALL: tuple[adapter.Adapter, ...] = (
    claude.Claude(),
    codex.Codex(),
    gemini.Gemini(),
    copilot.Copilot(),
    opencode.OpenCode(),
    hs.Hs(),
)

_HOOKS = (claude.HOOKS, codex.HOOKS, gemini.HOOKS, copilot.HOOKS, cursor.HOOKS, kimi.HOOKS)

# hs is the last one, as one of its commands may start another agent.
_SIGNS = (
    *(claude.SIGNS, codex.SIGNS, gemini.SIGNS, copilot.SIGNS),
    *(opencode.SIGNS, cursor.SIGNS, kimi.SIGNS, hs.SIGNS),
)

SIGNS: Mapping[str, Signs] = {signs.name: signs for signs in _SIGNS}
ADAPTERS: Mapping[str, adapter.Adapter] = {each.name: each for each in _ALL}
HOSTS: Mapping[str, Host] = {host.name: host for host in _HOOKS}
# What to say to who asks for the hooks of one that has none.
WITHOUT_HOOKS = {"opencode": opencode.WITHOUT_HOOKS}


def named(name: str) -> adapter.Adapter:
    """Return the adapter that a person calls `name`.

    Raises UsageError, with the names there are.
    """
    found = ADAPTERS.get(name)
    if found is None:
        message = f"No agent is called {name[:40]!r}."
        raise UsageError(message, f"Known: {', '.join(ADAPTERS)}; any other by --agent-command 'COMMAND'.")
    return found
