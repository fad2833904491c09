"""The work trees of an unattended run: where they are, how one is made ready, and how they go.

They lie outside the project, so that no test runner or search of the project walks into them:
`<data home>/worktrees/<project>-<hash of its root>/<run>/<number>`.
A work tree is taken away only when all that is in it is in a commit that something keeps (but for files that
git ignores); where no commit can hold it, the directory is moved aside (`quarantine.py`).
Who works there has a repository of its own (`system/git/clones.py`): of the person's they see the objects.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness_lib.attempts import check, rescue_refs
from harness_lib.core import init_script
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.system.files import atomic, tree_ops
from harness_lib.system.git import clones, locks, snapshot, status, submodules, trees, worktrees
from harness_lib.system.git.repository import Git, GitError
from harness_lib.system.locks import flock
from harness_lib.system.place import data_home, find_root
from harness_lib.system.processes import reaper
from harness_lib.task import Task

LOCK = "lock"
# How the names of directories begin that are of no run: the checkouts of final checks in a chat.
CHECKS = "checks-"
# What checks need and git does not bring: copied in if it is there and git ignores it.
BROUGHT = (".env", ".env.local", "node_modules", ".venv")
# The convention of Claude Code for its own work trees: one path or glob per line.
LIST = ".worktreeinclude"
DYING_SECONDS = 20.0
# So far from a worker's work tree is the one that it takes instead; there are never so many workers.
BESIDE = 1000


class Place(NamedTuple):
    """The directory of one run; whoever works in it holds the lock there, by inheritance."""

    path: Path

    @property
    def lock(self) -> Path:
        """What the run and its workers hold as long as one of them lives."""
        return self.path / LOCK

    def slot(self, number: int) -> Path:
        """Return where the work tree of worker `number` is."""
        return self.path / str(number)

    def numbers(self) -> list[int]:
        """Return the workers whose work trees are there."""
        names = {entry.name.removesuffix(".git") for entry in self.path.iterdir()}
        return sorted(int(name) for name in names if name.isdigit())


def home(ctx: Context) -> Path:
    """Return the directory of all runs of this list."""
    # As git writes it: places are compared by their names.
    return Path(os.path.realpath(data_home.directory(ctx.env))) / find_root.WORKERS / rescue_refs.project(ctx)


def directory_of(ctx: Context, run: str) -> Place:
    """Return the directory of the run called `run`, made if it is not there."""
    path = home(ctx) / run
    # A run that ends takes the directory of all runs away if it is empty: not between our two.
    with flock.alone(ctx.git.common_dir / worktrees.LOCK):
        atomic.make_directory(path)
    return Place(path)


def _places(ctx: Context) -> list[Place]:
    """Return the directories of the runs of this list."""
    try:
        return [Place(path) for path in sorted(home(ctx).iterdir()) if path.is_dir()]
    except FileNotFoundError:
        return []


def _dead(ctx: Context, alive: set[str]) -> Iterator[Place]:
    """Yield the places of runs of which nothing lives any more, each with its lock held meanwhile.

    One of `alive` may have made its place and not have locked it yet.
    """
    for place in _places(ctx):
        if place.path.name in alive:
            continue
        try:
            with flock.attempt(place.lock) as free:
                if free:
                    yield place
        except FileNotFoundError:
            # Another run, which looked for dead ones too, has just taken it away.
            continue


def is_ours(ctx: Context, git: Git) -> bool:
    """Return whether the work tree is one of a run: no person works in it."""
    return git.git_dir != git.common_dir and home(ctx) in git.top.parents


def at(ctx: Context, path: Path) -> Git | None:
    """Return the work tree of this repository at `path`; None if there is none."""
    return clones.at(ctx.git, path)


def take_in(ctx: Context, git: Git, task: Task | None = None) -> None:
    """Take in what an agent has committed, and keep what it has beside its HEAD: branches, tags, stashes.

    Commits in which git finds fault stay where they are; the files are checked as they stand.
    """
    name = f"{check.safe_name(task.id)}/{task.attempts + 1}" if task else _left_over(git)
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


def end_survivors(ctx: Context, alive: set[str]) -> None:
    """Wait for the workers of runs that are dead themselves (not in `alive`), and end those that stay."""
    for place in _places(ctx):
        if place.path.name in alive or place.path.name.startswith(CHECKS):
            continue
        deadline = ctx.clock.monotonic() + DYING_SECONDS
        while not flock.is_free(place.lock) and ctx.clock.monotonic() < deadline:
            ctx.clock.sleep(0.1)
        reaper.end_all(place.path)


def checkout_clean(ctx: Context, path: Path, commit: str) -> tuple[Git, bool]:
    """Return the work tree at `path` standing clean at `commit`, and whether it was made for this."""
    git = at(ctx, path)
    try:
        if git is not None and clones.has_clone(git) and _stands_clean(ctx, git, commit):
            _give_repositories(git, commit)
            return git, False
        _make_way(ctx, path, git, commit)
    except GitError:
        # Its index is broken, say: all that is in it is kept, and it is made anew.
        rescue_refs.whole(ctx, path, None)
    clones.remove(ctx.git, path)
    git = clones.add(ctx.git, path, commit)
    _give_repositories(git, commit)
    copy_ignored(ctx, git)
    return git, True


def _give_repositories(git: Git, commit: str) -> None:
    """Give a work tree that stands clean at `commit` a clone, and one for each submodule."""
    clones.renew(git)
    with locks.hold(git):
        submodules.fill(git, commit, git.common_dir)


def _stands_clean(ctx: Context, git: Git, commit: str) -> bool:
    """Return whether the work tree could be made as a new one at `commit` would be."""
    take_in(ctx, git)
    changes = status.changes(git)
    if _has_more_than_git_keeps(git, commit, changes):
        return False
    with locks.hold(git):
        if changes.tracked or changes.untracked or git.head() != commit:
            keep(ctx, git, commit)
            git.run("checkout", "--quiet", "--force", "--detach", commit)
            git.run("clean", "-d", "--force", "--force", "--quiet")
    return _is_whole(git, commit)


def _make_way(ctx: Context, path: Path, git: Git | None, commit: str) -> Path | None:
    """Move the work tree at `path` aside if something in it would be lost with it; return where it is then.

    Files that are new in a submodule stay there as long as it is in use, and go with it.
    """
    if git is not None and not _has_more_than_git_keeps(git, commit, status.changes(git)):
        return rescue_refs.whole(ctx, path, git) if _has_new_files_below(git, commit) else None
    return rescue_refs.whole(ctx, path, git)


def set_up(ctx: Context) -> None:
    """Run the project's `harness-init.sh` in a new work tree. Raises EnvSetupError if it fails twice."""
    finished = init_script.prepare(ctx)
    if finished is not None and not finished.ok:
        raise EnvSetupError(
            f"{ctx.root.init_script.name} failed twice in {ctx.git.top}: {finished.tail[-300:]}",
            "Fix it so that it works in a fresh work tree, then: harness run",
        )


def _has_more_than_git_keeps(git: Git, commit: str, changes: status.Changes) -> bool:
    """Return whether a repository in the work tree has what no commit of ours holds, nor its own remote."""
    if submodules.among(changes) or any(submodules.is_broken(git, path) for path in submodules.staged(git)):
        return True
    return any(
        status.changes(repository).tracked or submodules.has_own_commits(repository, known)
        for repository, known in _repositories(git, commit)
    )


def _has_new_files_below(git: Git, commit: str) -> bool:
    return any(status.changes(repository).untracked for repository, _ in _repositories(git, commit))


def _repositories(git: Git, commit: str) -> list[tuple[Git, str | None]]:
    """Return the repositories in the work tree that git or `commit` know, and the commit of `commit`'s."""
    links = submodules.links(git, commit)
    named = {**submodules.staged(git), **links}
    return [(repository, links.get(path)) for path in named if (repository := submodules.at(git, path))]


def _is_whole(git: Git, commit: str) -> bool:
    """Return whether the work tree, which stands clean at `commit`, is as a new one would be."""
    if (git.git_dir / rescue_refs.INCOMPLETE).exists():
        return False
    return all(repository.head() == known for repository, known in _repositories(git, commit))


def is_there(git: Git) -> bool:
    """Return whether the work tree is still there; what its `.git` is by now does not matter."""
    return git.top.is_dir() and clones.at(git, git.top) is not None


def keep(ctx: Context, git: Git, commit: str) -> str | None:
    """Keep what is in a work tree and in no commit that `commit` or a rescue ref has; return the ref."""
    head = git.head()
    tree = snapshot.capture(git)
    if head is not None and tree == git.tree_of(head) and _is_kept(git, head, commit):
        return None
    if any(git.tree_of(oid) == tree for _, oid in git.refs(rescue_refs.RESCUE_REFS)):
        return None
    ref = rescue_refs.free(git, f"{rescue_refs.RESCUE_REFS}{_left_over(git)}")
    oid = trees.commit(git, tree, [head] if head else [], f"harness: left over in {git.top}\n")
    git.set_ref(ref, oid)
    ctx.say(f"what was left over in {git.top} is kept: {rescue_refs.show_command(ref)}")
    return ref


def _is_kept(git: Git, head: str, commit: str) -> bool:
    if git.is_ancestor(head, commit):
        return True
    return bool(git.text("for-each-ref", "--contains", head, "--count=1", "refs/heads", "refs/harness"))


def copy_ignored(ctx: Context, git: Git) -> None:
    """Copy the ignored files that checks need from the project into a new work tree."""
    main = Git.open(ctx.root.path)
    for source in _to_copy(main.top, ctx.root.path):
        name = str(source.relative_to(main.top))
        ignored = main.run("check-ignore", "--quiet", "--", name, check=False).returncode == 0
        if not ignored or (git.top / name).exists():
            continue
        (git.top / name).parent.mkdir(parents=True, exist_ok=True)
        tree_ops.copy(source, git.top / name)


def _to_copy(top: Path, project: Path) -> Iterator[Path]:
    """Yield what is asked for at the top of the repository and in the directory of the list, if another."""
    places = list(dict.fromkeys((top, project)))
    listings = [place / LIST for place in places if (place / LIST).is_file()]
    patterns = [(each.parent, each.read_text("utf-8").splitlines()) for each in listings]
    for place, lines in patterns or [(place, list(BROUGHT)) for place in places]:
        for line in lines:
            pattern = line.strip().strip("/")
            if pattern and not pattern.startswith(("#", "!")) and ".." not in pattern.split("/"):
                yield from sorted(place.glob(pattern))


def teardown(ctx: Context, place: Place, commit: str) -> list[str]:
    """Remove the work trees of a run and its directory; return how a person gets at what is kept of the rest.

    One in which a task still is in progress stays as it is: whoever recovers the task needs it.
    """
    kept, used = [], _occupied(ctx)
    for number in place.numbers():
        path = place.slot(number)
        if str(path) in used:
            continue
        git = at(ctx, path)
        if git is not None:
            take_in(ctx, git)
            with locks.hold(git):
                ref = keep(ctx, git, commit)
            kept += [rescue_refs.show_command(ref)] if ref else []
        aside = _make_way(ctx, path, git, commit)
        kept += [str(aside)] if aside else []
        clones.remove(ctx.git, path)
    if not place.numbers():
        tree_ops.remove(place.path)
        # Unless another run is in it.
        with suppress(OSError), flock.alone(ctx.git.common_dir / worktrees.LOCK):
            place.path.parent.rmdir()
    return kept


def free(ctx: Context, place: Place, number: int) -> Path:
    """Return where worker `number` may work: not where an attempt stands that could not be ended yet."""
    used = _occupied(ctx)
    paths = (place.slot(each) for each in itertools.count(number, BESIDE))
    return next(path for path in paths if str(path) not in used)


def idle(ctx: Context, place: Place, commit: str) -> list[Git]:
    """Return the work trees of this run that stand at `commit` now, with no task in progress.

    What git ignores is still there, as the attempts have left it. One in which something would have to be
    cleared away first is left alone.
    """
    used = _occupied(ctx)
    # Workers count from 1.
    paths = [place.slot(number) for number in place.numbers() if number]
    found = (at(ctx, path) for path in paths if str(path) not in used)
    return [git for git in found if git is not None and _is_brought_to(git, commit)]


def _is_brought_to(git: Git, commit: str) -> bool:
    """Return whether the work tree could be brought to `commit` without touching what is in none."""
    if any(status.changes(git)) or submodules.links(git, commit):
        return False
    try:
        worktrees.switch(git, commit)
        clones.renew(git)
    except GitError:
        return False
    return True


def _occupied(ctx: Context) -> set[str]:
    return {task.worktree for task in ctx.store.ask().in_progress() if task.worktree}


def drop_checks(ctx: Context, place: Place) -> None:
    """Remove the checkout of a final check: what checks leave behind is not work."""
    for number in place.numbers():
        clones.remove(ctx.git, place.slot(number))
    tree_ops.remove(place.path)


def sweep(ctx: Context, commit: str, alive: set[str]) -> list[str]:
    """Take away what dead runs (none of `alive`) have left; return warnings."""
    warnings = []
    for place in _dead(ctx, alive):
        try:
            if place.path.name.startswith(CHECKS):
                drop_checks(ctx, place)
                continue
            warnings += [
                f"What a run had left over is kept: {where}" for where in teardown(ctx, place, commit)
            ]
        except (OSError, HarnessError) as error:
            warnings.append(f"What a run had left in {place.path} could not be taken away: {error}")
    return warnings
