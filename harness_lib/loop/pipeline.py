"""One stage: its hooks in the order of their names, each reading what the one before has printed."""

from __future__ import annotations

from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import Piped, as_text
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.table import Plugin


def call(runtime: Runtime, stage: str, payload: Piped, *, is_told: bool = False) -> Piped:
    """Pipe `payload` through the hooks of `stage`; without any it passes through. Raises HookError.

    `is_told`: the caller says to a person what a hook of ours says, so that the log need not say it too.
    """
    piped = payload
    for plugin in runtime.table.of("hooks.d", stage):
        try:
            piped = plugin.target(runtime.at(stage), piped)
        except HookError as failure:
            if not (is_told and plugin.is_ours):
                runtime.log(f"[harness] {failure_line(plugin, failure)}")
            raise
        if isinstance(piped, str):
            piped = as_text(piped)
    return piped


def failure_line(plugin: Plugin, problem: object) -> str:
    """Return the line about a hook that failed, which people look for in logs: which, how, and when."""
    if plugin.is_ours:
        return f"hook {plugin.stage}/{plugin.name} failed during {plugin.stage}: {problem}"
    return f"hook {plugin.origin} {problem} during {plugin.stage}"
