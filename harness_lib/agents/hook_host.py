"""What is to be known of an agent's program to switch our hooks on there: files, names of events, trust.

Each is in its agent's file. What a host hears from a hook is `hookio.dialect`'s; here is only how the hook
gets there.
"""

from __future__ import annotations

from collections.abc import Mapping
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


# What hosts call the events, and most of them call as we do.
LIKE_OURS = {name: name for name in ("Stop", "SubagentStop", "SessionStart", "SessionEnd")}
SUBAGENTS = {"SubagentStart": "SubagentStart"}
TOOLS = {name: name for name in ("PreToolUse", "PostToolUse")}
