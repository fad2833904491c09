"""Paths that are asked for before every state, made once: making one takes longer than asking the disk."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=4096)
def path(*parts: str) -> Path:
    """Return the path of `parts`."""
    return Path(*parts)


@lru_cache(maxsize=256)
def upwards(directory: Path) -> tuple[Path, ...]:
    """Return `directory` and all above it, the nearest first."""
    return directory, *directory.parents


@lru_cache(maxsize=256)
def down_to(directory: Path) -> tuple[Path, ...]:
    """Return all above `directory` and itself, the root first."""
    return tuple(reversed(upwards(directory)))
