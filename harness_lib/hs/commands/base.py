"""A command that is a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_lib.hs.showing import show

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


@dataclass(frozen=True)
class Builtin:
    """One of our commands."""

    description: str
    function: Callable[[Runtime, list[str]], int]
    is_help: bool = False

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        """Return one line for people."""
        return self.description

    def __call__(self, runtime: Runtime, args: list[str]) -> int:
        """Do it and return the exit code; asked for help, say the line for people and do nothing."""
        if args in (["--help"], ["-h"]) and not self.is_help:
            show(f"{self.description}\nEverything else: hs help")
            return 0
        return self.function(runtime, args)
