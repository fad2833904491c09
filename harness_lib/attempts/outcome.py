"""Commit the work of an attempt whose check has passed, and record how an attempt has ended.

Crash model: an `intent` in the state says what is about to happen in git before it happens, and is removed
together with the outcome in one write.
Killed anywhere between, `interrupted.resume` does the rest: every git step ends in the same place when it is
run again.

A checkout in which the user's merge, rebase or the like is in progress is not touched: ending it could lose
work. A work tree of a run belongs to its attempt, so an operation in progress there was begun by the agent,
and is ended with the attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from harness_lib import timestamps, typed
from harness_lib.attempts import rescue_refs, target_branch
from harness_lib.core import lifecycle, ownership, quoting
from harness_lib.core.context import Context
from harness_lib.errors import CheckEditedError, LeaseLostError, RefusedError
from harness_lib.rules import rechecks, recovery, transitions
from harness_lib.rules.attempts import Ending, Halt
from harness_lib.state.api import Questions
from harness_lib.system.git import advance, history, locks, merge, status, submodules, trees
from harness_lib.system.git.repository import Git
from harness_lib.system.place import find_root
from harness_lib.task import Category, Handback, Intent, StopReason, Task, Validation
from harness_lib.text import Strings, counted, safe_name, some_quoted

SHORT = 12
# A check that is edited while it runs decides nothing, and the new one runs: so often.
EDITS = 3
SUBJECT_LENGTH = 200
# It tells in a commit of which claim of which task it is the work, if machines share the list.
TRAILER = "Harness-Task"
_YOURS = (find_root.INIT_SCRIPT, find_root.SETTINGS)
NOTHING = (
    "Nothing was committed for {id}: no file that git takes differs from where the attempt began. "
    "Its check passes on what git ignores, on what was untracked before or is not committed in a submodule, "
    "or it passed before any work."
)


class Ended(NamedTuple):
    """How an attempt ended: the task afterwards, the reason to stop if any, the rescue ref, and warnings.

    What to review in completed work is not among the warnings: it is stored, as `task.look_at`.
    `rolled_back`: the work tree is at the base again, if the attempt failed; without the base it cannot be.
    `files`: how many files the commit of a completed task changes, where that is known.
    """

    task: Task
    stop: StopReason | None
    rescue: str | None = None
    warnings: Strings = ()
    rolled_back: bool = True
    files: int | None = None

    @property
    def said(self) -> Strings:
        """All warnings and sentences to review, in the order in which they are shown."""
        return (*self.task.look_at, *self.warnings)


class Verdict(NamedTuple):
    """Why an attempt is rolled back, and how it ends; see `requeued` for work that is to continue.

    `halt`: why nobody may try it again yet. `handback`: what the next agent must know to go on with this
    work; its `rescue` is filled in when the work is kept, unless it names earlier work.
    `validation`: the check that says so, if it is one.
    """

    category: Category
    message: str
    ending: Ending = Ending.FAILED
    halt: Halt | None = None
    handback: Handback | None = None
    validation: Validation | None = None


class Waits(NamedTuple):
    """Finished work that waits for somebody: what waits and why, what to do, and the command for it."""

    what: str
    cure: str
    command: str

    def __str__(self) -> str:
        return f"{self.what}. {self.cure}: {self.command}"


def requeued(message: str, handback: Handback | None) -> Verdict:
    """Return the verdict on work that the next agent continues; without `handback` there is none."""
    return Verdict("SESSION_TIMEOUT", message, Ending.REQUEUED, handback=handback)


def words_of_completed(ended: Ended) -> str:
    """Return the sentence that says what was committed for a completed task."""
    task = ended.task
    if task.completed_commit == task.started_at_commit:
        return f"{task.id} is completed; nothing was committed."
    here = " on this branch only" if rechecks.was_completed_elsewhere(task) else ""
    if rechecks.was_completed_on_no_branch(task):
        here = " on no branch"
    files = f", {counted(ended.files, 'file')}" if ended.files is not None else ""
    return f"{task.id} is completed{here} (commit {(task.completed_commit or '')[:12]}{files})."


def require_claim(questions: Questions, task: Task, checked: Validation | None = None) -> Task:
    """Return the task as it is now. Raises LeaseLostError if its claim is no longer that of `task`.

    Raises CheckEditedError if `checked`, which has run, is no longer its check.
    """
    current = questions.task(task.id)
    if not current or not recovery.is_same(current, task):
        how = f"it is {current.status} by now" if current else "it was removed"
        holder = f"{current.claimed_by} has it" if current and current.status == "in_progress" else how
        raise LeaseLostError(
            f"The lease of {task.id} was lost: {holder}. Nothing was recorded.",
            ownership.keep_work(task.id),
        )
    if checked not in (None, current.validation):
        raise CheckEditedError(
            f"The check of {task.id} was edited while it ran. Nothing was recorded.",
            "Type the same command again: the new check decides.",
        )
    return current


def require_no_operation(git: Git, task: Task | None = None, then: str = "") -> None:
    """Raise RefusedError if a git operation is in progress, or files have unresolved conflicts.

    The work tree of a run belongs to its `task`. `then`: what to type once it has ended (`harness finish`).
    """
    if task is not None and task.target is not None:
        return
    operation, unmerged = status.under_way(git), status.unmerged(git)
    if operation is None and not unmerged:
        return
    names = some_quoted(unmerged)
    what = f"Conflicts in {git.top} are not resolved: {names}."
    way = "resolve them and mark each file with git add"
    if operation is not None:
        conflicts = f", with conflicts in {names}" if unmerged else ""
        what = f"A {operation} is under way in {git.top}{conflicts}."
        way = f"finish it with git ({status.to_end(operation)}; git status shows the other ways)"
    again = then or typed.harness("finish", *([task.id] if task else []))
    raise RefusedError(
        f"{what} Nothing was changed, and no attempt was counted.",
        f"If you are an agent and did not begin it, ask the user. Otherwise {way}, then type: {again}",
    )


@contextmanager
def held(git: Git, task: Task) -> Iterator[None]:
    """Hold the lock on the work tree of `task`, once no other git command and no operation of the user does.

    Raises HeldError (git is locked), RefusedError (the user's merge or the like is under way).
    """
    with locks.hold(git):
        advance.require_unlocked(git)
        require_no_operation(git, task)
        yield


def commit_object(ctx: Context, head: str, task: Task, tree: str) -> str:
    """Return the commit of the attempt's `tree` on `head`; `head` itself if nothing is left to commit.

    Files of harness itself and caches are left out, even if git tracks them. The init script and the settings
    are the user's to commit: in a chat such a commit may be the user's, so it stays.
    """
    git, base = ctx.git, task.started_at_commit
    content = trees.without(git, tree, rescue_refs.still_untracked(git, head, task))
    if base and base != head:
        caches = status.caches_above(git, history.added(git, base, head))
        ours = [path for path in ctx.excluded_paths if task.target or path.rpartition("/")[2] not in _YOURS]
        # In a run nothing of the attempt is on a branch of the user's, which its agent may have merged.
        users = ["--branches"] if task.target else []
        own = history.without(git, base, head, (*ours, *caches), ours, users)
        if own != head:
            content = trees.with_from(git, content, own, (*ctx.excluded_paths, *caches))
            head = own
    parents = [head, *status.merge_heads(git)]
    if len(parents) > 1 or content != git.tree_of(head):
        return git.commit(content, parents, message(ctx, task))
    if not ctx.shared or head == base:
        return head
    # A commit of the agent's gets the trailer that machines of one list look for.
    parents = git.text("log", "-1", "--format=%P", head).split()
    return merge.like(git, head, git.tree_of(head), parents, _trailed(ctx, task, git.message(head)))


def message(ctx: Context, task: Task) -> str:
    """Return the message of the task's commit: its id, by which recovery finds it, and its title.

    In a list of many machines it also has a line that names the claim.
    """
    begin = f"[{task.id}] "
    # `git log` shows the title in a terminal.
    return _trailed(ctx, task, f"{begin}{quoting.one_line(task.title, SUBJECT_LENGTH - len(begin))}\n")


def _trailed(ctx: Context, task: Task, text: str) -> str:
    if not ctx.shared:
        return text
    claim = f"{list_name(ctx)}/{safe_name(task.id)}/{task.fence}"
    return f"{text.rstrip()}\n\n{TRAILER}: {claim}\n"


def list_name(ctx: Context) -> str:
    """Return the name of a list that machines share, as one part of a ref's name."""
    shared = ctx.shared
    assert shared is not None, "BUG: a list of one machine has no name."
    return safe_name(shared.name)


def begin(ctx: Context, task: Task, oid: str, head: str, onto: str | None = None) -> Task:
    """Return the task, with the intent to move HEAD from `head` to `oid`, the commit of its checked work.

    Raises RefusedError (the check was edited), LeaseLostError; then nothing is recorded.
    `onto`: what the work goes on top of, if that is not what the attempt began with.
    """
    # The legacy protocol records a short id.
    base = ctx.git.commit_called(task.started_at_commit) or task.started_at_commit
    with ctx.transaction("tasks") as tx:
        mine = require_claim(tx, task, task.validation)._replace(started_at_commit=base)
        checked = as_checked(mine, task, oid)
        moving = transitions.begin_commit(checked, now=tx.now, head=head, commit=oid, base=onto)
        tx.replace(moving)
    return moving


def as_checked(current: Task, task: Task, oid: str) -> Task:
    """Return `current` with what the check of `task` has told: how it is done, and what to look at.

    With a warning if `oid`, its attempt's commit, is the one that it began on.
    """
    is_known = task.outcome == "already_done" or oid != current.started_at_commit
    look_at = task.look_at if is_known else (*task.look_at, NOTHING.format(id=task.id))
    return current._replace(outcome=task.outcome, look_at=look_at)


def carry_out(ctx: Context, task: Task) -> Ended:
    """Move the branch to the commit that the task's intent names, and record the task as completed.

    Raises HeadMovedError; then nothing is recorded.
    """
    git, oid = ctx.git, task.begun.oid
    try:
        is_as_committed = advance.move_head_and_index(git, oid, task.begun.head)
    except advance.HeadMovedError as error:
        drop_intent(ctx, task)
        raise advance.HeadMovedError(
            f"{error.message} before the check of {task.id} ran. Nothing was recorded.",
            f"See who committed or switched the branch: git log. If the check does, {task.id} needs another "
            f"one: {typed.give_check(task.id)}. Then type: {typed.harness('finish', task.id)}",
        ) from error
    said = _moved_branch(git, task)
    if not is_as_committed:
        said += undo_check(ctx, task, oid)
    said += _inside_submodules(ctx, task)
    ended = completed(ctx, task, [*said, *rescue_refs.changed_before(git, task)])
    rescue_refs.drop_before(git, task)
    return ended


def _inside_submodules(ctx: Context, task: Task) -> list[str]:
    """Return a warning if submodules have changes that no commit has: the check has seen these, too."""
    links = submodules.staged(ctx.git) if (ctx.git.top / submodules.MODULES).exists() else ()
    changed = [path for path in ctx.changes().tracked if path in links] if links else []
    if not changed:
        return []
    left = f"{task.id} left changes inside of {some_quoted(changed)}, which its commit does not have"
    return [f"{left}: commit or undo them there ({typed.git('-C', changed[0], 'status')})"]


def _moved_branch(git: Git, task: Task) -> list[str]:
    branch = git.branch()
    if not task.gate or (branch and branch == task.gate.branch):
        return []
    claimed = rescue_refs.branch(git, task)
    if claimed is None:
        return [] if branch or task.target else _on_no_branch(git, task)
    if branch == claimed:
        return []
    tip = git.ref(claimed)
    if tip and git.is_ancestor("HEAD", tip):
        return []
    claimed_on, current = target_branch.short(claimed), target_branch.short(branch)
    there = current if branch else (git.head() or "")[:SHORT]
    if tip:
        steps = [typed.git("checkout", claimed_on), typed.git("merge", there)]
    else:
        steps = [typed.git("branch", claimed_on, there)]
    where = f"{task.id} {rechecks.CLAIMED_ON} {claimed_on} and completed on {current}"
    return [f"{where}, so {claimed_on} does not have it. Bring it over: {' && '.join(steps)}"]


def _on_no_branch(git: Git, task: Task) -> list[str]:
    """Return a warning if no branch has the work of `task`: some hosts give an agent a detached HEAD."""
    commit = task.begun.oid
    places = ("refs/heads", "refs/remotes", "refs/tags")
    if git.lines("for-each-ref", "--count=1", "--contains", commit, *places):
        return []
    where = f"{task.id} {rechecks.ON_NO_BRANCH}, as HEAD is detached in {git.top}"
    keep = typed.git("branch", safe_name(task.id), commit[:SHORT])
    return [f"{where}: once this work tree is removed, git deletes its commit some day. Keep it: {keep}"]


def undo_check(ctx: Context, task: Task, content: str) -> list[str]:
    """Restore what the check changed of `content`, the commit or tree before it; return warnings.

    Files that it has added stay.
    """
    git = ctx.git
    with locks.hold(git):
        standing = ctx.capture()
        changed = advance.to_undo(git, standing, content)
        if not changed:
            return []
        # The user may have edited these files while the check ran: keep a copy of them first.
        name, what = rescue_refs.attempt_ref(task, "-check"), f"after the check of {task.id}"
        ref = rescue_refs.keep(git, name, standing, git.head(), what)
        undone = advance.undo(git, changed)
    said = f"{counted(len(undone), 'tracked file')} not as committed after the check of {task.id}; put back"
    return [f"{said}, the change is kept: {typed.harness('rescue', 'show', ref)}"]


def completed(ctx: Context, task: Task, said: Sequence[str] = ()) -> Ended:
    """Record the task, whose commit is made, as completed, with all that the user should review.

    That is what its intent was begun with (see `complete.look_at`), each sentence with the command that shows
    the work, and what the git steps have `said` since.
    """
    look_at = (*with_command(ctx.git, task), *said)
    commit = task.begun.oid
    with ctx.transaction("tasks") as tx:
        done = transitions.complete(require_claim(tx, task), now=tx.now, look_at=look_at)
        tx.replace(done)
        tx.on_commit(partial(ownership.forget_claim, ctx, task))
        for repaired in rechecks.red(tx.search("completed")) if done.repairs is not None else ():
            # Its own check has passed, so it is red no more.
            if rechecks.whole_key(repaired) == rechecks.whole_key(done):
                tx.replace(transitions.recheck(repaired, None))
        tx.log("Completed", f"(commit {commit[:SHORT]})", ctx.session.number, task.id)
        for sentence in look_at:
            tx.log("WARN", sentence, ctx.session.number, task.id)
        return Ended(done, lifecycle.after_attempt(tx, ctx))


def with_command(git: Git, task: Task) -> list[str]:
    """Return the sentences about the work of `task`, each with the command that shows this work."""
    intent = task.begun
    commit, base = intent.commit, intent.base
    if not task.look_at or commit is None or base is None or commit == base or not git.exists(base):
        return list(task.look_at)
    is_one = git.parent(commit) == base
    span = f"{base[:SHORT]}..{commit[:SHORT]}"
    show = typed.git("show", commit[:SHORT]) if is_one else typed.git("log", "--patch", span)
    return [f"{sentence} ({show})" for sentence in task.look_at]


def drop_intent(ctx: Context, task: Task) -> Task:
    """Record that the commit of the claimed `task` was not made. Raises LeaseLostError."""
    with ctx.transaction("tasks") as tx:
        dropped = transitions.drop_intent(require_claim(tx, task))
        tx.replace(dropped)
    return dropped


def clear_dead_locks(git: Git, intent: Intent, refs: Sequence[str] = ()) -> list[str]:
    """Remove the lock files of a git that was killed while carrying out `intent`; return warnings.

    `refs`: further refs that it may have locked.
    """
    since = timestamps.parse(intent.at).timestamp()
    refs = [*(ref for ref in (intent.rescue, intent.ref) if ref), *refs]
    removed = locks.remove_dead_locks(git, since, refs)
    return [f"Removed {path.name}, which a killed git of harness had left behind." for path in removed]
