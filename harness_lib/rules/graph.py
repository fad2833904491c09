"""The dependency graph of the tasks that are not completed: its rings, and the order of ids.

A completed task waits for nothing, so it closes no ring.
All searches are loops and linear in tasks and dependencies: chains may be longer than Python's stack is deep.
Source: docs/protocol.md, "Task Selection Algorithm"; docs/design.md, "Choosing".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

from harness_lib.task import Task

Edges = Mapping[str, list[str]]

ARROW = " -> "
_SHOWN_AT_START = 8
_SHOWN_AT_END = 2
# Text, then a number without its leading zeros.
_CHUNK = re.compile(r"([^0-9]*)0*([0-9]*)")

IdKey = tuple[tuple[tuple[str, int, str], ...], str]


@lru_cache(maxsize=1 << 17)
def id_key(task_id: str) -> IdKey:
    """Return the sort key of an id: numbers in it count as numbers, so task-999 comes before task-1000.

    The order is total: ids that differ only in leading zeros fall back to their text.
    """
    # A number of equal length compares as its digits do; int() would refuse one of 5,000 digits.
    chunks = _CHUNK.findall(task_id)
    return tuple((text, len(digits), digits) for text, digits in chunks), task_id


def cycles(tasks: Iterable[Task]) -> tuple[tuple[str, ...], ...]:
    """Return each ring of dependencies once: `("a", "b", "a")`, or `("a", "a")` for one waiting for itself.

    Rings that share a task are one knot; it is named by the shortest ring through its lowest id.
    A ring begins at its lowest id, and the rings are in the order of their first ids.
    """
    return tuple(ring(knot[0]) for knot, ring in _knots(_edges(tasks)))


def cycle_members(tasks: Iterable[Task]) -> dict[str, str]:
    """Return every task that waits for itself, directly or not, with the text of a ring through it.

    The text is `a -> b -> a` as in `cycles`; the middle of a long one is left out.
    """
    rings: dict[str, str] = {}
    for knot, ring in _knots(_edges(tasks)):
        for task_id in knot:
            if task_id not in rings:
                members = ring(task_id)
                text = describe(members)
                for member in members:
                    rings.setdefault(member, text)
    return rings


def longest_chain(tasks: Iterable[Task]) -> int:
    """Return how many of `tasks` stand in the longest line in which each waits for the one before it.

    A ring, which somebody who works on one of its tasks may still break, counts as if it were cut once.
    """
    known = {task.id: task.depends_on for task in tasks}
    edges = {task_id: [other for other in others if other in known] for task_id, others in known.items()}
    length: dict[str, int] = {}
    for task_id in _postorder(edges):
        length[task_id] = 1 + max((length.get(other, 0) for other in edges[task_id]), default=0)
    return max(length.values(), default=0)


def describe(ring: tuple[str, ...]) -> str:
    """Return `a -> b -> a`; of a long ring the beginning, the end and how many are not shown."""
    hidden = len(ring) - _SHOWN_AT_START - _SHOWN_AT_END
    if hidden <= 1:
        return ARROW.join(ring)
    return ARROW.join((*ring[:_SHOWN_AT_START], f"({hidden} more)", *ring[-_SHOWN_AT_END:]))


def _edges(tasks: Iterable[Task]) -> Edges:
    """Return, for each task that waits and is not completed, the ones of these that it waits for.

    A task that waits for nothing is in no ring, and many lists have hardly any other.
    """
    waiting = {task.id: task.depends_on for task in tasks if task.depends_on and task.status != "completed"}
    return {task_id: [other for other in others if other in waiting] for task_id, others in waiting.items()}


def _knots(edges: Edges) -> Iterator[tuple[list[str], _Rings]]:
    """Yield each strongly connected component that holds a ring, lowest id first, and the rings in it."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError:
        # graphlib names one ring of all; the members of every ring are what must be marked.
        knots = (sorted(group, key=id_key) for group in _components(edges))
        rings = (knot for knot in knots if len(knot) > 1 or knot[0] in edges[knot[0]])
        for knot in sorted(rings, key=lambda knot: id_key(knot[0])):
            yield knot, _Rings(knot, edges)


class _Rings:
    """Finds a ring through any member of one knot, from two trees of shortest ways through its lowest id."""

    def __init__(self, knot: list[str], edges: Edges) -> None:
        self._lead = knot[0]
        members = frozenset(knot)
        # In the order of the ids: the list's own must not decide which of two equally short ways is named.
        inside = {node: [other for other in edges[node] if other in members] for node in knot}
        self._from_lead = _tree(self._lead, inside)
        self._to_lead = _tree(self._lead, _reversed(inside))

    def __call__(self, member: str) -> tuple[str, ...]:
        """Return a ring through `member` that meets no task twice, beginning at its lowest id.

        The way out leads from `member` towards the lead; where it first meets the way from the lead to
        `member` it turns into that one.
        """
        home = [member]
        while home[-1] != self._lead:
            home.append(self._from_lead[home[-1]])
        meeting = {task_id: place for place, task_id in enumerate(home)}
        out = [member]
        while (step := self._to_lead[out[-1]]) not in meeting:
            out.append(step)
        # For the lead itself the way home is empty and the way out has closed the ring.
        ring = out + home[meeting[step] : 0 : -1]
        first = ring.index(min(ring, key=id_key))
        return (*ring[first:], *ring[:first], ring[first])


def _tree(root: str, edges: Edges) -> dict[str, str]:
    """Return the node by which the shortest way from `root` reaches each other, and `root` again."""
    reached_by: dict[str, str] = {}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for other in edges[node]:
            if other not in reached_by:
                reached_by[other] = node
                queue.append(other)
    return reached_by


def _components(edges: Edges) -> Iterator[list[str]]:
    """Yield the strongly connected components (Kosaraju's two passes)."""
    back = _reversed(edges)
    placed: set[str] = set()
    for root in reversed(_postorder(edges)):
        if root in placed:
            continue
        placed.add(root)
        group = [root]
        for node in group:
            fresh = [other for other in dict.fromkeys(back[node]) if other not in placed]
            placed.update(fresh)
            group.extend(fresh)
        yield group


def _postorder(edges: Edges) -> list[str]:
    """Return all nodes, each after everything that was first reached through it."""
    order: list[str] = []
    seen: set[str] = set()
    for root in edges:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(edges[root]))]
        while stack:
            node, others = stack[-1]
            fresh = next((other for other in others if other not in seen), None)
            if fresh is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(fresh)
                stack.append((fresh, iter(edges[fresh])))
    return order


def _reversed(edges: Edges) -> Edges:
    back: dict[str, list[str]] = {node: [] for node in edges}
    for node, others in edges.items():
        for other in others:
            back[other].append(node)
    return back
