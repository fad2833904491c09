"""Measure what is left of a list: how long it will take at least."""

from __future__ import annotations

from typing import NamedTuple

from harness_lib.rules import failures, graph
from harness_lib.task import State


class Ahead(NamedTuple):
    """How many tasks may still be done, and how many of them can only be done one after another."""

    tasks: int = 0
    chain: int = 0

    def rounds(self, workers: int) -> int:
        """Return how many tasks the busiest of `workers` has to do at least."""
        return max(-(-self.tasks // workers), self.chain)


def of(state: State) -> Ahead:
    """Return what is left of `state`."""
    lost = failures.hopeless(state)
    left = [task for task in state.tasks if not task.is_done and task.id not in lost]
    return Ahead(len(left), graph.longest_chain(left))
