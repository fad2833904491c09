"""The agents we know, the one to prefer first: whom a run drives, and whose hooks can be switched on."""

from __future__ import annotations

from collections.abc import Mapping

from harness_lib.agents import claude, codex, copilot, cursor, gemini, kimi, opencode
from harness_lib.agents.adapter import Adapter
from harness_lib.agents.claude import Claude
from harness_lib.agents.codex import Codex
from harness_lib.agents.copilot import Copilot
from harness_lib.agents.gemini import Gemini
from harness_lib.agents.hook_host import Host
from harness_lib.agents.hs import Hs
from harness_lib.agents.opencode import OpenCode
from harness_lib.errors import UsageError

_ALL: tuple[Adapter, ...] = (Claude(), Codex(), Gemini(), Copilot(), OpenCode(), Hs())

_HOOKS = (claude.HOOKS, codex.HOOKS, gemini.HOOKS, copilot.HOOKS, cursor.HOOKS, kimi.HOOKS)

ADAPTERS: Mapping[str, Adapter] = {adapter.name: adapter for adapter in _ALL}
HOSTS: Mapping[str, Host] = {host.name: host for host in _HOOKS}
# What to say to who asks for the hooks of one that has none.
WITHOUT_HOOKS = {"opencode": opencode.WITHOUT_HOOKS}


def named(name: str) -> Adapter:
    """Return the adapter that a person calls `name`.

    Raises UsageError, with the names there are.
    """
    adapter = ADAPTERS.get(name)
    if adapter is None:
        message = f"No agent is called {name[:40]!r}."
        raise UsageError(message, f"Known: {', '.join(ADAPTERS)}; any other by --agent-command 'COMMAND'.")
    return adapter
