"""`harness pause`: switch the hooks off; nothing else changes, and `harness start` switches them on again."""

from __future__ import annotations

from argparse import Namespace

from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.terminal.render import Screen

SUMMARY = "switch the hooks off until the next start"
EXAMPLE = "harness pause"
HELP_ORDER = 530


def answer(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    """Remove the enable flag; idempotent."""
    was_on = ctx.store.hooks_are_on()
    ctx.store.switch_hooks(on=False)
    message = (
        "The hooks are off: no agent is held here any more. The list, sessions and claims stay as they are. "
        "harness start switches them on again."
        if was_on
        else "The hooks were off already."
    )
    return Reply(message, next="harness status")
