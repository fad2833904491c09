"""Load a module when something of it is first used, because a verb can reach many more than it needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader

OURS = "harness_lib."
# What may go on until somebody ends it.
FOR_HOURS = frozenset({"run", "demo", "--watch", "--wait", "-f", "--follow"})
# `run` and its like have threads, of which two could meet in a module that is half loaded (before Python
# 3.12.2). The others wait for checks or for workers, and meanwhile our folder may become another version's.
AT_ONCE = FOR_HOURS | {"finish", "validate", "recover"}


class _Finder:
    """Finds our modules as Python does, and puts off to load them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, _target: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name.startswith(OURS) else None
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def install(argv: Sequence[str]) -> None:
    """Let this process, which was started to do what `argv` says, load no module before it is used."""
    if AT_ONCE.isdisjoint(argv):
        sys.meta_path.insert(0, _Finder)
