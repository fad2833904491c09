"""Undo what an agent has done to the repository around its work tree, and blame no person for it.

A person's own switch of branches stands in git's record of their checkout; a HEAD that has changed without
it was written by a program.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness_lib import typed
from harness_lib.core.context import Context
from harness_lib.errors import GoneError, HeldError
from harness_lib.state import trust
from harness_lib.system.git import locks, ref_files, reflog, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.task import Task
from harness_lib.text import some

# Of the stashes that are new.
SHOWN = 3


@dataclass(frozen=True)
class Seen:
    """How the repository stood before an agent, all of the project's own checkout; and whose the list was."""

    trust: trust.Note | None
    bare: bool
    branch: str | None
    last: reflog.Step | None


def observe(ctx: Context) -> Seen:
    """Return how the repository of this work tree stands now."""
    git = ctx.git
    return Seen(
        trust.current(git.common_dir, ctx.root.path),
        worktrees.is_bare(git),
        _branch(git),
        next(iter(reflog.of_main(git)), None),
    )


def undo(ctx: Context, seen: Seen, task: Task) -> list[str]:
    """Undo what has changed since `seen` and in the work tree's HEAD; return what to tell."""
    git, undone = ctx.git, undo_shared(ctx, seen)
    base = task.started_at_commit
    if git.head() is None and base is not None and git.exists(base):
        with locks.hold(git):
            # Files and index stay: they are its work.
            git.run("update-ref", "--no-deref", "-m", reflog.PUT_BACK, "HEAD", base)
    return undone


def undo_shared(ctx: Context, seen: Seen) -> list[str]:
    """Undo what has changed since `seen` in the project's own checkout; return what to tell."""
    git, current, undone = ctx.git, observe(ctx), []
    undone += _trust_again(ctx, seen)
    if current.bare and not seen.bare:
        _main(git, "config", "core.bare", "false")
        undone.append("An agent has set core.bare, which makes git refuse your checkout: it is unset again.")
    if seen.branch and current.branch != seen.branch and current.last == seen.last:
        _main(git, "symbolic-ref", "-m", reflog.PUT_BACK, "HEAD", seen.branch)
        undone.append(f"An agent has pointed HEAD of your checkout elsewhere: it is on {seen.branch} again.")
    return undone


def _trust_again(ctx: Context, seen: Seen) -> list[str]:
    """Note again whose list this is, where that note has gone; no task could be finished without it."""
    gone = "An agent has removed the note in .git/harness that this list is yours"
    try:
        if seen.trust is not None and trust.put_back(ctx.git.common_dir, ctx.root.path, seen.trust):
            return [f"{gone}: it is noted again."]
    except (GoneError, HeldError, OSError) as error:
        return [f"{gone}, and it could not be put back: {error}. Then: {typed.harness('trust')}"]
    return []


def stashes(git: Git) -> tuple[str, ...]:
    """Return the commits that are stashed, the newest first; all work trees have them in common."""
    return tuple(step.new for step in reflog.of_branch(git, "refs/stash"))


def stashed_since(git: Git, before: tuple[str, ...]) -> str | None:
    """Return how to look at what was stashed after there was `before`; None if nothing was.

    It stands in no commit of a task and in no rescue, so nothing else tells of that work.
    """
    shows = [
        typed.git("stash", "show", "-p", f"stash@{{{at}}}")
        for at, commit in enumerate(stashes(git))
        if commit not in before
    ]
    if not shows:
        return None
    return f"New stashes since the run began, which an agent may have made: {some(shows, SHOWN)}"


def _main(git: Git, *args: str) -> str | None:
    """Return what git prints about the repository's own directory; None where it says no."""
    answer = git.run(f"--git-dir={git.common_dir}", *args, check=False)
    return None if answer.returncode else answer.stdout.decode("utf-8", "surrogateescape").strip()


def _branch(git: Git) -> str | None:
    try:
        return ref_files.branch(git.common_dir)
    except ref_files.UnclearError:
        return _main(git, "symbolic-ref", "--quiet", "HEAD")
