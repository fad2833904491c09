"""Load a module when something of it is first used, because a verb can reach many more than it needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

OURS = "harness_lib."
# What may go on until somebody ends it.
FOR_HOURS = frozenset({"run", "demo", "--watch", "--wait", "-f", "--follow"})
# What the standard library brings along for a few of our calls.
SELDOM = frozenset({"shlex", "shutil", "tempfile"})
# `run` and its like have threads, of which two could meet in a module that is half loaded (before Python
# 3.12.2). The others wait for checks or for workers, and meanwhile our folder may become another version's.
AT_ONCE = FOR_HOURS | {"finish", "validate", "recover"}


class _Patient(LazyLoader):
    """Puts off to load a module also where it is imported a second time, which asks for its `__spec__`."""

    def exec_module(self, module: ModuleType) -> None:
        """Let `module` be loaded when something else of it is first asked for."""
        super().exec_module(module)
        waiting = type(module)

        class Imported(ModuleType):
            def __getattribute__(self, name: str) -> object:
                if name == "__spec__":
                    return super().__getattribute__(name)
                super().__setattr__("__class__", waiting)
                return getattr(self, name)

        module.__class__ = Imported


class _Finder:
    """Finds modules as Python does, and puts off to load them: the seldom used, and with `ours` ours, too."""

    def __init__(self, *, ours: bool) -> None:
        self._ours = ours

    def find_spec(self, name: str, path: Sequence[str] | None, _target: object = None) -> ModuleSpec | None:
        is_put_off = name in SELDOM or (self._ours and name.startswith(OURS))
        spec = PathFinder.find_spec(name, path) if is_put_off else None
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is None:
            spec.loader = (_Patient if name in SELDOM else LazyLoader)(spec.loader)
        return spec


def install(argv: Sequence[str]) -> None:
    """Let this process, which was started to do what `argv` says, load no module before it is used."""
    if FOR_HOURS.isdisjoint(argv):
        sys.meta_path.insert(0, _Finder(ours=AT_ONCE.isdisjoint(argv)))
