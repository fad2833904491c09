"""Choose the next task on this machine: not each one may be completed here, if machines share the list."""

from __future__ import annotations

from typing import NamedTuple

from harness_lib.core import held_out, trust
from harness_lib.core.context import Context
from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.text import some

NAMED = 5


class Here(NamedTuple):
    """The task that this machine takes next, and those before it that are left alone here.

    Of `elsewhere` only another machine has the held-out check. `untrusted` are the ids of tasks that wait
    until the user trusts their commands here.
    """

    task: Task | None
    elsewhere: tuple[Task, ...] = ()
    untrusted: tuple[str, ...] = ()

    @property
    def leaves_some(self) -> bool:
        """Whether there are tasks that could be taken, but not on this machine as it is."""
        return self.task is None and bool(self.elsewhere or self.untrusted)

    def words(self, ctx: Context) -> str:
        """Return a sentence about the tasks that are left alone, as many as fit, and what to do; or ""."""
        told = trust.told(ctx, self.untrusted)
        if not self.elsewhere:
            return told
        which = some([task.id for task in self.elsewhere], NAMED)
        words = f"{which}: {held_out.ELSEWHERE}. {held_out.cure(self.elsewhere[0])}"
        return f"{words}. {told}" if told else words


def next_task(ctx: Context, questions: Questions, known: Here | None = None) -> Here:
    """Return the next task apart from those that are left alone on this machine.

    `known` has such tasks that were found already; then the list as a whole is not looked at again.
    """
    elsewhere = [*(known.elsewhere if known else ())]
    untrusted = dict.fromkeys(known.untrusted if known else ())
    while True:
        task = questions.next_ready([*(each.id for each in elsewhere), *untrusted])
        if task is None:
            # Nor does the check of these run here, which others have marked as completed.
            unproven = (each for each in questions.unproven() if not trust.knows(ctx, each))
            untrusted.update(dict.fromkeys(each.id for each in unproven))
            return Here(None, tuple(elsewhere), tuple(untrusted))
        if not trust.knows(ctx, task):
            if known is None and not untrusted:
                # One by one they would be many questions.
                untrusted.update(dict.fromkeys(trust.waiting(ctx, questions)))
            untrusted[task.id] = None
        elif held_out.is_elsewhere(ctx, task):
            elsewhere.append(task)
        else:
            return Here(task, tuple(elsewhere), tuple(untrusted))
