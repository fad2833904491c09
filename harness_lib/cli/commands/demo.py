"""`harness demo`: the whole job in a temporary project, with a scripted agent."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli import render
from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import demo, status

SUMMARY = "the whole job in a temporary project, with a scripted agent"
EXAMPLE = "harness demo"
HELP_ORDER = 320


def arguments(_parser: ArgumentParser) -> None:
    """Take none."""


def answer(ctx: Context, _args: Namespace, screen: Screen) -> Reply:
    """Answer `harness demo`."""
    reply = demo.run(ctx, screen.talk if screen.json else screen.data)
    if not screen.json:
        demo_ctx = Context(env={**ctx.env, "HARNESS_STATE_ROOT": str(reply.extra["root"])}, cwd=ctx.cwd)
        screen.data("")
        render.reply(status.run(demo_ctx, everything=True), screen)
    return reply
