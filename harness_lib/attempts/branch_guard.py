"""Put a run's branches back where an agent has removed or moved them, if nobody else has moved them.

What a run has seen last stands in refs of ours, for git's own record of a branch goes with it. A move is an
agent's if it goes to a commit that was made in the agent's work tree, or if it goes backwards and did not
happen in the checkout that has the branch, where a person works. What cannot be told from a person stays.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from harness_lib.attempts import lost_branch, target_branch
from harness_lib.core.context import Context
from harness_lib.system.git import locks, reflog, worktrees
from harness_lib.system.git.repository import Git, GitError


def begin(ctx: Context, target: str) -> None:
    """Note where the branches stand when a run begins: what was before is a person's."""
    for ref in (target, target_branch.waiting(target)):
        tip = ctx.git.ref(ref)
        with locks.hold(ctx.git):
            if tip is None:
                ctx.git.delete_ref(lost_branch.seen_ref(ref))
            else:
                ctx.git.set_ref(lost_branch.seen_ref(ref), tip)


def all_of(ctx: Context) -> frozenset[str]:
    """Return the branches that there are, but for ours, as people write them."""
    names = (
        name for name, _ in ctx.git.refs(target_branch.HEADS) if not name.startswith(target_branch.WAITING)
    )
    return frozenset(target_branch.short(name) for name in names)


def end(ctx: Context, target: str) -> None:
    """Forget what `begin` has noted, where the branch is there."""
    for ref in (target, target_branch.waiting(target)):
        if ctx.git.ref(ref) is not None or ref != target:
            with locks.hold(ctx.git):
                ctx.git.delete_ref(lost_branch.seen_ref(ref))


def after_agent(ctx: Context, target: str, base: str) -> list[str]:
    """Put back what the agent in the work tree of `ctx` has done to the branches; return what to tell.

    `base`: what its attempt began with.
    """
    refs = (target, target_branch.waiting(target))
    return [warning for ref in refs if (warning := _look_after(ctx, ref, target, base))]


def put_back(ctx: Context, target: str) -> list[str]:
    """Make the branches again that are gone, and put back where agents at work now have moved them.

    Otherwise others would go on from commits that no check has seen. Return what to tell.
    """
    refs = (target, target_branch.waiting(target))
    warnings = []
    for ref in refs:
        # In this order: who moves it notes that afterwards.
        tip, seen = ctx.git.ref(ref), ctx.git.ref(lost_branch.seen_ref(ref))
        if seen is None or tip == seen:
            continue
        warnings.append(_make_again(ctx, ref, target) if tip is None else _undo_move(ctx, ref, tip, seen))
    return [each for each in warnings if each]


def _undo_move(ctx: Context, ref: str, tip: str, seen: str) -> str | None:
    back = _before_agents(ctx, ref, tip, seen)
    return None if back == tip else _put_back(ctx.git, ref, tip, back)


def _look_after(ctx: Context, ref: str, target: str, base: str) -> str | None:
    git = ctx.git
    tip, seen = git.ref(ref), git.ref(lost_branch.seen_ref(ref))
    if tip is None:
        return _make_again(ctx, ref, target)
    if seen in (None, tip):
        return None
    assert seen is not None
    back = _before_agents(ctx, ref, tip, seen, _made_by_the_agent(git, seen, base))
    if back == tip:
        _note(git, ref, tip)
        return None
    return _put_back(git, ref, tip, back)


def _before_agents(ctx: Context, ref: str, tip: str, seen: str, made: Collection[str] = frozenset()) -> str:
    """Return where `ref`, now at `tip`, was before the agents of this run moved it; `tip` if they did not.

    `made`: what one of them has made, whose task may have ended; the others are at work now.
    """
    questions = ctx.store.ask()
    if questions.made(tip):
        # Whoever has moved it was killed before that was noted.
        return tip
    by_agents = set(made)
    for task in questions.in_progress():
        worktree = worktrees.at(Path(task.worktree)) if task.worktree else None
        if worktree is not None and task.started_at_commit:
            by_agents |= _made_by_the_agent(worktree, seen, task.started_at_commit)
    return _before_the_agent(ctx.git, ref, tip, seen, by_agents)


def _make_again(ctx: Context, ref: str, target: str) -> str | None:
    git = ctx.git
    seen = git.ref(lost_branch.seen_ref(ref))
    if seen is None or (ref != target and git.ref(target) and git.is_ancestor(seen, target)):
        # Not one of a run's, or taken over.
        return None
    holder = worktrees.holder(git, ref)
    stood = lost_branch.last_place(Git.open(holder) if holder else git, ref) or seen
    return _put_back(git, ref, "", stood)


def _put_back(git: Git, ref: str, tip: str, back: str) -> str | None:
    try:
        with locks.hold(git):
            git.set_ref(ref, back, tip, why=reflog.PUT_BACK)
    except GitError:
        # Somebody has moved it this moment; it is looked at again after the next agent.
        return None
    _note(git, ref, back)
    change = f"moved to {tip[:12]}" if tip else "removed"
    return f"An agent has {change} a branch: {target_branch.short(ref)} is put back to {back[:12]}."


def _note(git: Git, ref: str, place: str) -> None:
    with locks.hold(git):
        git.set_ref(lost_branch.seen_ref(ref), place)


def _before_the_agent(git: Git, ref: str, tip: str, seen: str, made: set[str]) -> str:
    """Return where `ref`, now at `tip`, was before the last moves, if they are the agent's; else `tip`."""
    holder = worktrees.holder(git, ref)
    by_person = set(reflog.of_checkout(Git.open(holder))) if holder else set()
    back = tip
    for step in reflog.of_branch(git, ref):
        ours = step.new == seen or step.new != back
        backwards = holder is not None and step.old and not git.is_ancestor(step.old, step.new)
        if ours or step in by_person or not (step.new in made or backwards):
            break
        back = step.old or seen
    return back


def _made_by_the_agent(git: Git, seen: str, base: str) -> set[str]:
    """Return the commits that this work tree has stood at, but for what there was when the attempt began."""
    logged = {place for step in reflog.of_checkout(git) for place in step if place}
    places = [place for place in {*logged, git.head() or base} if git.exists(place)]
    return set(git.lines("rev-list", *places, f"^{seen}", f"^{base}"))
