"""`harness demo`: the whole job in a temporary project, with a scripted agent."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli import render
from harness_lib.cli.screen import Screen
from harness_lib.ops import demo, status
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply


def arguments(_parser: ArgumentParser) -> None:
    """Take none."""


def answer(ctx: Context, _args: Namespace, screen: Screen) -> Reply:
    """Answer `harness demo`."""
    reply = demo.run(ctx, screen.talk if screen.json else screen.data)
    if not screen.json:
        there = Context(env={**ctx.env, "HARNESS_STATE_ROOT": str(reply.extra["root"])}, cwd=ctx.cwd)
        screen.data("")
        render.reply(status.run(there, everything=True), screen)
    return reply
