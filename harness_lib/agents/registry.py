"""The known agents in the order of preference.

Every verb and some hooks ask it which agent calls, so the files of the agents load no other module at first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.agents import claude, codex, copilot, cursor, gemini, hs, kimi, opencode, qwen
from harness_lib.errors import UsageError

if TYPE_CHECKING:  # see above
    from collections.abc import Callable, Mapping

    from harness_lib.agents.adapter import Adapter, Host, Signs

# hs is the last one, as one of its commands may start another agent.
AGENTS = (claude, codex, gemini, copilot, opencode, cursor, kimi, qwen, hs)

SIGNS: Mapping[str, Signs] = {each.SIGNS.name: each.SIGNS for each in AGENTS}
# Every variable that marks a command as an agent's.
VARIABLES = frozenset(
    name
    for signs in SIGNS.values()
    for name in (*signs.variables, *signs.details, signs.session, signs.process)
    if name
)
ADAPTERS: Mapping[str, Adapter] = {
    each.ADAPTER.name: each.ADAPTER for each in AGENTS if hasattr(each, "ADAPTER")
}
HOSTS: Mapping[str, Host] = {each.HOOKS.name: each.HOOKS for each in AGENTS if hasattr(each, "HOOKS")}
# The message for agents that have no hooks.
WITHOUT_HOOKS: Mapping[str, str] = {
    each.SIGNS.name: each.WITHOUT_HOOKS for each in AGENTS if hasattr(each, "WITHOUT_HOOKS")
}
# How to start an agent whose sandbox makes the git directory read-only, so that it can commit.
WRITABLE: Mapping[str, Callable[..., str]] = {
    each.SIGNS.name: each.writable for each in AGENTS if hasattr(each, "writable")
}
# Where the logins of all agents are, below the home.
CREDENTIALS = tuple(path for each in AGENTS for path in getattr(each, "CREDENTIALS", ()))
# Maps a host's name of an event, in lower case, to ours.
EVENTS = {theirs.lower(): event for each in HOSTS.values() for event, theirs in each.events.items()} | {
    theirs.lower(): event for each in HOSTS.values() for theirs, event in each.also.items()
}


def named(name: str) -> Adapter:
    """Return the adapter called `name`. Raises UsageError, with the known names."""
    found = ADAPTERS.get(name)
    if not found:
        message = f"No agent is called {name[:40]!r}."
        raise UsageError(message, f"Known: {', '.join(ADAPTERS)}; any other by --agent-command 'COMMAND'.")
    return found


def host(env: Mapping[str, str], fields: Mapping[str, object]) -> str:
    """Return the host that called the hook, recognised by its `fields` or its variables; "" if unknown."""
    sent = (each.name for each in SIGNS.values() if any(key in fields for key in each.fields))
    told = (each.name for each in SIGNS.values() if any(env.get(key) for key in each.hooks))
    return next(sent, "") or next(told, "")
