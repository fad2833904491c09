"""Name the commit where a lost branch stood, so that nobody begins anew beside what there is."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.errors import EnvSetupError
from harness_lib.system.git import history
from harness_lib.system.git.repository import Git

HEADS = "refs/heads/"


def error(git: Git, branch: str | None) -> EnvSetupError:
    """Return the error of an attempt that has nothing to begin with: `branch` (full name) has no commit."""
    branches = [name for name, _ in git.refs(HEADS)]
    name = (branch or "HEAD").removeprefix(HEADS)
    stood = last_place(git, branch) if branch else None
    if branch and stood:
        return EnvSetupError(
            f"The branch {name} is gone; it stood at {stood[:12]}.",
            f"Make it again: {typed.git('branch', name, stood)}",
        )
    if branches:
        other = branches[0].removeprefix(HEADS)
        return EnvSetupError(
            f"The branch {name} of {git.top} has no commit; there are others, {other} for one.",
            f"Go to one of them: {typed.git('switch', other)}",
        )
    if git.has_commits():
        return EnvSetupError(
            f"{git.top} has no branch any more, but it has commits.",
            "Look for the last one (git log --all --reflog, or git fsck --lost-found), "
            f"then: {typed.git('branch', name, rest='COMMIT')}",
        )
    return EnvSetupError(
        f"The repository {git.top} has no commit yet, so a failed attempt could not be rolled back.",
        "Make a first commit (an empty one will do): git commit --allow-empty -m 'Start'",
    )


def last_place(git: Git, branch: str) -> str | None:
    """Return the newest commit that `branch`, which is gone, is known to have stood at."""
    logged = history.last_of_checkout(git, branch)
    if logged is None or not git.exists(logged):
        return None
    # Of the branch that was left for this one, which may never have had a commit.
    is_anothers = git.text("for-each-ref", "--contains", logged, "--count=1", HEADS)
    return None if is_anothers else logged
