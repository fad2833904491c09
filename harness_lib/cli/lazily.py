"""Import modules lazily: a verb refers to many more modules than it uses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import ClassVar

OURS = "harness_lib."
# Verbs that may run until they are stopped.
FOR_HOURS = frozenset({"run", "demo", "--watch", "--wait", "-f", "--follow"})
# Standard modules that few calls need.
SELDOM = frozenset({"shlex", "shutil", "tempfile"})
# What the driver of PostgreSQL loads with asyncio: OpenSSL alone takes as long as to connect.
DRIVER = frozenset(
    {"asyncio.sslproto", "asyncio.staggered", "csv", "ctypes.util", "linecache", "ssl", "tokenize"}
)
# What only a list needs that machines share.
SHARED = frozenset(
    {
        "harness_lib.attempts.remote",
        "harness_lib.attempts.snapshots",
        "harness_lib.attempts.turn",
        "harness_lib.runs.settings",
    }
)
# What only a run needs, which reads what agents say and merges their work into a branch.
RUN = frozenset(
    {
        "harness_lib.agents.stream",
        "harness_lib.attempts.merge_queue",
        "harness_lib.attempts.publish",
        "harness_lib.attempts.pull_request",
        "harness_lib.attempts.requeue",
        "harness_lib.attempts.target_branch",
        "harness_lib.attempts.worker_worktrees",
        "harness_lib.system.git.merge",
        "harness_lib.system.git.clones",
    }
)
PUT_OFF = SELDOM | DRIVER | SHARED | RUN
# `run` and its like have threads, of which two could meet in a module that is half loaded (before Python
# 3.12.2). The others wait for checks or for workers, and meanwhile our folder may become another version's.
AT_ONCE = FOR_HOURS | {"finish", "validate", "recover"}


class _Imported(ModuleType):
    """A module that becomes one of the class `waiting`, which loads it, once it is used."""

    # Python's own class for such modules, which has no public name.
    waiting: ClassVar[type[ModuleType]] = ModuleType

    def __getattribute__(self, name: str) -> object:
        """Return its spec, or become `waiting`."""
        if name == "__spec__":
            return super().__getattribute__(name)
        super().__setattr__("__class__", _Imported.waiting)
        return getattr(self, name)


class _Patient(LazyLoader):
    """A lazy module that a second import, which reads `__spec__`, does not load.

    Python forgets every error of that look, an interrupt, too; the module would stay half loaded.
    """

    def exec_module(self, module: ModuleType) -> None:
        """Load `module` when another attribute of it is first read."""
        super().exec_module(module)
        _Imported.waiting = type(module)
        module.__class__ = _Imported


class _Finder:
    """Finds modules as Python does, and makes rarely used ones lazy; with `ours`, all our own, too."""

    def __init__(self, *, ours: bool) -> None:
        self._ours = ours

    def find_spec(self, name: str, path: Sequence[str] | None, _target: object = None) -> ModuleSpec | None:
        is_put_off = name in PUT_OFF or (self._ours and name.startswith(OURS))
        spec = PathFinder.find_spec(name, path) if is_put_off else None
        if spec and spec.loader and spec.submodule_search_locations is None:
            spec.loader = _Patient(spec.loader)
        return spec


def install(argv: Sequence[str]) -> None:
    """Make imports lazy in this process, if the verb in `argv` allows it."""
    if FOR_HOURS.isdisjoint(argv):
        sys.meta_path.insert(0, _Finder(ours=AT_ONCE.isdisjoint(argv)))
