"""Bring finished work to a remote: push its branch, or have a pull request merged by others.

With `pull-request` the work is collected on `harness/<branch>`, which is pushed under a name of its own and
proposed once. Its tasks are halted (MERGE) until the checked content is found on the branch of the remote.
Nothing is forced; what is refused is tried again at the next merge, at the end, and by the next run.

Machines that share a list collect it on `harness/<branch>` of the remote, in turn; the tasks that wait say
where its pull request is.

Crash model: `refs/harness/pull/<branch>` says what was pushed and proposed, before and after each step, and
each step ends in the same place when it is made again.
Source: docs/unattended.md, "Where finished work goes".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from harness_lib import typed
from harness_lib.attempts import outcome, pull_request, requeue, target_branch
from harness_lib.core import lifecycle, project
from harness_lib.core.context import Context, MergeMode, Merging
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.rules import arrows, transitions
from harness_lib.rules.attempts import Halt
from harness_lib.system import flock
from harness_lib.system.git import merge, worktrees
from harness_lib.task import Task

# The queue of merges, in git's directory: an agent may delete files of harness.
LINE = "harness-merge.line"
CHANGE = '"what is to be changed"'
# Tasks, each with the commit of its work.
Kept = list[tuple[Task, str]]


def of(ctx: Context, target: str, mode: MergeMode, command: str) -> Merging:
    """Return what becomes of work for the branch `target`. Raises UsageError or EnvSetupError.

    `command` opens pull requests; "": `gh` or `glab`, whichever is there.
    """
    is_shared = ctx.shared is not None
    if mode in ("local", "branch") and not is_shared:
        return Merging(mode)
    found = target_branch.upstream(ctx.git, target)
    if not found:
        name = target_branch.short(target)
        raise UsageError(
            f"{name} has no branch on a remote that it belongs to, so nothing can be pushed.",
            target_branch.to_push(ctx.git, name),
        )
    remote, branch = found
    if is_shared:
        # A list of one machine needs none of it.
        from harness_lib.attempts.remote import read_leaving  # noqa: PLC0415

        remote = read_leaving(ctx.git).target or remote
        asked = (command or pull_request.tool(ctx, remote)) if mode == "pull-request" else ""
        is_direct = mode in ("local", "push")
        return Merging("turns", remote, branch, asked, "" if is_direct else target_branch.waiting(branch))
    if mode == "push":
        return Merging("push", remote, branch)
    return Merging("pull-request", remote, branch, command or pull_request.tool(ctx, remote))


def begin(ctx: Context) -> list[str]:
    """Look at what others have merged, and bring the branch of the run up to date; return sentences.

    Raises UsageError (the user's branch has commits that a pull request would lack), EnvSetupError (the
    remote cannot be reached).
    """
    merging = ctx.merging
    if merging.mode == "turns":
        return [*look(ctx)]
    if merging.mode in ("push", "pull-request"):
        with _turn(ctx):
            trouble = _fetch(ctx, merging)
        if trouble:
            raise EnvSetupError(trouble, "See that git reaches it, or run without --merge.")
    if merging.mode == "pull-request":
        own = target_branch.HEADS + target_branch.short(ctx.target or "").removeprefix(pull_request.OWN)
        lacking = ctx.main.text("rev-list", "--count", own, f"^{_tracking(merging)}", "--")
        if lacking != "0":
            name = target_branch.short(own)
            raise UsageError(
                f"{name} has {lacking} commits that {_there(merging)} lacks, and so would the work.",
                f"Push them first: {typed.git('push', merging.remote, name)}",
            )
    said = [*look(ctx)]
    if merging.mode == "local":
        # Nothing moves, so a merge that is under way is not waited for.
        return said
    with _turn(ctx):
        said += _catch_up(ctx)
        take_in(ctx)
    if trouble := bring(ctx):
        said.append(trouble)
    return said


def _catch_up(ctx: Context) -> list[str]:
    """Bring the branch that a run collects work on up to what it is for; return why not."""
    git, target, merging = ctx.main, ctx.target or "", ctx.merging
    if merging.mode not in ("branch", "pull-request"):
        return []
    base = target_branch.HEADS + target.removeprefix(target_branch.WAITING)
    theirs = git.ref(_tracking(merging) if merging.remote else base)
    ours = git.ref(target)
    if theirs is None or (ours is not None and git.is_ancestor(theirs, ours)):
        return []
    short = target_branch.short(target)
    if worktrees.holder(git, target):
        return [f"{short} is checked out, so it was not brought up to date."]
    message = f"Merge what was committed meanwhile into {short}\n"
    new = merge.join(git, ours, theirs, message) if ours else theirs
    if new is None:
        return [f"{short} conflicts with what was committed meanwhile: merge it there by hand."]
    # All of it may be merged, in other commits.
    is_merged = merging.remote and git.tree_of(new) == git.tree_of(theirs)
    git.set_ref(target, theirs if is_merged else new, ours or "")
    return []


def take_in(ctx: Context) -> None:
    """Merge into the target what others have pushed to its remote, so that the next check sees it.

    What conflicts, or cannot be fetched, is left: then the remote refuses the push, and says so. Called in
    the turn of a merge.
    """
    git, target, merging = ctx.main, ctx.target or "", ctx.merging
    if merging.mode != "push" or _fetch(ctx, merging):
        return
    ours, theirs = git.ref(target), git.ref(_tracking(merging))
    if ours is None or theirs is None or git.is_ancestor(theirs, ours):
        return
    message = f"Merge branch '{target_branch.short(merging.branch)}' of {merging.remote}\n"
    new = merge.join(git, ours, theirs, message)
    if new is not None:
        # The user's checkout may not be free for it now.
        with suppress(target_branch.MovedError):
            target_branch.carry_out(ctx, target_branch.Move(target, ours), new)


def bring(ctx: Context) -> str:
    """Push or propose what a run has merged, also what was refused before; return what went wrong."""
    if not ctx.merging.remote:
        return ""
    with _turn(ctx):
        return push(ctx) or _proposed(ctx)


def push(ctx: Context) -> str:
    """Push the finished work on the target to its remote, if that is asked for; return what went wrong."""
    merging, git = ctx.merging, ctx.main
    commit = _unpushed(ctx) if merging.mode == "push" else None
    if commit is None:
        return ""
    trouble = _send(ctx, merging, commit, merging.branch)
    if not trouble:
        git.set_ref(_tracking(merging), commit)
    return trouble


def _unpushed(ctx: Context) -> str | None:
    """Return the commit of the target with the finished work that the remote lacks; None if it lacks none.

    What the user has committed on top of it is left out, but for their merge with what the remote has.
    """
    done = {task.completed_commit for task in ctx.ask().search("completed")}
    git, target, tracking = ctx.main, ctx.target or "", _tracking(ctx.merging)
    theirs = git.ref(tracking)
    known = (f"^{theirs}",) if theirs else ()
    commits = git.text("rev-list", "--topo-order", target, *known, "--").split()
    newest = next((each for each in commits if each in done), None)
    if newest is None or theirs is None:
        return newest
    span = f"{newest}..{target}"
    above = git.text("rev-list", "--topo-order", "--reverse", "--ancestry-path", span).split()
    return next((each for each in (newest, *above) if git.is_ancestor(theirs, each)), newest)


def waits(ctx: Context) -> outcome.Waits | None:
    """Return which finished work the remote has not taken; None if it has all."""
    if ctx.merging.mode != "push" or _unpushed(ctx) is None:
        return None
    name, there, remote = target_branch.short(ctx.target or ""), _there(ctx.merging), ctx.merging.remote
    theirs_name = target_branch.short(ctx.merging.branch)
    push = typed.git("push", remote, name if name == theirs_name else f"{name}:{theirs_name}")
    words, steps = f"{there} lacks finished work of {name}", [push]
    theirs = ctx.main.ref(_tracking(ctx.merging))
    if theirs and not ctx.main.is_ancestor(theirs, ctx.target or ""):
        # Others have pushed, or the host has made the commits anew; then the rebase leaves them out.
        words = f"{there} and {name} have parted, and {there} lacks commits of finished work"
        steps = [typed.git("pull", "--rebase", remote, theirs_name), push]
        if ctx.main.branch() != ctx.target:
            # It rebases what is checked out.
            steps.insert(0, typed.git("switch", name))
    return outcome.Waits(words, "Push it when you can", " && ".join(steps))


def must_wait(ctx: Context, task: Task) -> bool:
    """Return whether others are to merge the work of `task`, and have not yet."""
    commit, base = task.begun.oid, task.begun.base or ""
    return ctx.merging.proposes and not _merged_as(ctx, commit, base, ())


def propose(ctx: Context, task: Task, said: Sequence[str]) -> outcome.Ended:
    """Halt `task`, whose work is on the branch of the run, until others have merged it; propose it."""
    commit, base = task.begun.oid, task.begun.base
    look_at = (*outcome.with_command(ctx.git, task), *said)
    why = _halt(ctx, task, None)
    with ctx.transaction() as tx:
        # Its intent stays until the attempt is being ended: without one the task would be a dead worker's.
        current = outcome.require_claim(tx, task)
        halted = transitions.halt(current._replace(look_at=look_at), why)
        tx.replace(halted)
        if mine := ctx.own_session(tx):
            # The branch may have been refused before.
            tx.replace_session(lifecycle.unhalted(mine))
        tx.log("WARN", why.words, ctx.session.number, task.id)
    reason = "The work waits until others have merged it."
    ended = requeue.for_user(ctx, halted, commit, why, reason, base)
    if trouble := _proposed(ctx):
        ctx.say(trouble)
    return ended


def _halt(ctx: Context, task: Task, known: pull_request.Proposal | None, trouble: str = "") -> Halt:
    where = known and (known.address or f"the branch {known.branch}")
    what = f"and the work waits until {_there(ctx.merging)} has it{f' ({where})' if where else ''}."
    what = f"but {trouble}" if trouble else f"{what} harness run looks again."
    return Halt(
        "MERGE",
        f"MERGE: the check passed, {what} If it is merged with "
        f"changes, the user types: {typed.harness('accept', task.id)}; to send it back to an agent: "
        f"{typed.harness('return', task.id, rest=CHANGE)}",
        () if not known or known.address is None else (known.address,),
    )


def _proposed(ctx: Context) -> str:
    """Push what waits for others, and open its pull request; return what went wrong."""
    git, merging = ctx.main, ctx.merging
    if not merging.proposes:
        return ""
    target = ctx.target or target_branch.waiting(merging.branch)
    tip, theirs = git.ref(target), git.ref(_tracking(merging))
    waiting = _waiting(ctx)
    if tip is None or not waiting or (theirs and git.is_ancestor(tip, theirs)):
        return ""
    if merging.onto:
        # It was pushed in the turn of the merge.
        address = next((task.halt_about[0] for task in waiting if task.halt_about), None)
        known = pull_request.Proposal(target_branch.short(merging.onto), tip, address)
    else:
        name = target_branch.short(merging.branch)
        known = pull_request.read(git, target) or pull_request.Proposal(f"{pull_request.OWN}{name}-{tip[:8]}")
    known, trouble = _offered(ctx, target, tip, known, waiting)
    with ctx.transaction() as tx:
        for task in waiting:
            current = tx.task(task.id)
            if current and current.halt_kind == "MERGE":
                tx.replace(transitions.halt(current, _halt(ctx, current, known, trouble)))
    return trouble


def _offered(
    ctx: Context, target: str, tip: str, known: pull_request.Proposal, waiting: Sequence[Task]
) -> tuple[pull_request.Proposal, str]:
    """Push `tip` and open its pull request, where that is not done; return what is known, and what failed."""
    git = ctx.main
    pull_request.write(git, target, known)
    if known.pushed != tip:
        if trouble := _send(ctx, ctx.merging, tip, target_branch.HEADS + known.branch):
            return known, trouble
        known = known._replace(pushed=tip)
        pull_request.write(git, target, known)
    if known.address is None:
        found = pull_request.opened(ctx, ctx.merging, known.branch, waiting)
        if found.trouble:
            return known, found.trouble
        known = known._replace(address=found.address)
        pull_request.write(git, target, known)
    return known, ""


def look(ctx: Context) -> Iterator[str]:
    """Complete the tasks whose work others have merged; yield a sentence for each, or why it is not known."""
    waiting = _waiting(ctx)
    if not waiting:
        return
    merging = ctx.merging
    if not merging.remote and (found := target_branch.upstream(ctx.main, ctx.target or "")):
        merging = Merging("local", *found)
    with _turn(ctx):
        if merging.remote and (trouble := _fetch(ctx, merging)):
            yield f"What others have merged is not known. {trouble}"
            return
        kept = [(task, commit) for task in waiting if (commit := _kept(ctx, task))]
        there = ctx.at(ctx.main)
        there.merging = merging
        ends = [commit for _, commit in kept]
        merged = [
            (task, at)
            for task, commit in kept
            if (at := _merged_as(there, commit, (task.handback and task.handback.base) or "", ends))
        ]
        theirs = {task.id for task, _ in merged}
        collecting = merging._replace(branch=target_branch.waiting(merging.branch))
        collected = _collected(there, collecting, [each for each in kept if each[0].id not in theirs])
        said = _complete(ctx, merged, _there(merging), "merged by others")
        said += _complete(ctx, collected, _there(collecting), f"on {_there(collecting)}")
        ours = ctx.target or ""
        ours = ours if ours.startswith(target_branch.WAITING) else target_branch.waiting(ours)
        if merged and merging.mode == "turns":
            _propose_anew(ctx)
        elif merged and merging.remote and ctx.main.ref(ours):
            # What is still to come needs a pull request of its own.
            ctx.main.delete_ref(pull_request.ref_of(ours))
            there.target, there.merging = ours, merging._replace(mode="pull-request")
            yield from _catch_up(there)
    yield from said


def _collected(ctx: Context, collecting: Merging, kept: Kept) -> Kept:
    """Return those of `kept` that were to be completed on the branch that runs collect on, if it has them.

    A chat was killed between its push and that.
    """
    mine = [each for each in kept if each[0].handback and each[0].handback.merge == "branch"]
    if not mine or not collecting.remote or _fetch(ctx, collecting):
        return []
    tip = ctx.main.ref(_tracking(collecting))
    return [(task, at) for task, at in mine if tip and ctx.main.is_ancestor(at, tip)]


def _complete(ctx: Context, found: Kept, place: str, how: str) -> list[str]:
    """Complete the tasks whose work `place` has, as the log says by `how`; return a sentence for each."""
    said = list[str]()
    if not found:
        return said
    with ctx.transaction() as tx:
        for task, commit in found:
            current = tx.task(task.id)
            if not current or current.halt_kind != "MERGE" or not arrows.may("attest", current):
                continue
            tx.replace(transitions.attest(current, now=tx.now, commit=commit))
            words = f"(commit {commit[:12]}, {how})"
            tx.log("Completed", words, task=task.id)
            said.append(f"{task.id} is completed: {place} has its work")
    return said


def _propose_anew(ctx: Context) -> None:
    """Let what is still to come have a pull request of its own."""
    with ctx.transaction() as tx:
        for task in tx.halted():
            if task.halt_kind == "MERGE":
                tx.replace(transitions.halt(task, _halt(ctx, task, None)))


def _waiting(ctx: Context) -> list[Task]:
    return [task for task in ctx.ask().halted() if task.halt_kind == "MERGE"]


def _kept(ctx: Context, task: Task) -> str | None:
    ref = task.kept
    if ref and ctx.shared and ctx.main.ref(ref) is None:
        # A list of one machine needs none of it.
        from harness_lib.attempts import snapshots  # noqa: PLC0415

        snapshots.bring(ctx, task, ref)
    return ctx.main.ref(ref) if ref else None


def _merged_as(ctx: Context, commit: str, base: str, ends: Sequence[str]) -> str | None:
    """Return the commit with which the branch of the remote got what `commit` changes from `base`.

    That is `commit` itself, or one with the same changes; None if it does not have them. `ends` are later
    commits of the same pull request: all of it may have become one commit.
    """
    git = ctx.main
    tip = git.ref(_tracking(ctx.merging) if ctx.merging.remote else ctx.target or "")
    if tip is None or not git.exists(commit):
        return None
    if base in ("", commit):
        # It has changed nothing that those before it in the pull request have not.
        base = merge.parted(git, commit, tip) or commit
    later = [end for end in ends if end != commit and git.is_ancestor(commit, end)]
    found = next(
        filter(None, (pull_request.brought_by(git, tip, end, base) for end in (commit, *later))), None
    )
    return commit if found and git.is_ancestor(commit, tip) else found


def _send(ctx: Context, merging: Merging, commit: str, branch: str) -> str:
    done, output = project.call(ctx, typed.git("push", merging.remote, f"{commit}:{branch}"))
    if done:
        return ""
    name, why = target_branch.short(branch), target_branch.gist(output)
    return f"{merging.remote} has not taken {name}: {why}. {pull_request.AGAIN}"


def _fetch(ctx: Context, merging: Merging) -> str:
    spec = f"+{merging.branch}:{_tracking(merging)}"
    done, output = project.call(ctx, typed.git("fetch", "--quiet", "--no-tags", merging.remote, spec))
    return "" if done else f"{_there(merging)} cannot be fetched: {target_branch.gist(output)}."


def _tracking(merging: Merging) -> str:
    return f"refs/remotes/{merging.remote}/{target_branch.short(merging.branch)}"


def _there(merging: Merging) -> str:
    name = target_branch.short(merging.branch)
    return f"{merging.remote}/{name}" if merging.remote else "the branch"


@contextmanager
def _turn(ctx: Context) -> Iterator[None]:
    """Wait until no worker merges, as what follows moves the same branches."""
    with flock.turn(ctx.main.common_dir / LINE, project.CALL_SECONDS, lambda: None):
        yield
