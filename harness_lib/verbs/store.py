"""`harness store`: keep the list in PostgreSQL, so that agents on many machines work on it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.rules import stats
from harness_lib.state.store import Store
from harness_lib.system.place import roots
from harness_lib.terminal.render import Screen

SUMMARY = "keep the list in PostgreSQL, for agents on many machines"
EXAMPLE = "harness store move postgresql://db.example.org/agents --list shop"
HELP_ORDER = 540


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "action", choices=("init", "move", "join", "status"), help="see docs/many-machines.md"
    )
    parser.add_argument("url", nargs="?", help="the address of the database, without a password")
    parser.add_argument("--list", dest="name", help="the name of the list there (default: of the project)")
    parser.add_argument("--to-file", action="store_true", help="move: back to the file of this project")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness store`."""
    from harness_lib.state.pgstore import moving  # noqa: PLC0415 (needs the driver)
    from harness_lib.state.pgstore.store import Link, PgStore, set_up, shown  # noqa: PLC0415

    if args.action == "init":
        set_up(_url(args))
        return Reply(
            "store", f"{shown(args.url)} can keep lists.", next=typed.harness("store", "move", args.url)
        )
    if args.action == "join":
        if not args.name:
            raise UsageError(
                "--list is missing.", typed.harness("store", "join", _url(args), "--list", "NAME")
            )
        root = roots.Root(ctx.git_at_cwd.top if ctx.git_at_cwd else ctx.cwd)
        questions = moving.join(root, Link(_url(args), args.name), ctx.clock)
        return Reply("store", f"joined {args.name}; {stats.render(questions.counts())}", next="harness trust")
    link = Link.of(ctx.root)
    if args.action == "move" and args.to_file:
        store = ctx.store
        assert isinstance(store, PgStore)
        assert link is not None
        count = moving.to_file(store, link, ctx.clock.now())
        return Reply("store", f"{count} tasks are in {ctx.root.state} again.", next="harness status")
    if args.action == "move":
        new = Link(_url(args), args.name or ctx.root.path.name)
        assert isinstance(ctx.store, Store)
        count = moving.to_database(ctx.store, new, ctx.clock)
        join = typed.harness("store", "join", new.url, "--list", new.name)
        return Reply("store", f"{count} tasks are in {shown(new.url)} as {new.name}.", next=join)
    where = "a file" if link is None else f"{shown(link.url)}, as {link.name}"
    return Reply(
        "store", f"the list is in {where}; {stats.render(ctx.store.ask().counts())}", next="harness status"
    )


def _url(args: Namespace) -> str:
    if not args.url:
        raise UsageError("The address is missing.", EXAMPLE)
    return str(args.url)
