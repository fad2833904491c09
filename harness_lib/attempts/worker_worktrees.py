"""Make, reuse and remove the work trees of an unattended run.

They are outside the project, so that no test runner or search of the project walks into them:
`<data home>/worktrees/<project>-<hash of its root>/<run>/<number>`.
A work tree is removed only when everything in it is in a commit that a ref keeps (except files that
git ignores); what no commit can hold is moved aside with its directory (`rescue_refs.whole`).
Each worker has a repository of its own (`system/git/clones.py`), which shares only objects with the user's.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from harness_lib.attempts import brought, rescue_refs
from harness_lib.core import project, sessions
from harness_lib.core.context import Context
from harness_lib.errors import AwayError, EnvSetupError, HarnessError
from harness_lib.system import flock, fs
from harness_lib.system.git import clones, locks, snapshot, status, submodules, worktrees
from harness_lib.system.git.calls import GitError
from harness_lib.system.git.repository import Git
from harness_lib.system.place import data_home, find_root
from harness_lib.system.processes import runner
from harness_lib.task import Task
from harness_lib.text import safe_name

LOCK = "lock"
# Prefix of directories that belong to no run: the checkouts of final checks in a chat.
CHECKS = "checks-"
DYING_SECONDS = 20.0
# The distance from a worker's number to that of its replacement work tree; there are never so many workers.
BESIDE = 1000


class Place(NamedTuple):
    """The directory of one run; its processes inherit the lock there."""

    path: Path

    @property
    def lock(self) -> Path:
        """The lock that the run and its workers hold as long as one of them lives."""
        return self.path / LOCK

    def worktree(self, number: int) -> Path:
        """Return the path of the work tree of worker `number`."""
        return self.path / str(number)

    def numbers(self) -> list[int]:
        """Return the numbers of the workers whose work trees exist."""
        names = {entry.name.removesuffix(".git") for entry in self.path.iterdir()}
        return sorted(int(name) for name in names if name.isdigit())


def home(ctx: Context) -> Path:
    """Return the directory of all runs of this list."""
    # Resolved as git does: paths are compared as text.
    return Path(os.path.realpath(data_home.directory(ctx.env))) / find_root.WORKERS / rescue_refs.project(ctx)


def directory_of(ctx: Context, run: str) -> Place:
    """Return the directory of the run called `run`, and make it if needed."""
    path = home(ctx) / run
    # A run that ends removes the directory of all runs if it is empty: not between our two steps.
    with flock.alone(ctx.git.common_dir / worktrees.LOCK):
        fs.make_directory(path)
    return Place(path)


def _places(ctx: Context) -> list[Place]:
    """Return the directories of the runs of this list."""
    try:
        return [Place(path) for path in sorted(home(ctx).iterdir()) if path.is_dir()]
    except FileNotFoundError:
        return []


def _left(ctx: Context) -> list[Place]:
    """Return the directories of those runs that have no session of a living owner."""
    found = _places(ctx)
    # Mostly there are none: then the list is not asked.
    alive = sessions.living(ctx.ask(), ctx) if found else set()
    return [place for place in found if place.path.name not in alive]


def _dead(ctx: Context) -> Iterator[Place]:
    """Yield the places of runs that are dead, each with its lock held meanwhile.

    A run that lives may have made its place and not have locked it yet.
    """
    for place in _left(ctx):
        try:
            with flock.attempt(place.lock) as free:
                if free:
                    yield place
        except FileNotFoundError:
            # Another run, which also looks for dead ones, has just removed it.
            continue


def is_ours(ctx: Context, git: Git) -> bool:
    """Return whether the work tree belongs to a run: no user works in it."""
    return git.git_dir != git.common_dir and home(ctx) in git.top.parents


def take_in(ctx: Context, git: Git, task: Task | None = None) -> None:
    """Fetch what an agent has committed, and keep what it has beside its HEAD: branches, tags, stashes.

    Commits that fail git's checks are not fetched; the files of the work tree are checked all the same.
    """
    name = f"{safe_name(task.id)}/{task.attempts + 1}" if task else _left_over(git)
    if is_ours(ctx, git):
        # A directory that may not be written can neither be emptied nor moved aside.
        fs.reopen(git.top, ".git")
    with locks.hold(git):
        try:
            made = clones.take_in(git)
        except GitError as error:
            ctx.say(f"what was committed in {git.top} is not taken, only its files are: {error.message}")
            return
        for ref, oid in made.items():
            kept = rescue_refs.free(git, f"{rescue_refs.RESCUE_REFS}{name}-{ref.replace('/', '-')}")
            git.set_ref(kept, oid)
            ctx.say(f"an agent has made {ref} beside its work; kept: {rescue_refs.show_command(kept)}")


def _left_over(git: Git) -> str:
    return f"left-over/{git.top.parent.name}-{git.top.name}"


def end_survivors(ctx: Context) -> None:
    """Wait for the workers of dead runs, and end those that stay."""
    for place in _left(ctx):
        if place.path.name.startswith(CHECKS):
            continue
        deadline = ctx.clock.monotonic() + DYING_SECONDS
        while not flock.is_free(place.lock) and ctx.clock.monotonic() < deadline:
            ctx.clock.sleep(0.1)
        runner.end_all(place.path)


class Clean(NamedTuple):
    """A work tree without changes, and whether it was newly made.

    `settings` are git's settings for it; None if files were written since it was looked at.
    """

    git: Git
    is_new: bool
    settings: clones.Settings | None = None


def checkout_clean(ctx: Context, path: Path, commit: str) -> Clean:
    """Return the work tree at `path`, clean at `commit`."""
    # An agent without a sandbox may have removed it, or the end of the user's login.
    Path(tempfile.gettempdir()).mkdir(mode=0o700, parents=True, exist_ok=True)
    git = worktrees.at(ctx.git, path)
    try:
        if git and worktrees.has_clone(git) and (found := _cleaned(ctx, git, commit)):
            settings = _give_repositories(git, commit)
            return Clean(git, is_new=False, settings=settings if found == "clean" else None)
        _make_way(ctx, path, git, commit)
    except AwayError:
        # No room on the disk, or a git that was killed; another work tree needs more.
        raise
    except GitError:
        # Its index may be broken: everything in it is kept, and it is made again.
        rescue_refs.whole(ctx, path, None)
    if os.path.lexists(path) or os.path.lexists(worktrees.link(path)):
        worktrees.remove(ctx.git, path)
    git = worktrees.add(ctx.git, path, commit)
    _give_repositories(git, commit)
    brought.copy(ctx, git)
    return Clean(git, is_new=True)


def _give_repositories(git: Git, commit: str) -> clones.Settings:
    """Give a work tree that is clean at `commit` its clones, also of submodules; return git's settings."""
    settings = clones.renew(git)
    with locks.hold(git):
        submodules.fill(git, commit, git.common_dir)
    return settings


def _cleaned(ctx: Context, git: Git, commit: str) -> Literal["clean", "changed", ""]:
    """Bring the work tree to the state of a new one at `commit`.

    Return how it was before; "" if that is not possible.
    """
    take_in(ctx, git)
    changes = status.changes(git)
    if _has_more_than_git_keeps(git, commit, changes):
        return ""
    with locks.hold(git):
        is_clean = not any(changes) and git.head() == commit
        if not is_clean:
            _keep(ctx, git, commit)
            git.run("checkout", "--quiet", "--force", "--detach", commit)
            git.run("clean", "-d", "--force", "--force", "--quiet")
    if not _is_whole(git, commit):
        return ""
    return "clean" if is_clean else "changed"


def _make_way(ctx: Context, path: Path, git: Git | None, commit: str) -> Path | None:
    """Move the work tree at `path` aside if something in it would be lost; return its new path.

    New files in a submodule stay as long as the work tree is reused, and are moved with it.
    """
    if git and not _has_more_than_git_keeps(git, commit, status.changes(git)):
        below = (repository for repository, _ in _repositories(git, commit, submodules.staged(git)))
        if not any(status.changes(repository).untracked for repository in below):
            return None
    return rescue_refs.whole(ctx, path, git)


def set_up(ctx: Context) -> None:
    """Run the project's `harness-init.sh` in a new work tree. Raises EnvSetupError if it fails twice."""
    finished = project.prepare(ctx)
    if finished and not finished.ok:
        raise EnvSetupError(
            f"{ctx.root.init_script.name} failed twice in {ctx.git.top}: {project.why_failed(ctx, finished)}",
            "Fix it so that it works in a fresh work tree, then: harness run",
        )


def _has_more_than_git_keeps(git: Git, commit: str, changes: status.Changes) -> bool:
    """Return whether a repository in the work tree has content that neither harness nor a remote has."""
    is_as_committed = not changes.tracked and git.head() == commit
    staged = submodules.links(git, commit) if is_as_committed else submodules.staged(git)
    if submodules.among(changes) or any(submodules.is_broken(git, path) for path in staged):
        return True
    return any(
        status.changes(repository).tracked or submodules.has_own_commits(repository, known)
        for repository, known in _repositories(git, commit, staged)
    )


def _repositories(git: Git, commit: str, staged: Iterable[str]) -> list[tuple[Git, str | None]]:
    """Return the repositories that `commit` names, each with its commit there, and those `staged`."""
    links = submodules.links(git, commit)
    named = {**dict.fromkeys(staged), **links}
    return [(repository, links.get(path)) for path in named if (repository := submodules.at(git, path))]


def _is_whole(git: Git, commit: str) -> bool:
    """Return whether the work tree, clean at `commit`, equals a new one."""
    if (git.git_dir / rescue_refs.INCOMPLETE).exists():
        return False
    return all(repository.head() == known for repository, known in _repositories(git, commit, ()))


def is_there(git: Git) -> bool:
    """Return whether the work tree still exists, whatever became of its `.git`."""
    return git.top.is_dir() and worktrees.at(git, git.top) is not None


def _keep(ctx: Context, git: Git, commit: str) -> str | None:
    """Keep the content of a work tree unless `commit` or a rescue ref has it; return the ref."""
    head = git.head()
    tree = snapshot.capture(git)
    if head is not None and tree == git.tree_of(head):
        asked = ("for-each-ref", "--contains", head, "--count=1", "refs/heads", "refs/harness")
        if git.is_ancestor(head, commit) or git.text(*asked):
            return None
    if any(git.tree_of(oid) == tree for _, oid in git.refs(rescue_refs.RESCUE_REFS)):
        return None
    name = f"{rescue_refs.RESCUE_REFS}{_left_over(git)}"
    ref = rescue_refs.keep(git, name, tree, head, f"left over in {git.top}")
    ctx.say(f"what was left over in {git.top} is kept: {rescue_refs.show_command(ref)}")
    return ref


def teardown(ctx: Context, place: Place, commit: str) -> list[str]:
    """Remove the work trees of a run and its directory; return commands and paths for what was kept.

    A work tree with a task in progress stays: recovery needs it.
    """
    kept, used = [], _occupied(ctx)
    for number in place.numbers():
        path = place.worktree(number)
        if str(path) in used:
            continue
        git = worktrees.at(ctx.git, path)
        if git:
            take_in(ctx, git)
            with locks.hold(git):
                ref = _keep(ctx, git, commit)
            kept += [rescue_refs.show_command(ref)] if ref else []
        aside = _make_way(ctx, path, git, commit)
        kept += [str(aside)] if aside else []
        worktrees.remove(ctx.git, path)
    if not place.numbers():
        fs.remove_tree(place.path)
        # It stays if another run uses it.
        with suppress(OSError), flock.alone(ctx.git.common_dir / worktrees.LOCK):
            place.path.parent.rmdir()
    return kept


def free(ctx: Context, place: Place, number: int) -> Path:
    """Return a path where worker `number` may work: none with an attempt that could not be ended yet."""
    used = _occupied(ctx)
    # The one with the number 0 is that of the final check.
    paths = (place.worktree(each) for each in itertools.count(number or BESIDE, BESIDE))
    return next(path for path in paths if str(path) not in used)


def idle(ctx: Context, place: Place, commit: str) -> list[Git]:
    """Bring idle work trees of this run to `commit`, and return them.

    Ignored files are still there, as attempts have left them. A work tree in which something would have to be
    removed first is left alone.
    """
    used = _occupied(ctx)
    # Workers count from 1.
    paths = [place.worktree(number) for number in place.numbers() if number]
    found = (worktrees.at(ctx.git, path) for path in paths if str(path) not in used)
    return [git for git in found if git and _is_brought_to(git, commit)]


def _is_brought_to(git: Git, commit: str) -> bool:
    """Bring the work tree to `commit` if nothing uncommitted is in the way; return whether it is there."""
    if any(status.changes(git)) or submodules.links(git, commit):
        return False
    try:
        worktrees.switch(git, commit)
        clones.renew(git)
    except GitError:
        return False
    return True


def _occupied(ctx: Context) -> set[str]:
    return {task.worktree for task in ctx.store.ask_now().in_progress() if task.worktree}


def drop_checks(ctx: Context, place: Place) -> None:
    """Remove the checkout of a final check: files that checks leave behind are not work."""
    for number in place.numbers():
        worktrees.remove(ctx.git, place.worktree(number))
    fs.remove_tree(place.path)


def sweep(ctx: Context, commit: str) -> list[str]:
    """Remove what dead runs have left; return warnings."""
    warnings = []
    for place in _dead(ctx):
        try:
            if place.path.name.startswith(CHECKS):
                drop_checks(ctx, place)
                continue
            warnings += [
                f"What a run had left over is kept: {where}" for where in teardown(ctx, place, commit)
            ]
        except (OSError, HarnessError) as error:
            warnings.append(f"What a run had left in {place.path} could not be removed: {error}")
    return warnings
