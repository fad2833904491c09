"""Keep a list in PostgreSQL, so that many machines work on it. Source: docs/many-machines.md.

Half the time of a verb is the import of psycopg, and part of that is only for connections of asyncio and for
telling its version. What nothing else needs is replaced meanwhile.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

# Versions that were tried so, in the names of their directories; any other one is imported as it is.
TRIED = ("psycopg-3.2.", "psycopg-3.3.")


class _Absent(ModuleType):
    """A module whose names can be imported and annotated with: each is a class that nothing ever raises."""

    def __getattr__(self, name: str) -> type[BaseException]:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (BaseException,), {"__class_getitem__": classmethod(lambda cls, _: cls)})
        setattr(self, name, made)
        return made


class _Versions(_Absent):
    """What knows no installed package: psycopg says that its version is 0.0.0.0 then."""

    def version(self, name: str) -> str:
        raise self.PackageNotFoundError(name)


def _is_known() -> bool:
    spec = PathFinder.find_spec("psycopg", sys.path)
    if spec is None or spec.origin is None:
        return False
    beside = Path(spec.origin).parents[1].glob("psycopg-*.dist-info")
    return any(each.name.startswith(TRIED) for each in beside)


@contextmanager
def _without_what_is_unused() -> Iterator[None]:
    made = (_Absent("asyncio"), _Versions("importlib.metadata"))
    absent = {module.__name__: module for module in made if module.__name__ not in sys.modules}
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


# Another thread could meet them.
if "psycopg" not in sys.modules and threading.active_count() == 1 and _is_known():
    with _without_what_is_unused():
        import psycopg  # noqa: F401 (for those that follow)
