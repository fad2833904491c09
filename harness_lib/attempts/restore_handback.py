"""Put work that was handed back into the next attempt's work tree, on top of what was merged meanwhile."""

from __future__ import annotations

from harness_lib.attempts import rescue_refs
from harness_lib.core.context import Context
from harness_lib.system.git import checkout, locks, merge, trees
from harness_lib.task import Task

NAMED = 10


def apply(ctx: Context, task: Task) -> str:
    """Put the work that `task` was handed back with into the work tree, uncommitted; return what to tell.

    Where both sides changed the same lines, both stand there between conflict marks.
    """
    back, git = task.handback, ctx.git
    if back is None:
        return ""
    if not back.rescue or not back.base or not back.rescue.startswith(rescue_refs.RESCUE_REFS):
        return ""
    if not git.ref(back.rescue) or not git.exists(back.base):
        return ""
    head = git.head()
    assert head is not None
    picked = merge.differing(git, back.base, git.tree_of(back.rescue), head)
    assert picked.tree is not None
    moves = trees.changed(git, git.tree_of(head), picked.tree)
    as_it_was = rescue_refs.show_command(back.rescue)
    lines = [f"that work stands in this work tree, uncommitted (git diff; as it was: {as_it_was})"]
    # What is fetched, or thrown away, of another repository is not for us to say.
    for path in [path for path, (old, new) in moves.items() if trees.GITLINK in (new or old or ())]:
        _, new = moves.pop(path)
        change = f"stands at {new[1]}" if new else "is removed"
        lines.append(f"but for one thing: there the submodule {path!r} {change}")
    with locks.hold(git):
        blocked = checkout.apply(git, moves)
    if blocked:
        lines.append(f"but for what something stands in the way of: {', '.join(blocked[:NAMED])}")
    marked = list(dict.fromkeys((*picked.conflicts, *merge.left(git, git.tree_of(head), picked.tree))))
    if marked:
        shown = ", ".join(marked[:NAMED])
        lines.append(f"conflict marks (<<<<<<< ours: merged meanwhile, >>>>>>> yours) stand in: {shown}")
        lines.append("it is merged only when they are gone: resolve each, and leave no line of them")
    return "\n".join(lines)
