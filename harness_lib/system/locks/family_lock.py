"""A lock that a family of processes shares: it is free when the last of them has ended.

The lock hangs on the open file, which children inherit; so it tells whether anybody of the family is left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness_lib.system.files import advisory, atomic


def hold(path: Path, *, make: bool = False) -> int | None:
    """Return the descriptor of `path`, held from now on; None if others hold it. Children may inherit it.

    Its directory must exist, or is made with `make`. Raises OSError.
    """
    descriptor = _opened(path, make=make)
    if advisory.take_now(descriptor):
        return descriptor
    os.close(descriptor)
    return None


@contextmanager
def attempt(path: Path, *, make: bool = False) -> Iterator[bool]:
    """Hold `path` in the body if nobody else does; yields whether that is so. `make` as in `hold`."""
    descriptor = hold(path, make=make)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def alone(path: Path, *, make: bool = False) -> Iterator[None]:
    """Hold `path` in the body, after whoever holds it now. `make` as in `hold`."""
    descriptor = _opened(path, make=make)
    try:
        advisory.take(descriptor)
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Return whether nobody holds `path`, or it is not there."""
    if not path.exists():
        return True
    with attempt(path) as free:
        return free


def _opened(path: Path, *, make: bool) -> int:
    if make:
        return atomic.within(path.parent, lambda: _opened(path, make=False))
    return advisory.opened(path)
