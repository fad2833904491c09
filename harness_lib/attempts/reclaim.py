"""Hand back the task of a worker that is gone, as often as it takes, and give it up in the end.

The run and the next worker of that name may both be at it: who has lost the claim leaves all as it is, since
the task, its work tree and its check may be another worker's by then.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness_lib.attempts import giving_up, reconcile
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError, LeaseLostError
from harness_lib.task import Session, Task


class Reclaimed(NamedTuple):
    """What came of one try, and the words for it.

    `later`: it stands as it was and is to be tried again. `lost`: somebody else has it, nothing was touched.
    """

    how: Literal["handed back", "later", "given up", "lost"]
    message: str


class Reclaims:
    """The tries of one process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._tries = giving_up.Tries()

    def reclaim(self, session: Session, held: Task) -> Reclaimed:
        """Try to hand back `held`, as it is in progress now, in the name of a worker that is dead."""
        try:
            return self._hand_back(session, held)
        except LeaseLostError as lost:
            return Reclaimed("lost", f"{held.id} has no worker any more: {lost}")

    def _hand_back(self, session: Session, held: Task) -> Reclaimed:
        claim = held
        try:
            claim = reconcile.take_from_dead_worker(self._ctx, held)
            return Reclaimed("handed back", reconcile.hand_back(self._ctx, session, claim))
        except LeaseLostError:
            raise
        except (HarnessError, OSError) as error:
            if not self._tries.spent(claim):
                return Reclaimed("later", f"{held.id} could not be handed back yet: {error}")
            return Reclaimed("given up", giving_up.give_up(self._ctx, session, claim, error).halt or "")
