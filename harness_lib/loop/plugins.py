"""What plugins are to the loop: hooks, tools, providers and commands, each a protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json, Piped
    from harness_lib.loop.runtime import Runtime


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

    def execute(self, runtime: Runtime, tool_input: Json) -> Result:
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


def tool(runtime: Runtime, name: str) -> Tool | None:
    """Return the tool `name` of the run."""
    plugin = runtime.table.find("tools", name)
    return cast("Tool", plugin.target) if plugin else None


def provider(runtime: Runtime, name: str) -> Provider | None:
    """Return the provider `name` that is a program or ours; a variant is none."""
    plugin = runtime.table.find("providers", name)
    return cast("Provider", plugin.target) if plugin else None


def only_reads(runtime: Runtime, name: str) -> bool:
    """Return whether the tool `name` says of itself that it changes nothing."""
    found = tool(runtime, name)
    annotations = ((found.schema(runtime) if found else None) or {}).get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
