"""A command that is a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


@dataclass(frozen=True)
class Builtin:
    """One of our commands."""

    description: str
    function: Callable[[Runtime, list[str]], int]

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        """Return one line for people."""
        return self.description

    def __call__(self, runtime: Runtime, args: list[str]) -> int:
        """Do it and return the exit code."""
        return self.function(runtime, args)
