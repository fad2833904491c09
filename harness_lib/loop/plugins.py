"""The protocols of plugins (hook, tool, provider), and the call of a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol, cast

from harness_lib.loop.piped import GarbageError, HookError, Json, Piped, as_object, as_text
from harness_lib.loop.runtime import Plugin, Runtime


class Result(NamedTuple):
    """The result of a tool for the model."""

    text: str
    error: bool = False
    # Its cost (tokens_in, tokens_out, cost) as fields of a message; empty for most tools.
    spent: Mapping[str, str] = MappingProxyType({})


# One step of a stage; raises HookError when the stage has failed.
Hook = Callable[[Runtime, Json], Json]


class Tool(Protocol):
    """A tool that the model may call."""

    def schema(self, runtime: Runtime) -> Json | None:
        """Return name, description and input_schema; None if the model does not get the tool."""
        ...

    def describe(self, runtime: Runtime) -> str:
        """Return one line for people."""
        ...

    def execute(self, runtime: Runtime, tool_input: Json) -> Result:
        """Run the tool."""
        ...


class Provider(Protocol):
    """A host of models. It is asked with an environment; a provider config is another environment."""

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


def tool(runtime: Runtime, name: str) -> Tool | None:
    """Return the tool `name` of the run."""
    plugin = runtime.table.find("tools", name)
    return cast("Tool", plugin.target) if plugin else None


def only_reads(runtime: Runtime, name: str) -> bool:
    """Return whether the schema of the tool `name` says that it only reads."""
    found = tool(runtime, name)
    annotations = ((found.schema(runtime) if found else None) or {}).get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True


def call(runtime: Runtime, stage: str, payload: Piped, *, is_told: bool = False) -> Json:
    """Pipe `payload` through the hooks of `stage`; without any it passes through. Raises HookError.

    `is_told`: the caller tells the user why a built-in hook failed, so the log does not repeat it.
    """
    piped = payload
    # Text goes from one foreign hook to the next as it is; built-in hooks and the caller need an object.
    foreign: Plugin | None = None
    for plugin in runtime.table.of("hooks.d", stage):
        if foreign and plugin.is_ours:
            piped = _object(runtime, foreign, piped)
        try:
            runtime.stage = stage
            piped = plugin.target(runtime, piped)
        except HookError as failure:
            line = failure_line(plugin, failure)
            if not (is_told and plugin.is_ours):
                runtime.log(f"[harness] {line}")
            failure.line = line
            raise
        foreign = None if plugin.is_ours else plugin
        if isinstance(piped, str):
            piped = as_text(piped)
    return _object(runtime, foreign, piped) if foreign else cast("Json", piped)


def _object(runtime: Runtime, plugin: Plugin, piped: Piped) -> Json:
    """Return the output of `plugin` as an object. Raises GarbageError for anything else."""
    value = as_object(piped)
    if value is None:
        line = failure_line(plugin, "printed no JSON object")
        runtime.log(f"[harness] {line}")
        failure = GarbageError(line, as_text(piped))
        failure.line = line
        raise failure
    return value


def failure_line(plugin: Plugin, problem: object) -> str:
    """Return the log line about a hook that failed: which, how, and in which stage."""
    if plugin.is_ours:
        return f"hook {plugin.stage}/{plugin.name} failed during {plugin.stage}: {problem}"
    return f"hook {plugin.origin} {problem} during {plugin.stage}"
