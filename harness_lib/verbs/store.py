"""`harness store`: keep the list in PostgreSQL, so that agents on many machines work on it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from harness_lib import typed
from harness_lib.attempts import remote, remote_check, snapshots, target_branch
from harness_lib.core import project, rights, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, Exit, HeldError, NotPushedError, RefusedError, UsageError
from harness_lib.rules import stats
from harness_lib.state.api import Questions
from harness_lib.state.mirrored import Link
from harness_lib.state.store import Store
from harness_lib.system.git.repository import Git
from harness_lib.system.install import launcher
from harness_lib.system.place import roots
from harness_lib.terminal import options
from harness_lib.text import counted

if TYPE_CHECKING:
    from harness_lib.state.pgstore.store import PgStore

SUMMARY = "keep the list in PostgreSQL, for agents on many machines"
EXAMPLE = "harness store move postgresql://me@db.example.org/agents --list shop"
HELP_ORDER = 535


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=tuple(_ACTIONS), help="see docs/many-machines.md")
    parser.add_argument("url", nargs="?", help="the address of the database, without a password")
    parser.add_argument("--list", dest="name", help="the name of the list there (default: of the project)")
    for name, what in (("work", "for unfinished work"), ("target", "that the branch is pushed to")):
        parser.add_argument(
            f"--{name}-remote",
            metavar="R",
            help=f"the remote {what} (default: that of the branch)",
        )
    parser.add_argument(
        "--no-snapshots", action="store_true", help="keep unfinished work on this machine; push finished work"
    )
    parser.add_argument(
        "--max-snapshot",
        metavar="MB",
        type=options.whole,
        help=f"push unfinished work of an attempt up to this size (default {remote.MOST_MEGABYTES})",
    )
    parser.add_argument(
        "--roles",
        action="store_true",
        help="init: make the roles reader, worker, author and owner for each list",
    )
    parser.add_argument("--to-file", action="store_true", help="move: back to the file of this project")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="check: repair what it finds, and go on with a database that was restored from a backup",
    )
    parser.add_argument(
        "--print", dest="prints", action="store_true", help="init, upgrade: only show the SQL that would run"
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    if args.action in _OF_A_DATABASE:
        # Of a list in a file they say so; the driver would be fetched for nothing.
        _in_database(ctx)
    launcher.add_postgres(ctx.env)
    return _ACTIONS[args.action](ctx, args)


def _init(_ctx: Context, args: Namespace) -> Reply:
    from harness_lib.state.pgstore import connecting, setup  # noqa: PLC0415 (needs the driver)

    url = _url(args)
    if args.prints:
        text = setup.texts(setup.present(url), roles=args.roles)
        again = ("init", url, "--roles") if args.roles else ("init", url)
        return Reply(text, next=typed.harness("store", *again))
    setup.set_up(url, roles=args.roles)
    move = typed.harness("store", "move", url)
    return Reply(f"{connecting.shown(url)} can keep lists.", next=move)


def _upgrade(ctx: Context, args: Namespace) -> Reply:
    from harness_lib.state.pgstore import connecting, setup  # noqa: PLC0415

    if not args.url:
        with suppress(UsageError):
            args.url = _in_database(ctx).link.url
    url = _url(args)
    if args.prints:
        again = typed.harness("store", "upgrade", url)
        return Reply(setup.texts(setup.present(url)), next=again)
    found = setup.upgrade(url)
    if found == connecting.SCHEMA:
        return Reply(f"{connecting.shown(url)} is up to date.", next="harness status")
    said = (
        f"{connecting.shown(url)} keeps its lists in the format {connecting.SCHEMA} now, before in {found}."
    )
    return Reply(said, next="harness status")


def _move(ctx: Context, args: Namespace) -> Reply:
    from harness_lib.state.pgstore import connecting, setup  # noqa: PLC0415
    from harness_lib.state.pgstore.store import PgStore  # noqa: PLC0415

    named = ("--list", args.name) if args.name else ()
    words = ("--to-file",) if args.to_file else (_url(args), *named)
    rights.require_user(ctx, "Where the list is kept", typed.harness("store", "move", *words))
    if args.to_file:
        if not isinstance(ctx.store, PgStore):
            raise UsageError("The list is in a file already.", "harness status")
        mine = trust.is_whole(ctx, ctx.ask())
        count = setup.to_file(ctx.store, ctx.clock.now())
        _stay_trusted(ctx, mine=mine)
        return Reply(f"{counted(count, 'task')} moved back to {ctx.store.list_file}.", next="harness status")
    if not isinstance(ctx.store, Store):
        raise UsageError("The list is in a database already.", "See where: harness store status")
    link = Link(_url(args), args.name or ctx.root.path.name)
    connecting.checked(link.url, link.name)
    remote_check.prepare(ctx.git, _leaves(ctx.git, args))
    questions = ctx.ask()
    _require_own_name(_seen_as(ctx, PgStore(ctx.store.root, link)), questions)
    mine = trust.is_trusted(ctx, questions)
    count = setup.to_database(ctx.store, link, ctx.clock)
    _stay_trusted(ctx, mine=mine)
    said = "\n".join(remote_check.told(Context(env=ctx.env, cwd=ctx.cwd, clock=ctx.clock)))
    join = typed.harness("store", "join", link.url, "--list", link.name)
    return Reply(
        f"{counted(count, 'task')} moved to {connecting.shown(link.url)} as {link.name}; "
        f"{ctx.store.list_file.name} follows it.\n{said}\n"
        f"In a clone on another machine, type: {join}",
        next="harness status",
    )


def _require_own_name(ctx: Context, questions: Questions) -> None:
    """Raise RefusedError if the branch has work of another list: it would be taken for this one's."""
    with suppress(EnvSetupError, HeldError):
        # A remote that does not answer is told of later.
        other = remote_check.of_another_list(ctx, questions)
        if other:
            raise RefusedError(other, "Choose another name: --list NAME")


def _stay_trusted(ctx: Context, *, mine: bool) -> None:
    """Note that the user trusts the list where it is now, if it was `mine` before."""
    if mine:
        moved = Context(env=ctx.env, cwd=ctx.cwd, clock=ctx.clock)
        trust.note(moved, moved.ask())


def _join(ctx: Context, args: Namespace) -> Reply:
    from harness_lib.state.pgstore import connecting, setup  # noqa: PLC0415

    if not args.name:
        raise UsageError("--list is missing.", typed.harness("store", "join", _url(args), "--list", "NAME"))
    git = ctx.git_at_cwd
    if not git:
        raise EnvSetupError(f"{ctx.cwd} is in no git repository.", "Type it in a clone of the project.")
    link = Link(_url(args), args.name)
    connecting.checked(link.url, link.name)
    root = roots.Root(git.top)
    remote_check.prepare(git, _leaves(git, args))
    questions = setup.join(root, link, ctx.clock)
    git.exclude([name for names in project.own_names(root, git) for name in names])
    roots.remember(root.path, git.common_dir)
    said = "\n".join(remote_check.told(Context(env=ctx.env, cwd=root.path, clock=ctx.clock)))
    return Reply(
        f"joined {args.name}; {stats.render(questions.counts())}\n{said}\n"
        "Its commands come from other machines: see them, and allow them here, before work begins.",
        next="harness trust",
    )


def _leaves(git: Git, args: Namespace) -> remote.Leaving:
    """Return the settings of the clone with what was typed: who joins again has said the rest before."""
    before = remote.read_leaving(git)
    return before._replace(
        work=before.work if args.work_remote is None else args.work_remote,
        target=before.target if args.target_remote is None else args.target_remote,
        snapshots=before.snapshots and not args.no_snapshots,
        most=before.most if args.max_snapshot is None else args.max_snapshot,
        # Whether the remote takes branches only is tried anew.
        refs=remote.REFS,
    )


def _status(ctx: Context, _args: Namespace) -> Reply:
    from harness_lib.state.pgstore import checking  # noqa: PLC0415

    store = _in_database(ctx)
    facts = [*checking.facts(store), ("refs in the remote", _refs(ctx))]
    return Reply(
        "\n".join(f"{name}: {text}" for name, text in facts),
        next="harness status",
        extra={"facts": dict(facts)},
    )


def _refs(ctx: Context) -> str:
    """Return how many refs the list has in the remote, or why that is not known."""
    try:
        there = remote.of(ctx)
        return str(len(there.listed(there.work, f"{there.ref()}/*")))
    except (EnvSetupError, HeldError) as error:
        return error.message


def _check(ctx: Context, args: Namespace) -> Reply:
    from harness_lib.state.pgstore import checking  # noqa: PLC0415

    store = _in_database(ctx)
    command = typed.harness("store", "check", "--repair", *filter(None, [args.url]))
    if args.url:
        # Of a login that may do more, for this once.
        store.link = store.link._replace(url=_url(args))
    as_it_is = _as_it_is(ctx, store)
    if args.repair:
        rights.require_user(as_it_is, "Whether the list goes on", command)
    merged: list[remote_check.Forgotten] = []
    problems: list[str] = []
    away: list[str] = []
    # First: a database that goes on has fences above those of its lost claims.
    with _asking_remote(ctx, away) as is_pushed:
        if is_pushed:
            if args.repair:
                _keep(as_it_is, store)
            problems, merged = _compared(as_it_is)
    problems += checking.check(store, repair=args.repair)
    problems += remote_check.complete(ctx, merged) if args.repair else map(str, merged)
    with _asking_remote(ctx, away) as is_pushed:
        if is_pushed:
            problems += _left_over(ctx if args.repair else as_it_is, repair=args.repair)
    found = list(dict.fromkeys([*problems, *away]))
    return Reply(
        "\n".join(found) or "The list in the database is valid, and no change is in doubt.",
        exit=Exit.CONFIG if found else Exit.DONE,
        # What is left after a repair needs the user.
        next=command if problems and not args.repair else "harness status",
    )


def _compared(ctx: Context) -> tuple[list[str], list[remote_check.Forgotten]]:
    """Return what is wrong in the remote, and what the list has forgotten; the look at it ends with that."""
    crowded = remote_check.too_many_refs(ctx)
    questions = ctx.ask()
    problems = [*remote_check.lost(ctx, questions), *([crowded] if crowded else [])]
    return problems, remote_check.forgotten(ctx, questions)


def _as_it_is(ctx: Context, store: PgStore) -> Context:
    """Return a view of the list as the database has it, also if it was set back."""
    from harness_lib.state.pgstore.store import PgStore  # noqa: PLC0415

    # The files still say what was lost.
    link = store.link._replace(mirrored=0, op="")
    return _seen_as(ctx, PgStore(store.root, link, follows=False))


def _seen_as(ctx: Context, store: PgStore) -> Context:
    """Return a view of the project with its list in `store`."""
    view = ctx.at(ctx.git)
    view.__dict__["store"] = store
    return view


@contextmanager
def _asking_remote(ctx: Context, away: list[str]) -> Iterator[bool]:
    """Yield whether anything was ever pushed from here; add to `away` why the remote does not answer."""
    try:
        yield target_branch.upstream(ctx.git, ctx.git.branch() or "HEAD") is not None
    except (HeldError, NotPushedError) as error:
        away.append(f"{error.message} {error.hint}")


def _keep(ctx: Context, store: PgStore) -> None:
    """Keep here what the remote has of claims that the list does not know."""
    count = snapshots.keep_unknown(ctx)
    if count:
        store.warn(
            f"The remote has unmerged work of claims that the list does not know ({counted(count, 'ref')}). "
            "It is kept on this machine: harness rescue list"
        )


def _left_over(ctx: Context, *, repair: bool) -> list[str]:
    """Remove from the remote what nobody needs any more, or return a sentence about it."""
    refs = snapshots.outlived(ctx)
    if not repair:
        rescued = f"of rescued work in the remote, older than {snapshots.DAYS:.0f} days"
        return [f"{counted(len(refs), 'ref')} {rescued}"] if refs else []
    answer = snapshots.remove(ctx, refs)
    return [] if answer.done else [f"old rescue refs could not be removed: {answer.why}"]


def _in_database(ctx: Context) -> PgStore:
    """Return the store of a list in a database. Raises UsageError if the list is in a file."""
    if not isinstance(ctx.store, Store):
        from harness_lib.state.pgstore.store import PgStore  # noqa: PLC0415

        if isinstance(ctx.store, PgStore):
            return ctx.store
    # A file that only follows a list in a database says so.
    ctx.ask()
    raise UsageError("The list is in a file.", "To keep it in a database: harness store move URL")


def _url(args: Namespace) -> str:
    """Return the address that was typed, once it has no password: hints repeat it. Raises UsageError."""
    from harness_lib.state.pgstore import connecting  # noqa: PLC0415

    if not args.url:
        end = ("--list", "shop") if args.action in ("move", "join") else ()
        example = typed.harness("store", args.action, "postgresql://me@db.example.org/agents", *end)
        raise UsageError("The address is missing.", f"For example: {example}")
    return connecting.checked(args.url)


# Actions that need a list in a database.
_OF_A_DATABASE = ("status", "check")
_ACTIONS = {
    "init": _init,
    "move": _move,
    "join": _join,
    "status": _status,
    "check": _check,
    "upgrade": _upgrade,
}
