"""One stage: its hooks in the order of their names, each reading what the one before has printed."""

from __future__ import annotations

from harness_lib.loop.failures import GarbageError, HookError
from harness_lib.loop.piped import Piped, as_object, as_text
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.table import Plugin


def call(runtime: Runtime, stage: str, payload: Piped, *, is_told: bool = False) -> Piped:
    """Pipe `payload` through the hooks of `stage`; without any it passes through. Raises HookError.

    `is_told`: the caller says to a person what a hook of ours says, so that the log need not say it too.
    """
    piped = payload
    # Text goes from one foreign hook to the next as it is; ours, and whoever called, need an object.
    foreign: Plugin | None = None
    for plugin in runtime.table.of("hooks.d", stage):
        if foreign and plugin.is_ours:
            piped = _object(runtime, foreign, piped)
        try:
            piped = plugin.target(runtime.at(stage), piped)
        except HookError as failure:
            if not (is_told and plugin.is_ours):
                runtime.log(f"[harness] {failure_line(plugin, failure)}")
            raise
        foreign = None if plugin.is_ours else plugin
        if isinstance(piped, str):
            piped = as_text(piped)
    return _object(runtime, foreign, piped) if foreign else piped


def _object(runtime: Runtime, plugin: Plugin, piped: Piped) -> Piped:
    """Return what `plugin` printed as an object. Raises GarbageError for what is no object."""
    value = as_object(piped)
    if value is None:
        line = failure_line(plugin, "printed no JSON object")
        runtime.log(f"[harness] {line}")
        raise GarbageError(line)
    return value


def failure_line(plugin: Plugin, problem: object) -> str:
    """Return the line about a hook that failed, which people look for in logs: which, how, and when."""
    if plugin.is_ours:
        return f"hook {plugin.stage}/{plugin.name} failed during {plugin.stage}: {problem}"
    return f"hook {plugin.origin} {problem} during {plugin.stage}"
