"""`hs tools` and `hs hooks`: what there is from here."""

from __future__ import annotations

from harness_lib.errors import UsageError
from harness_lib.hs.commands.base import Builtin
from harness_lib.hs.showing import show
from harness_lib.loop.runtime import Runtime


def _tools(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    for plugin in runtime.table.of("tools"):
        show(f"  {plugin.name:<20} {plugin.target.describe(runtime)}  [{plugin.origin}]")
    return 0


def _hooks(runtime: Runtime, args: list[str]) -> int:
    hooks = [plugin for plugin in runtime.table.all if plugin.kind == "hooks.d"]
    if args:
        hooks = [plugin for plugin in hooks if plugin.stage == args[0]]
        if not hooks:
            raise UsageError(f"There are no hooks in the stage {args[0]}.", "hs hooks lists all of them.")
    for plugin in hooks:
        show(f"  {plugin.stage}/{plugin.name}  [{plugin.origin}]")
    return 0


TOOLS = Builtin("List the tools that the model gets", _tools)
HOOKS = Builtin("List hooks: hs hooks [STAGE]", _hooks)
