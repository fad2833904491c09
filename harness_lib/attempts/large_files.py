"""Ask a person before a very large file of an agent's work is committed.

Once it is in a branch's history it stays there, and many hosts refuse a push with it.
"""

from __future__ import annotations

from harness_lib import typed
from harness_lib.core.context import Context
from harness_lib.errors import RefusedError
from harness_lib.system.git import trees
from harness_lib.task import Task
from harness_lib.text import some

MEGABYTE = 1_000_000
NAMED = 5


def refuse(ctx: Context, task: Task, tree: str, most: float) -> None:
    """Raise RefusedError if `tree` brings a file of more than `most` megabytes; 0 is no limit."""
    git, base = ctx.git, task.started_at_commit
    if not most or base is None or not git.exists(base):
        return
    if git.tree_of(base) == tree:
        return
    new = {
        path: entry[1]
        for path, (_, entry) in trees.changed(git, base, tree).items()
        if entry is not None and entry[0] != trees.GITLINK
    }
    sizes = trees.sizes(git, new.values())
    large = [(path, sizes[oid] / MEGABYTE) for path, oid in new.items() if sizes[oid] > most * MEGABYTE]
    if not large:
        return
    shown = some([f"{path} ({size:.1f} MB)" for path, size in large], NAMED)
    raise RefusedError(
        f"The check passed, but the work has files of more than {most:g} MB: {shown}. Should they be "
        f"committed? Then type: {typed.harness('retry', task.id)}, and harness run with a larger --max-file; "
        "if not, say so in the task's description (harness edit) before you retry it.",
    )
