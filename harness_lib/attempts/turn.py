"""Merge into the branch of the remote, one machine at a time; and bring the work of a chat there.

The database says whose turn it is, and for how long. The fence is in git: a commit under `turn/<branch>` in
the remote names the holder, and the branch is pushed only together with the next such commit, each on top of
what the holder knows. Whoever comes late is refused by the remote itself, even if the branch has not moved.

The work of a chat stands in the user's checkout. A claim begins where the remote's branch is. A finish takes
the turn, puts the work on top of what others have merged meanwhile, runs the check there, and pushes it; then
the task is completed and the checkout follows. Work that conflicts stays where it is, in progress, and the
agent is told what to do.
Where the branch takes pull requests only, the work goes to the branch that runs collect on, and the checkout
back to where the attempt began: the task waits until others have merged it.

Crash model: the list names the commit of each task before it is pushed. Whoever comes after a crash takes the
turn, fetches, and asks whether the branch has that commit.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from harness_lib import typed
from harness_lib.attempts import (
    check,
    committed,
    outcome,
    publish,
    remote,
    rescue_refs,
    snapshots,
    target_branch,
)
from harness_lib.attempts.remote import There
from harness_lib.checks import Checked
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import AwayError, EnvSetupError, HarnessError, HeldError, RefusedError
from harness_lib.state.api import Shared
from harness_lib.system.git import advance, calls, locks, merge, trees
from harness_lib.task import Task

SECONDS = check.KEPT_SECONDS
POLL_SECONDS = 0.3
# How often a holder that was replaced meanwhile, or whose branch has moved, tries again.
TRIES = 50


class Turn:
    """The turn of this process to merge; `keep_claim` is called while it waits for it, and may raise."""

    def __init__(self, ctx: Context, there: There, shared: Shared, keep_claim: Callable[[], object]) -> None:
        self.there, self._ctx, self._shared, self.keep_claim = there, ctx, shared, keep_claim
        self._holder = committed.new_holder(ctx)
        self._seconds = min(SECONDS, ctx.lease_seconds)
        self._mine = self._at = ""

    def begin(self) -> str:
        """Take the turn, or keep it, and return the branch's commit. Raises HeldError, AwayError."""
        for _ in range(TRIES):
            fence = self._wait()
            tip = self.there.require()
            # Another turn may have come between.
            if self._is_marked(fence):
                self._at = self.there.git.ref(self.there.tracking) or ""
                self.there.follow(tip)
                return tip
        raise HeldError(f"The turn of {self.there.shown} was lost {TRIES} times.", "Try: harness recover")

    def keep(self) -> None:
        """Keep the turn while checks run; if it is lost, the remote will refuse the push."""
        with suppress(HarnessError):
            self._shared.take_turn(self.there.branch, self._holder, self._seconds)

    def leave(self) -> None:
        """Let the next machine have the turn; if that fails, it ends by itself."""
        with suppress(HarnessError):
            self._shared.leave_turn(self.there.branch, self._holder)

    def move(self, move: target_branch.Move, new: str) -> None:
        """Push `new` to the branch, which is where `begin` has found it; `new` is on top of `move.tip`.

        Raises MovedError (it is elsewhere, or the turn was lost), HeldError (it is not known whether the
        remote has taken it), EnvSetupError (it refuses it).
        """
        ctx, there, git, old = self._ctx, self.there, self.there.git, self._at
        if not there.base and old != move.tip:
            raise target_branch.MovedError
        after = self._mark(f"harness: {self._holder} has merged {new}")
        ref = there.ref("turn", target_branch.short(there.branch))
        answer = there.push(
            "--atomic",
            f"--force-with-lease={there.branch}:{old}",
            f"--force-with-lease={ref}:{self._mine}",
            there.remote,
            f"{new}:{there.branch}",
            f"{after}:{ref}",
            hooks=True,
        )
        if answer.done:
            git.set_ref(there.tracking, new)
            git.set_ref(self._copy, after)
            self._mine = after
            self.there.follow(new)
            return
        before = self._mine
        tip = there.require()
        if git.is_ancestor(new, tip) and git.ref(self._copy) in (after, before):
            # The answer was lost on the way back.
            self.there.follow(tip)
            return
        is_same = (git.ref(there.tracking) or "") == old and git.ref(self._copy) == before
        if is_same and not self._is_gone(ref):
            remote.require_refusal(there, answer)
            verb = "run" if ctx.target else "finish"
            propose = typed.harness(verb, "--merge", "pull-request")
            other = "" if there.base else f". If only others may change it: {propose}"
            raise EnvSetupError(
                f"{there.remote} has not taken {target_branch.short(there.branch)}: {answer.why}. "
                "The checked work is kept.",
                f"See why the remote refuses it, then: {typed.harness(verb)}{other}",
            )
        raise target_branch.MovedError

    @property
    def _copy(self) -> str:
        return self.there.copy("turn", target_branch.short(self.there.branch))

    def _wait(self) -> int:
        """Return the fence of our turn; a chat waits a while for the database. Raises AwayError."""
        clock = self._ctx.clock
        until = clock.monotonic() + (0 if self._ctx.target else remote.PATIENCE_SECONDS)
        while True:
            try:
                fence = self._shared.take_turn(self.there.branch, self._holder, self._seconds)
            except AwayError:
                if clock.monotonic() >= until:
                    raise
            else:
                if fence is not None:
                    return fence
                self.keep_claim()
            # Machines that began to wait together do not ask together.
            clock.sleep(POLL_SECONDS * (0.5 + random.random()))  # noqa: S311

    def _is_marked(self, fence: int) -> bool:
        """Return whether the remote has our mark, which it gets now if another one is there.

        Raises HeldError (it cannot take it now), EnvSetupError (it refuses it).
        """
        there, git = self.there, self.there.git
        present = git.ref(self._copy) or ""
        if self._mine and present == self._mine:
            return True
        mine = self._mark(f"harness: turn {fence} of {target_branch.short(there.branch)}, {self._holder}")
        ref = there.ref("turn", target_branch.short(there.branch))
        answer = there.push(f"--force-with-lease={ref}:{present}", there.remote, f"{mine}:{ref}")
        if answer.done:
            git.set_ref(self._copy, mine)
        else:
            there.require()
            if (git.ref(self._copy) or "") == present and not self._is_gone(ref):
                remote.require_refusal(there, answer)
                raise EnvSetupError(
                    f"{there.remote} does not take the ref {ref}: {answer.why}.",
                    f"Machines of one list need a remote that takes refs below {there.ref()}/. If it takes "
                    "branches only, join the list again: that finds it out.",
                )
        self._mine = mine if git.ref(self._copy) == mine else ""
        return bool(self._mine)

    def _is_gone(self, ref: str) -> bool:
        """Return whether the remote has lost the mark that we know: it was made anew, or somebody removed it.

        Then we know of none from now on. Raises RemoteAwayError.
        """
        git = self.there.git
        if git.ref(self._copy) is None or self.there.listed(self.there.remote, ref):
            return False
        git.delete_ref(self._copy)
        return True

    def _mark(self, message: str) -> str:
        git = self.there.git
        return git.commit(git.empty_tree(), [self._mine] if self._mine else [], f"{message}\n")


@contextmanager
def taken(ctx: Context, there: There, keep_claim: Callable[[], object]) -> Iterator[Turn]:
    """Yield a turn that begins with its `begin`, and leave it after the block."""
    shared = ctx.shared
    assert shared is not None, "BUG: a list of one machine has no turns."
    turn = Turn(ctx, there, shared, keep_claim)
    check.kept_along.append(turn.keep)
    try:
        yield turn
    finally:
        check.kept_along.remove(turn.keep)
        turn.leave()


def begin_chat(ctx: Context) -> None:
    """Bring the caller's branch to where the remote's is, before a claim.

    Raises RefusedError (it has commits of its own, or a file is in the way), HeldError, EnvSetupError.
    """
    there, git = remote.of(ctx), ctx.git
    tip, head = there.require(), git.head()
    if head in (None, tip) or ctx.changes().tracked:
        # Without a commit, or with changes, the claim itself refuses.
        return
    if not git.is_ancestor(head, tip):
        raise RefusedError(
            f"Your branch has commits that {there.shown} lacks; the work of a task would bring them along.",
            f"Bring both together: {typed.git('pull', '--rebase', there.remote)} && {typed.git('push')}",
        )
    try:
        with locks.hold(git):
            git.run("merge", "--ff-only", "--quiet", tip)
    except calls.GitError as error:
        raise RefusedError(
            f"Your branch could not follow {there.shown}: {error.stderr}", f"See: {typed.git('status')}"
        ) from error


def look(ctx: Context) -> list[str]:
    """Complete the tasks whose work others have merged; return a sentence for each."""
    view = ctx.at(ctx.git)
    view.merging = publish.of(ctx, target_branch.current(ctx.git), "local", "")
    view.target = target_branch.waiting(view.merging.branch)
    return [*publish.look(view)]


def finish_chat(ctx: Context, task: Task, oid: str, head: str) -> outcome.Ended:
    """Push `oid`, the checked work of `task` on `head`, and record the task as completed.

    Work that cannot be merged as it is stays in progress. Raises what `outcome.held` does, and HeldError:
    the remote does not answer.
    """
    there = remote.of(ctx, task)
    with taken(ctx, there, partial(check.renew, ctx, task)) as mine:
        for _ in range(TRIES):
            tip = mine.begin()
            picked = _on_top(ctx, there, task, oid, tip)
            if picked.conflicts:
                return _stays(ctx, task, _conflict(there, picked.conflicts))
            if not there.base and (in_the_way := _in_the_way(ctx, oid, picked.tip)):
                return _stays(ctx, task, _is_in_the_way(there, in_the_way))
            if ctx.git.tree_of(picked.tip) != ctx.git.tree_of(oid):
                checked = _check(ctx, task, picked.tip)
                if not checked.passed:
                    return _stays(ctx, task, _fails_there(there, checked))
            with outcome.held(ctx.git, task):
                if ctx.git.head() != head:
                    again = f"Type it again: {typed.harness('finish', task.id)}"
                    raise RefusedError("HEAD has moved while the check ran.", again)
                onto = tip if there.base else None
                moving = outcome.begin(ctx, task, picked.tip, head, onto)
            try:
                mine.move(target_branch.Move(there.branch, tip), picked.tip)
            except target_branch.MovedError:
                outcome.drop_intent(ctx, task)
                continue
            except EnvSetupError:
                # The remote has refused it: nothing is under way.
                outcome.drop_intent(ctx, task)
                raise
            if there.base:
                mine.leave()
                return _propose(ctx, moving)
            return _carry_out(ctx, moving, there, oid)
    raise HeldError(f"{there.shown} moved {TRIES} times meanwhile.", "Type it again.")


def resume_chat(ctx: Context, task: Task) -> outcome.Ended:
    """Finish what a killed process has begun to push, or let it be finished anew."""
    there = remote.of(ctx, task)
    with taken(ctx, there, partial(check.renew, ctx, task)) as mine:
        mine.begin()
        if remote.found(there, task) is not None:
            if there.base:
                mine.leave()
                return _propose(ctx, task)
            return _carry_out(ctx, task, there)
    outcome.drop_intent(ctx, task)
    return _stays(ctx, task, f"A command was killed before {there.shown} had the work.")


def _propose(ctx: Context, task: Task) -> outcome.Ended:
    """Let the checkout go back to where the attempt began, and others merge the work, if they are to.

    Whoever merges on this machine may have what `publish.look` waits for, and wait for the turn.
    """
    if ctx.merging.proposes:
        # Once others have merged a pull request, what is still to come needs another one.
        for sentence in publish.look(ctx):
            ctx.say(sentence)
        return publish.propose(ctx, task, ())
    ended = publish.propose(ctx, task, ())
    # This completes what is on the branch that runs collect on, as the next look does after a kill.
    looked = [*publish.look(ctx)]
    now = ctx.store.ask_now().task(task.id) if looked else None
    return ended._replace(task=now or ended.task)


def _on_top(ctx: Context, there: There, task: Task, oid: str, tip: str) -> merge.Picked:
    if there.git.is_ancestor(tip, oid):
        return merge.Picked(oid)
    return merge.pick(ctx.git, oid, tip, outcome.message(ctx, task), task.started_at_commit or tip)


def _in_the_way(ctx: Context, oid: str, new: str) -> list[str]:
    """Return the files of the checkout that git does not know, where others have merged a file."""
    git = ctx.git
    new_paths = [
        path for path, (old, _) in trees.changed(git, git.tree_of(oid), git.tree_of(new)).items() if not old
    ]
    return [path for path in new_paths if os.path.lexists(git.top / path)]


def _check(ctx: Context, task: Task, content: str) -> Checked:
    with committed.beside(ctx, content) as clean:
        passed = check.run(clean, task, suffix="-merged")
    if passed.passed and task.validation.hidden:
        return committed.run_held_out(ctx, task, content, suffix="-merged")
    return passed


def _carry_out(ctx: Context, task: Task, there: There, checked: str | None = None) -> outcome.Ended:
    """Let the checkout follow, and record the task, whose commit is on the branch, as completed.

    `checked` is its content when the check passed, if that is known.
    """
    git, new, head = ctx.git, task.begun.oid, task.begun.head
    said: list[str] = []
    try:
        with locks.hold(git):
            if not advance.move_head_and_index(git, new, head):
                changed = ctx.changes().tracked
                present = ctx.capture()
                if checked and not set(changed).intersection(trees.changed(git, present, checked)):
                    # It only lacks what others have merged.
                    advance.undo(git, advance.to_undo(git, present, new))
                else:
                    said = outcome.undo_check(ctx, task, new)
    except (advance.HeadMovedError, HeldError):
        said = [f"{task.id} is on {there.shown}; your checkout is elsewhere and was left alone."]
    ended = outcome.completed(ctx, task, [*said, *rescue_refs.changed_before(git, task)])
    rescue_refs.drop_before(git, task)
    snapshots.drop(there, task)
    return ended


def _stays(ctx: Context, task: Task, reason: str) -> outcome.Ended:
    with ctx.transaction() as tx:
        current = outcome.require_claim(tx, task)
        tx.log("WARN", reason, ctx.session.number, task.id)
    return outcome.Ended(current, None, warnings=(reason,))


def _conflict(there: There, files: Sequence[str]) -> str:
    names = quoting.named(files)
    pull = typed.git("pull", "--no-rebase", there.remote, target_branch.short(there.branch))
    return (
        f"The work passed its check, but conflicts with what was merged meanwhile, in {names}. "
        f"Commit it here, then merge that and resolve it: {pull}."
    )


def _fails_there(there: There, checked: Checked) -> str:
    pull = typed.git("pull", "--no-rebase", there.remote, target_branch.short(there.branch))
    return (
        f"Alone the work passed its check; with what was merged meanwhile it does not. {checked.failure()} "
        f"To see both together, commit it here, then: {pull}."
    )


def _is_in_the_way(there: There, paths: Sequence[str]) -> str:
    names = quoting.named(paths)
    return f"{names}: {there.shown} has a file there now, and yours is not git's. Move it away."
