"""Put a run's branches back where an agent has removed or moved them, if nobody else has moved them.

What a run has seen last stands in refs of ours, for git's own record of a branch goes with it. A move is an
agent's if it goes to a commit that the agent itself has made, or if it did not happen in the checkout that
has the branch, where a person works.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from harness_lib.attempts import lost_branch, target_branch
from harness_lib.core.context import Context
from harness_lib.system.git import locks, reflog, worktrees
from harness_lib.system.git.repository import Git, GitError


def begin(ctx: Context, wanted: str) -> None:
    """Note where the branches stand when a run begins: what was before is a person's."""
    for ref in (wanted, target_branch.waiting(wanted)):
        here = ctx.git.ref(ref)
        with locks.hold(ctx.git):
            if here is None:
                ctx.git.delete_ref(lost_branch.seen_ref(ref))
            else:
                ctx.git.set_ref(lost_branch.seen_ref(ref), here)


def all_of(ctx: Context) -> frozenset[str]:
    """Return the branches that there are, but for ours, as people write them."""
    names = (
        name for name, _ in ctx.git.refs(target_branch.HEADS) if not name.startswith(target_branch.WAITING)
    )
    return frozenset(target_branch.short(name) for name in names)


def end(ctx: Context, wanted: str) -> None:
    """Forget what `begin` has noted, where the branch is there."""
    for ref in (wanted, target_branch.waiting(wanted)):
        if ctx.git.ref(ref) is not None or ref != wanted:
            with locks.hold(ctx.git):
                ctx.git.delete_ref(lost_branch.seen_ref(ref))


def after_agent(there: Context, wanted: str, base: str) -> list[str]:
    """Put back what the agent in the work tree of `there` has done to the branches; return what to tell.

    `base`: what its attempt began with.
    """
    refs = (wanted, target_branch.waiting(wanted))
    return [told for ref in refs if (told := _look_after(there, ref, wanted, base))]


def put_back(ctx: Context, wanted: str) -> list[str]:
    """Make the branches again that are gone, and put back where agents at work now have moved them.

    Otherwise others would go on from commits that no check has seen. Return what to tell.
    """
    refs = (wanted, target_branch.waiting(wanted))
    places = dict(ctx.git.refs(*refs, *map(lost_branch.seen_ref, refs)))
    told = []
    for ref in refs:
        here, seen = places.get(ref), places.get(lost_branch.seen_ref(ref))
        if seen is None or here == seen:
            continue
        told.append(_make_again(ctx, ref, wanted) if here is None else _undo_move(ctx, ref, here, seen))
    return [each for each in told if each]


def _undo_move(ctx: Context, ref: str, here: str, seen: str) -> str | None:
    back = _before_agents(ctx, ref, here, seen)
    return None if back == here else _put_back(ctx.git, ref, here, back)


def _look_after(there: Context, ref: str, wanted: str, base: str) -> str | None:
    git = there.git
    here, seen = git.ref(ref), git.ref(lost_branch.seen_ref(ref))
    if here is None:
        return _make_again(there, ref, wanted)
    if seen in (None, here):
        return None
    assert seen is not None
    back = _before_agents(there, ref, here, seen, _made_by_the_agent(git, seen, base))
    if back == here:
        _note(git, ref, here)
        return None
    return _put_back(git, ref, here, back)


def _before_agents(ctx: Context, ref: str, here: str, seen: str, made: Collection[str] = frozenset()) -> str:
    """Return where `ref`, now at `here`, was before the agents of this run moved it; `here` if they did not.

    `made`: what one of them has made, whose task may have ended; the others are at work now.
    """
    questions = ctx.store.ask()
    if questions.made(here):
        # Whoever has moved it was killed before that was noted.
        return here
    by_agents = set(made)
    for task in questions.in_progress():
        there = worktrees.at(Path(task.worktree)) if task.worktree else None
        if there is not None and task.started_at_commit:
            by_agents |= _made_by_the_agent(there, seen, task.started_at_commit)
    return _before_the_agent(ctx.git, ref, here, seen, by_agents)


def _make_again(ctx: Context, ref: str, wanted: str) -> str | None:
    git = ctx.git
    seen = git.ref(lost_branch.seen_ref(ref))
    if seen is None or (ref != wanted and git.ref(wanted) and git.is_ancestor(seen, wanted)):
        # Not one of a run's, or taken over.
        return None
    holder = worktrees.holder(git, ref)
    stood = lost_branch.last_place(Git.open(holder) if holder else git, ref) or seen
    return _put_back(git, ref, "", stood)


def _put_back(git: Git, ref: str, here: str, back: str) -> str | None:
    try:
        with locks.hold(git):
            git.set_ref(ref, back, here, why=reflog.PUT_BACK)
    except GitError:
        # Somebody has moved it this moment; it is looked at again after the next agent.
        return None
    _note(git, ref, back)
    what = f"moved to {here[:12]}" if here else "removed"
    return f"An agent has {what} a branch: {target_branch.short(ref)} is put back to {back[:12]}."


def _note(git: Git, ref: str, place: str) -> None:
    with locks.hold(git):
        git.set_ref(lost_branch.seen_ref(ref), place)


def _before_the_agent(git: Git, ref: str, here: str, seen: str, made: set[str]) -> str:
    """Return where `ref`, now at `here`, was before the last moves, if they are the agent's; else `here`."""
    holder = worktrees.holder(git, ref)
    by_person = set(reflog.of_checkout(Git.open(holder))) if holder else set()
    back = here
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
