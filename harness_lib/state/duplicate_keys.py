"""Notice keys that stand twice in one JSON object, of which every reader silently keeps the last.

Whoever edits the list by hand meant one of the two, and which, only that person knows.
Standard library only: hooks read the list with it.
Source: docs/design.md, "Reading is strict".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from harness_lib.state.record.kinds import SHOWN, Problem, Problems

# Characters of a path that are kept: nobody nests that deep, but a file can.
DEEP = 1000


class Watch:
    """Makes the objects of one text, and remembers those in which a key was repeated."""

    def __init__(self) -> None:
        # The objects are kept, so that no other gets the id of one.
        self._repeated: dict[int, tuple[object, list[tuple[str, int]]]] = {}

    def make(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the object of `pairs`; it is the `object_pairs_hook` of `json`."""
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            self._repeated[id(mapping)] = (
                mapping,
                [(key, count) for key, count in counts.items() if count > 1],
            )
        return mapping

    def problems(self, document: object) -> Problems:
        """Return each repeated key of `document`, in its order; it is gone through only if there is one."""
        problems: Problems = []
        # No recursion: some Pythons read documents that are nested deeper than their functions may be.
        rest: list[tuple[str, object]] = [("", document)] if self._repeated else []
        while rest:
            path, value = rest.pop()
            prefix = f"{path}." if path else ""
            for key, count in self._repeated.get(id(value), (None, []))[1]:
                problems.append(Problem(prefix + _shown(key), f"stands {count} times; only one can be meant"))
            rest += reversed([(_below(path, prefix, part), each) for part, each in _parts(value)])
        return problems


def _parts(value: object) -> Iterable[tuple[str | int, object]]:
    """Return what `value` holds and could itself hold something, with its key or index."""
    inside: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    return [(part, each) for part, each in inside if isinstance(each, dict | list)]


def _below(path: str, prefix: str, part: str | int) -> str:
    below = f"{path}[{part}]" if isinstance(part, int) else prefix + _shown(part)
    return below if len(below) <= DEEP else f"…{below[-DEEP:]}"


def _shown(key: str) -> str:
    return key if len(key) <= SHOWN else f"{key[:SHOWN]}…"
