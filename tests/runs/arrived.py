"""What has arrived on a branch when a run is over."""

from __future__ import annotations

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import sh


def merged(workshop: Workshop, branch: str = "main") -> list[str]:
    """Return what is on the branch besides the first commit, and nothing else of ours."""
    assert sh(workshop.top, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert list((workshop.home / "worktrees").glob("*")) == []
    return sorted(sh(workshop.top, "log", "--format=%s", branch).splitlines()[:-1])
