"""`harness init`: create a task list."""

from __future__ import annotations

import os
import stat
from argparse import ArgumentParser, Namespace
from pathlib import Path

from harness_lib import typed
from harness_lib.core import lifecycle, project, rights, sessions, stops, trust
from harness_lib.core.context import Context, Reply, of_another_user
from harness_lib.errors import (
    EnvSetupError,
    NoRepositoryError,
    RefusedError,
    StateUnreadableError,
    UsageError,
)
from harness_lib.runs import run_files
from harness_lib.system import fs
from harness_lib.system.git import status
from harness_lib.system.git.repository import Git
from harness_lib.system.place import find_root, roots
from harness_lib.task import MODES, Mode, SessionConfig
from harness_lib.text import counted

SUMMARY = "make a task list in a project"
EXAMPLE = "harness init --init-script"
HELP_ORDER = 10
INIT_SCRIPT = """\
#!/bin/sh
# Sets this project up and says whether it is healthy. `harness start` runs it at every session start:
# it must be safe to run again. A non-zero exit, twice in a row, stops the session.
set -e

# Examples; keep what fits:
#   npm ci --silent
#   python3 -m pip install --quiet -r requirements.txt
#   python3 -m pytest -q --maxfail=1 tests/smoke
"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", type=Path, help="the project (default: here)")
    parser.add_argument(
        "--mode", choices=MODES, help="one session at a time, or many workers (default: exclusive)"
    )
    parser.add_argument("--init-script", action="store_true", help="also write a template of harness-init.sh")
    parser.add_argument(
        "--gitignore", action="store_true", help="ignore our files in .gitignore, not in .git/info/exclude"
    )
    parser.add_argument(
        "--git", action="store_true", help="make the git repository and a first commit if there is none"
    )
    parser.add_argument(
        "--no-final-check",
        action="store_true",
        help="do not hold an agent in a chat until the checks of all tasks have run once more at the end",
    )
    parser.add_argument(
        "--start-over", action="store_true", help="begin an empty list; the old one is kept beside it"
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    return run(
        ctx,
        args.path,
        mode=args.mode,
        init_script=args.init_script,
        gitignore=args.gitignore,
        make_git=args.git,
        final_check=not args.no_final_check,
        start_over=args.start_over,
    )


def run(
    ctx: Context,
    path: Path | None = None,
    *,
    mode: Mode | None = None,
    init_script: bool = False,
    gitignore: bool = False,
    make_git: bool = False,
    final_check: bool = True,
    start_over: bool = False,
) -> Reply:
    """Create the list in `path` (default: here). A second call changes nothing that exists.

    But one that has the final check loses it with `final_check` False.
    One that was lost is restored. `start_over`: an empty one takes its place, and it is kept beside that.
    """
    place = (ctx.cwd / (path or ".")).resolve()
    if not place.is_dir():
        raise UsageError(f"{place} is not a directory.", f"Make it first: mkdir -p {typed.word(place)}")
    if not ctx.env.get("HARNESS_STATE_ROOT") and not find_root.is_ours(os.fspath(place)):
        raise of_another_user(place)
    root = roots.Root(place)
    roots.require_direct(root)
    git = _repository(place, make_git=make_git)
    if path is None:
        _refuse_second(ctx, root, git)
    env = {**ctx.env, "HARNESS_STATE_ROOT": str(place)}
    list_ctx = Context(env=env, cwd=place, clock=ctx.clock, say=ctx.say, busy=ctx.busy)
    project.require_writable_git(list_ctx, git)
    restored = restore(list_ctx)
    kept = begin_anew(list_ctx) if start_over and list_ctx.store.exists() else ""
    settings = SessionConfig(concurrency_mode=mode or "exclusive", final_check=final_check)
    made = _make_files(list_ctx, git, settings)
    if not final_check and list_ctx.ask().settings().final_check:
        rights.edit_settings(list_ctx, {"final_check": False})
    if init_script and not root.init_script.exists():
        _write_init_script(list_ctx)
        made.append(root.init_script.name)
    ignored_in = _ignore(root, git, gitignore=gitignore)
    roots.remember(place, git.common_dir)
    reply = _reply(root, made, ignored_in, mode, list_ctx)
    if kept:
        reply = reply._replace(message=f"{root.path} has an empty list now; the old one is kept in {kept}.")
    elif restored:
        reply = _restored(list_ctx, reply)
    if find_root.search(ctx.env, os.fspath(ctx.cwd)) != os.fspath(place):
        reply = reply._replace(next=f"{typed.change_to(place)} && {reply.next}")
    return reply


def _refuse_second(ctx: Context, root: roots.Root, git: Git) -> None:
    """Raise UsageError if this repository has its list elsewhere, above or below this place."""
    if roots.has_list(root.path) or ctx.env.get("HARNESS_STATE_ROOT"):
        return
    above = roots.find(ctx.env, root.path)
    if above and above.path == root.path:
        return
    others = [above.path] if above and _is_in_repository(git, above.path) else roots.elsewhere(root.path)
    if others:
        raise UsageError(
            f"This repository has a task list in {others[0]}; nothing was made in {root.path}.",
            f"Go on with that one: {typed.change_to(others[0])}. To make another one here: harness init .",
        )


def _is_in_repository(git: Git, directory: Path) -> bool:
    """Return whether `directory` is in the same repository, in any of its work trees."""
    try:
        return Git.open(directory).common_dir == git.common_dir
    except EnvSetupError:
        return False


def _restored(ctx: Context, reply: Reply) -> Reply:
    tasks = ctx.ask().counts().total
    message = f"the task list of {ctx.root.path} was lost and is restored ({counted(tasks, 'task')})."
    instead = f"To begin an empty one instead: {typed.harness('init', '--start-over')}"
    warnings = (*ctx.store.warnings, *reply.warnings)
    return reply._replace(message=f"{message}\n{instead}", next="harness status", warnings=warnings)


def _repository(place: Path, *, make_git: bool) -> Git:
    try:
        git = Git.open(place)
    except NoRepositoryError:
        if not make_git:
            raise
        return Git.init(place)
    if make_git and git.head() is None:
        # Not in a directory of it, where another one would be made.
        return Git.init(git.top)
    return git


def _make_files(ctx: Context, git: Git, settings: SessionConfig) -> list[str]:
    if ctx.store.exists():
        return []
    made = list(ctx.store.begin(settings, f"Harness initialized for project {git.top}"))
    trust.note(ctx, ctx.ask())
    return made


def _write_init_script(ctx: Context) -> None:
    # Once it is committed, a note on the list without it would no longer count.
    mine = not ctx.shared and trust.is_trusted(ctx, ctx.ask())
    fs.write(ctx.root.init_script, INIT_SCRIPT.encode(), mode=0o755)
    if mine:
        trust.note(ctx, ctx.ask())


def _ignore(root: roots.Root, git: Git, *, gitignore: bool) -> str:
    names, private = project.own_names(root, git)
    # Work trees of a run also have a private directory, without ignore rules of its own.
    git.exclude(private if gitignore else [*names, *private])
    if not gitignore:
        return ".git/info/exclude"
    file = git.top / status.RULES
    if file.is_symlink():
        raise roots.refused(file)
    # As bytes: lines of the user may end with a carriage return.
    old = file.read_bytes() if file.exists() else b""
    wanted = map(os.fsencode, (*names, *status.offered_rules(git)))
    missing = [name for name in wanted if name not in old.splitlines()]
    if missing:
        glue = b"" if not old or old.endswith(b"\n") else b"\n"
        bits = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o644
        fs.write(file, old + glue + b"\n".join(missing) + b"\n", mode=bits)
    return status.RULES


def _reply(root: roots.Root, made: list[str], ignored_in: str, mode: Mode | None, ctx: Context) -> Reply:
    warnings = []
    questions = ctx.ask()
    if not made:
        total = questions.counts().total
        message = f"{root.path} has a task list already ({counted(total, 'task')}); it was left as it is."
        if ignored_in == status.RULES:
            message += f"\ngit ignores the harness files ({status.RULES})."
        if mode and mode != questions.settings().concurrency_mode:
            kept = questions.settings().concurrency_mode
            warnings.append(f"The list stays {kept}; to change it: {typed.harness('edit', '--mode', mode)}")
    else:
        message = f"made {', '.join(made)} in {root.path}."
        message += (
            f"\ngit ignores the harness files ({ignored_in}); a {root.init_script.name} is yours to commit."
        )
    if missing := _uncommitted(ctx.git):
        warnings.append(missing)
    if offer := project.offer_ignored(ctx.git):
        warnings.append(f"{offer} {project.CURE_IGNORED}")
    return Reply(
        message,
        next=stops.ADD,
        warnings=tuple(warnings),
        extra={"root": str(root.path), "made": made},
    )


def _uncommitted(git: Git) -> str | None:
    """Return what the user should do before the first task where git has none of the files, else None."""
    head = git.head()
    if head is None:
        return (
            "This repository has no commit yet, and a task begins at one: commit your files or, if there are "
            "none, let harness make an empty commit: harness init --git"
        )
    if git.tree_of(head) == git.empty_tree() and git.lines("ls-files", "--others", "--exclude-standard"):
        return (
            "None of your files is committed, so no change that a task makes to them will be: "
            "git add them and commit them first."
        )
    return None


def restore(ctx: Context) -> bool:
    """Restore a list whose file is gone from any earlier copy; return whether that was possible."""
    if ctx.store.exists():
        return False
    try:
        ctx.ask()
    except StateUnreadableError:
        return False
    with ctx.transaction() as tx:
        # Entering the transaction restores the list and warns about it.
        if tx.holds_agents():
            tx.on_commit(ctx.store.enable_hooks)
    return True


def begin_anew(ctx: Context) -> str:
    """Replace the list by an empty one; return the name of the file that keeps the old list."""
    with ctx.transaction() as tx:
        sessions.refuse_other(tx, ctx)
        working = next(iter(tx.in_progress()), None)
        if working:
            ways = (typed.harness("finish", working.id), typed.harness("release", working.id))
            raise RefusedError(
                f"{working.id} is in progress: without the list nobody would know whose work stands there.",
                f"End it first: {', or '.join(ways)}",
            )
        mine = ctx.own_session(tx)
        if mine:
            lifecycle.close(tx, mine)
        kept = tx.start_over()
        rights.log(tx, ctx, f"emptied the old list is kept in {kept}")
        tx.on_commit(lambda: trust.note(ctx, tx))
        tx.on_commit(ctx.store.enable_hooks)
        tx.on_commit(lambda: run_files.set_aside(ctx))
    return kept
