"""What is kept of an attempt under refs of our own: the work of a failed one, what was untracked before."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.ops import checking
from harness_lib.ops.context import Context
from harness_lib.system import gitlocks, snapshot
from harness_lib.system.git import Git
from harness_lib.task import Task

RESCUE_REFS = "refs/harness/rescue/"


def rescue_only(ctx: Context, task: Task) -> str:
    """Save everything that stands in the work tree, touch nothing there, and return the ref."""
    git = ctx.git
    with gitlocks.hold(git):
        made = snapshot.capture(git, ctx.keep_out)
        ref = free_ref(git, task)
        head = git.head()
        message = f"harness: rescued work of {task.id}\n"
        git.set_ref(ref, snapshot.commit(git, made, [head] if head else [], message))
    return ref


def free_ref(git: Git, task: Task, suffix: str = "") -> str:
    """Return an unused rescue ref for the attempt under way, which has not been counted yet."""
    return free(git, f"{RESCUE_REFS}{checking.safe_name(task.id)}/{task.attempts + 1}{suffix}")


def free(git: Git, name: str) -> str:
    """Return `name`, or the first `name.2`, `name.3`, … that is unused: `retry` counts anew, refs do not."""
    taken = {ref for ref, _oid in git.refs(name.rpartition("/")[0] + "/")}
    candidates = (name if n == 1 else f"{name}.{n}" for n in range(1, len(taken) + 2))
    return next(ref for ref in candidates if ref not in taken)


def look_at(ref: str) -> str:
    """Return the command that shows the work kept in a rescue ref."""
    return typed.harness("rescue", "show", ref.removeprefix(RESCUE_REFS))


def branch(git: Git, task: Task) -> str | None:
    """Return the ref that HEAD stood for at the claim; a claim made by the prose did not record it."""
    return task.gate.branch if task.gate else git.branch()


def branch_tip(git: Git, task: Task) -> str | None:
    """Return the commit that this ref points at now; None if there is none."""
    claimed_on = branch(git, task)
    return git.ref(claimed_on) if claimed_on else None


def before(git: Git, task: Task) -> snapshot.Before | None:
    """Return what was untracked at the claim; None if nobody recorded it."""
    if task.gate is None:
        return None
    copy = task.gate.before
    return snapshot.read_untracked(git, copy) if copy else snapshot.Before(git.empty_tree())


def drop_before(git: Git, task: Task) -> None:
    """Let go of the copies of what was untracked before: the attempt has ended, the files stand."""
    if task.gate and task.gate.before:
        with gitlocks.hold(git):
            # The outcome is recorded: that a copy cannot go now is not its failure, and tidying tries again.
            git.run("update-ref", "-d", f"refs/harness/before/{task.gate.before}", check=False)
