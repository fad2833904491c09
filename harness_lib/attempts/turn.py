"""Merge into the branch of the remote, one machine at a time.

The database says whose turn it is, and for how long. The fence is in git: a commit under `turn/<branch>` in
the remote names the holder, and the branch is pushed only together with the next such commit, each on top of
what the holder knows. Whoever comes late is refused by the remote itself, even if the branch has not moved.

Crash model: the list names the commit of each task before it is pushed. Whoever comes after a crash takes the
turn, fetches, and asks whether the branch has that commit.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import check, remote, target_branch
from harness_lib.attempts.remote import There
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError, HeldError
from harness_lib.state.api import Shared
from harness_lib.system.processes import owner

SECONDS = check.KEPT_SECONDS
POLL_SECONDS = 0.3
AGAIN_SECONDS = 2.0
# How often a holder that was replaced meanwhile queues again.
TRIES = 50


class Turn:
    """The turn of this process to merge; `keep_claim` is called while it waits for it, and may raise."""

    def __init__(self, ctx: Context, there: There, shared: Shared, keep_claim: Callable[[], object]) -> None:
        self.there, self._ctx, self._shared, self._keep_claim = there, ctx, shared, keep_claim
        self._holder = _name(ctx)
        self._seconds = min(SECONDS, ctx.lease_seconds)
        self._mine = self._at = ""

    def begin(self) -> str:
        """Take the turn, or keep it, and return the branch's commit. Raises HeldError, AwayError."""
        for _ in range(TRIES):
            fence = self._wait()
            tip = remote.require(self._ctx, self.there)
            # Another turn may have come between.
            if self._is_marked(fence):
                self._at = self.there.git.ref(self.there.tracking) or ""
                remote.follow(self._ctx, self.there, tip)
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

    def move(self, target: str, move: target_branch.Move, new: str) -> None:  # noqa: ARG002 (as on one machine)
        """Push `new` to the branch, which is where `begin` has found it; `new` is on top of `move.tip`.

        Raises MovedError (it is elsewhere, or the turn was lost), HeldError (it is not known whether the
        remote has taken it), EnvSetupError (it refuses it).
        """
        ctx, there, git, old = self._ctx, self.there, self.there.git, self._at
        if not there.base and old != move.tip:
            raise target_branch.MovedError
        after = self._mark(f"harness: {self._holder} has merged {new}")
        ref = there.ref("turn", target_branch.short(there.branch))
        answer = remote.push(
            ctx,
            there,
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
            remote.follow(self._ctx, self.there, new)
            return
        before = self._mine
        tip = remote.require(ctx, there)
        if git.is_ancestor(new, tip) and git.ref(self._copy) in (after, before):
            # The answer was lost on the way back.
            remote.follow(self._ctx, self.there, tip)
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
        """Return the fence of our turn. Raises AwayError: the database is away."""
        while True:
            fence = self._shared.take_turn(self.there.branch, self._holder, self._seconds)
            if fence is not None:
                return fence
            self._keep_claim()
            # Machines that began to wait together do not ask together.
            self._ctx.clock.sleep(POLL_SECONDS * (0.5 + random.random()))  # noqa: S311

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
        answer = remote.push(
            self._ctx, there, f"--force-with-lease={ref}:{present}", there.remote, f"{mine}:{ref}"
        )
        if answer.done:
            git.set_ref(self._copy, mine)
        else:
            remote.require(self._ctx, there)
            if (git.ref(self._copy) or "") == present and not self._is_gone(ref):
                remote.require_refusal(there, answer)
                raise EnvSetupError(
                    f"{there.remote} does not take the ref {ref}: {answer.why}.",
                    f"Machines of one list need a remote that takes refs below {there.ref()}/.",
                )
        self._mine = mine if git.ref(self._copy) == mine else ""
        return bool(self._mine)

    def _is_gone(self, ref: str) -> bool:
        """Return whether the remote has lost the mark that we know: it was made anew, or somebody removed it.

        Then we know of none from now on. Raises RemoteAwayError.
        """
        git = self.there.git
        if git.ref(self._copy) is None or remote.listed(self._ctx, self.there, self.there.remote, ref):
            return False
        git.delete_ref(self._copy)
        return True

    def _mark(self, message: str) -> str:
        git = self.there.git
        return git.commit(git.empty_tree(), [self._mine] if self._mine else [], f"{message}\n")


@contextmanager
def taken(ctx: Context, there: There, keep_claim: Callable[[], object]) -> Iterator[Turn]:
    """Yield a turn that begins with its `begin`, and leave it after the block."""
    shared = ctx.store.shared
    assert shared is not None, "BUG: a list of one machine has no turns."
    turn = Turn(ctx, there, shared, keep_claim)
    check.kept_along.append(turn.keep)
    try:
        yield turn
    finally:
        check.kept_along.remove(turn.keep)
        turn.leave()


def _name(ctx: Context) -> str:
    """Return a name for a holder of a turn, which begins with its machine."""
    return f"{owner.machine(ctx.env)} {ctx.owner.worker} {os.urandom(4).hex()}"


FINAL = "final check of"


class Alone(NamedTuple):
    """A turn to check the branch for all: `goes_on` keeps it, and tells whether to go on.

    `waited`: another machine had it before. `has` False: the caller's `goes_on` ended the wait for it.
    """

    has: bool
    waited: bool
    goes_on: Callable[[], bool]


@contextmanager
def alone(ctx: Context, goes_on: Callable[[], bool], say: Callable[[str], None]) -> Iterator[Alone]:
    """Yield once no other machine makes the final check of the branch, or `goes_on` returns False.

    Nothing is pushed in this turn, so it needs no mark in the remote.
    """
    shared, what, holder = ctx.store.shared, f"{FINAL} {ctx.merging.branch}", _name(ctx)
    assert shared is not None, "BUG: a list of one machine has no turns."
    seconds, clock = min(SECONDS, ctx.lease_seconds), ctx.clock
    has = waited = False
    kept = clock.monotonic()

    def take() -> bool:
        # While the database is away, nobody else takes it either.
        with suppress(HarnessError):
            return shared.take_turn(what, holder, seconds) is not None
        return False

    def keeps() -> bool:
        nonlocal kept
        if clock.monotonic() - kept > seconds / check.RENEWALS_PER_LEASE:
            kept = clock.monotonic()
            take()
        return goes_on()

    try:
        while not (has := take()) and goes_on():
            if not waited:
                say("another machine makes the final check; this one waits for it")
            waited = True
            clock.sleep(AGAIN_SECONDS * (0.5 + random.random()))  # noqa: S311
        kept = clock.monotonic()
        yield Alone(has, waited, keeps)
    finally:
        with suppress(HarnessError):
            shared.leave_turn(what, holder)
