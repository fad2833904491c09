"""The plugin table: (kind, stage, name) -> plugin, built-in or foreign alike.

A source that is more local takes the place of a name that another one has given, ours included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Kind = Literal["commands", "tools", "hooks.d", "providers"]
Key = tuple[Kind, str, str]
# Where a plugin comes from that is no file.
BUILT_IN = "built-in"


class Plugin(NamedTuple):
    """An entry of the table; `target` is one of the four protocols of plugins.py, by its kind."""

    kind: Kind
    stage: str
    name: str
    origin: str
    target: Any

    @property
    def key(self) -> Key:
        return self.kind, self.stage, self.name

    @property
    def is_ours(self) -> bool:
        """Whether it is a function of this package."""
        return self.origin == BUILT_IN


@dataclass
class Table:
    """All plugins of a moment. `all` also holds those whose place was taken, in the order of sources."""

    # The only tools that there are to be; None: all.
    allowed: list[str] | None = None
    entries: dict[Key, Plugin] = field(default_factory=dict)
    all: list[Plugin] = field(default_factory=list)
    # One table holds for many states, and each asks for its hooks in their order.
    _ordered: dict[tuple[Kind, str], list[Plugin]] = field(default_factory=dict, repr=False, compare=False)

    def add(self, plugin: Plugin) -> None:
        """Put `plugin` in; what had its name before is only listed from now on."""
        self.all.append(plugin)
        if plugin.kind != "tools" or self.allowed is None or plugin.name in self.allowed:
            self.entries[plugin.key] = plugin
            self._ordered.clear()

    def of(self, kind: Kind, stage: str = "") -> list[Plugin]:
        """Return the plugins of a kind (and stage) in the order of their names as text."""
        if (kind, stage) not in self._ordered:
            plugins = [plugin for key, plugin in self.entries.items() if key[:2] == (kind, stage)]
            self._ordered[kind, stage] = sorted(plugins, key=lambda plugin: plugin.name)
        return self._ordered[kind, stage]

    def find(self, kind: Kind, name: str) -> Plugin | None:
        """Return the plugin `name` of a kind that has no stages."""
        return self.entries.get((kind, "", name))

    def stages(self) -> set[str]:
        """Return the stages that have a hook."""
        return {stage for kind, stage, _ in self.entries if kind == "hooks.d"}
