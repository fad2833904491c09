"""The plugin table: (kind, stage, name) -> plugin, built-in or foreign alike.

A source that is more local takes the place of a name that another one has given, ours included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json, Piped
    from harness_lib.loop.runtime import Runtime

Kind = Literal["commands", "tools", "hooks.d", "providers"]
Key = tuple[Kind, str, str]
# Where a plugin comes from that is no file.
BUILT_IN = "built-in"


@dataclass(frozen=True)
class Result:
    """What a tool said to the model."""

    text: str
    error: bool = False
    # What it has cost (tokens_in, tokens_out, cost), as an answer's file says it; nothing for most tools.
    spent: dict[str, str] = field(default_factory=dict)


class Hook(Protocol):
    """One step of a stage. Raises HookError when the stage has failed."""

    def __call__(self, runtime: Runtime, piped: Piped) -> Piped: ...


class Tool(Protocol):
    """What the model may call."""

    def schema(self, runtime: Runtime) -> Json | None:
        """Return name, description and input_schema; None if it is not to be offered."""
        ...

    def describe(self, runtime: Runtime) -> str:
        """Return one line for people."""
        ...

    def execute(self, runtime: Runtime, given: Json) -> Result:
        """Do it."""
        ...


class Provider(Protocol):
    """A model's host. What it is asked by is an environment, so that a variant is the same with another."""

    def describe(self, runtime: Runtime) -> str:
        """Return one line for people."""
        ...

    def ready(self, runtime: Runtime) -> bool:
        """Return whether it has what it needs; asks no network."""
        ...

    def defaults(self, runtime: Runtime) -> dict[str, str]:
        """Return its settings, of which `model` is used."""
        ...

    def environment_help(self, runtime: Runtime) -> str:
        """Return lines about the variables that it reads."""
        ...

    def ask(self, runtime: Runtime, payload: Json) -> Json:
        """Return its native answer; raise ProviderError."""
        ...


class Command(Protocol):
    """A word behind `hs`."""

    def describe(self, runtime: Runtime) -> str:
        """Return one line for people."""
        ...

    def __call__(self, runtime: Runtime, args: list[str]) -> int:
        """Do it and return the exit code."""
        ...


@dataclass(frozen=True)
class Plugin:
    """An entry of the table; `target` is one of the four protocols, by its kind."""

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

    entries: dict[Key, Plugin] = field(default_factory=dict)
    all: list[Plugin] = field(default_factory=list)

    def add(self, plugin: Plugin) -> None:
        """Put `plugin` in; what had its name before is only listed from now on."""
        self.entries[plugin.key] = plugin
        self.all.append(plugin)

    def keep_tools(self, names: list[str]) -> None:
        """Take out every tool that is none of `names`."""
        self.entries = {
            key: plugin for key, plugin in self.entries.items() if key[0] != "tools" or key[2] in names
        }

    def of(self, kind: Kind, stage: str = "") -> list[Plugin]:
        """Return the plugins of a kind (and stage) in the order of their names as text."""
        return sorted(
            (plugin for key, plugin in self.entries.items() if key[:2] == (kind, stage)),
            key=lambda plugin: plugin.name,
        )

    def find(self, kind: Kind, name: str) -> Plugin | None:
        """Return the plugin `name` of a kind that has no stages."""
        return self.entries.get((kind, "", name))

    def tool(self, name: str) -> Tool | None:
        """Return the tool `name`."""
        found = self.find("tools", name)
        return cast("Tool", found.target) if found else None

    def provider(self, name: str) -> Provider | None:
        """Return the provider `name` that is a program or ours; a variant is none."""
        found = self.find("providers", name)
        return cast("Provider", found.target) if found else None

    def stages(self) -> set[str]:
        """Return the stages that have a hook."""
        return {stage for kind, stage, _ in self.entries if kind == "hooks.d"}
