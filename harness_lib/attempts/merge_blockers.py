"""Find what must not be merged although it passes: repositories that nobody else has, conflict marks.

Asked only of work that is merged for its agent: in a person's own checkout the files stay where they are.
"""

from __future__ import annotations

from typing import NamedTuple

from harness_lib.attempts import target_branch
from harness_lib.core.context import Context
from harness_lib.system.git import merge, submodules
from harness_lib.system.git.repository import Git
from harness_lib.task import Task


class Blockers(NamedTuple):
    """What stands against merging some work; all of it paths from the top.

    `repositories` are new and of their own; `submodules` name a commit that nobody else has; `marked` have
    conflict marks that harness wrote, or those of a merge that the agent has left unresolved.
    """

    repositories: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Say whether there is anything."""
        return bool(self.repositories or self.submodules or self.marked)


def find(ctx: Context, task: Task, tree: str) -> Blockers:
    """Return what stands against merging `tree`, which was just captured from the work tree.

    Before the check runs: what that makes in the work tree is not merged.
    """
    if task.gate is None or task.gate.target is None:
        return Blockers()
    git, base = ctx.git, task.started_at_commit
    before = git.tree_of(base if base and git.exists(base) else "HEAD")
    links_before, links = submodules.links(git, before), submodules.links(git, tree)
    repositories = {
        *submodules.untracked(git),
        *(path for path in links if links[path] != links_before.get(path)),
    }
    new = {path for path in repositories if path not in links_before}
    new -= {path for path in new if path in links and submodules.is_submodule(git, tree, path)}
    moved = sorted(
        path for path in (repositories - new) if path in links and links[path] != links_before.get(path)
    )
    lost = [path for path in moved if not _is_held(ctx, task.gate.target, path, links[path])]
    marked = {*merge.left(git, before, tree), *merge.unresolved(git, tree)}
    return Blockers(tuple(sorted(new)), tuple(lost), tuple(sorted(marked)))


def _is_held(ctx: Context, target: str, path: str, commit: str) -> bool:
    """Return whether others can have `commit` of the submodule at `path`, or its target names it already."""
    submodule = submodules.at(ctx.git, path)
    if submodule is not None and submodules.is_published(submodule, commit):
        return True
    own = submodules.at(Git.open(ctx.root.path), path)
    if own is not None and own.exists(commit):
        return True
    return ctx.git.ref(f"{target_branch.tip(ctx.git, target)}:{path}") == commit
