"""Find cycles in the dependency graph of the tasks that are not completed, and order ids.

A completed task waits for nothing, so it closes no cycle.
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
from harness_lib.text import Strings

Edges = Mapping[str, list[str]]

ARROW = " -> "
_SHOWN_AT_START = 8
_SHOWN_AT_END = 2
# Text, then a number without leading zeros.
_CHUNK = re.compile(r"([^0-9]*)0*([0-9]*)")

IdKey = tuple[tuple[tuple[str, int, str], ...], str]


@lru_cache(maxsize=1 << 17)
def id_key(task_id: str) -> IdKey:
    """Return the sort key of an id: numbers in it count as numbers, so task-999 comes before task-1000.

    The order is total: ids that differ only in leading zeros fall back to their text.
    """
    # Numbers of equal length compare like text; int() refuses one of 5,000 digits.
    chunks = _CHUNK.findall(task_id)
    return tuple((text, len(digits), digits) for text, digits in chunks), task_id


def cycles(tasks: Iterable[Task]) -> tuple[Strings, ...]:
    """Return each cycle of dependencies once: `("a", "b", "a")`, or `("a", "a")` for a self-dependency.

    Cycles that share a task are one component; it is named by the shortest cycle through its lowest id.
    A cycle begins at its lowest id, and the cycles are in the order of their first ids.
    """
    return tuple(cycle(component[0]) for component, cycle in _cyclic_components(tasks))


def cycle_members(tasks: Iterable[Task]) -> dict[str, str]:
    """Return every task that depends on itself, directly or not, with the text of a cycle through it.

    The text is `a -> b -> a` as in `cycles`; the middle of a long one is left out.
    """
    texts: dict[str, str] = {}
    for component, cycle in _cyclic_components(tasks):
        for task_id in component:
            if task_id not in texts:
                members = cycle(task_id)
                text = describe(members)
                for member in members:
                    texts.setdefault(member, text)
    return texts


def depths(tasks: Iterable[Task]) -> dict[str, int]:
    """Return for each of `tasks` how many of them come before it, one after another.

    A cycle, which a task in progress may still break, counts as if it were cut once.
    """
    known = {task.id: task.depends_on for task in tasks}
    edges = {task_id: [other for other in others if other in known] for task_id, others in known.items()}
    depth: dict[str, int] = {}
    for task_id in _postorder(edges):
        depth[task_id] = max((depth.get(other, -1) + 1 for other in edges[task_id]), default=0)
    return depth


def describe(cycle: Strings) -> str:
    """Return `a -> b -> a`; of a long cycle the beginning, the end and how many are left out."""
    hidden = len(cycle) - _SHOWN_AT_START - _SHOWN_AT_END
    if hidden <= 1:
        return ARROW.join(cycle)
    return ARROW.join((*cycle[:_SHOWN_AT_START], f"({hidden} more)", *cycle[-_SHOWN_AT_END:]))


def _cyclic_components(tasks: Iterable[Task]) -> Iterator[tuple[list[str], _Cycles]]:
    """Yield each strongly connected component with a cycle, lowest id first, and its cycles."""
    # A task without dependencies is in no cycle, and many lists have hardly any other.
    waiting = {task.id: task.depends_on for task in tasks if task.depends_on and task.status != "completed"}
    edges = {task_id: [other for other in others if other in waiting] for task_id, others in waiting.items()}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError:
        # graphlib names only one cycle; the members of every cycle must be marked.
        groups = (sorted(group, key=id_key) for group in _components(edges))
        cyclic = (group for group in groups if len(group) > 1 or group[0] in edges[group[0]])
        for component in sorted(cyclic, key=lambda group: id_key(group[0])):
            yield component, _Cycles(component, edges)


class _Cycles:
    """Finds a cycle through any member of a component, by two trees of shortest paths from its lowest id."""

    def __init__(self, component: list[str], edges: Edges) -> None:
        self._lead = component[0]
        members = frozenset(component)
        # In the order of ids, so that the list's order does not decide between equally short paths.
        inside = {node: [other for other in edges[node] if other in members] for node in component}
        self._from_lead = _tree(self._lead, inside)
        self._to_lead = _tree(self._lead, _reversed(inside))

    def __call__(self, member: str) -> Strings:
        """Return a cycle through `member` that meets no task twice, beginning at its lowest id.

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
        # For the lead itself the path back is empty, and the path out has closed the cycle.
        cycle = out + home[meeting[step] : 0 : -1]
        first = cycle.index(min(cycle, key=id_key))
        return (*cycle[first:], *cycle[:first], cycle[first])


def _tree(root: str, edges: Edges) -> dict[str, str]:
    """Return for each node its predecessor on the shortest path from `root`, and for `root` as well."""
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
