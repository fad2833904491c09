"""`hs version`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import harness_lib
from harness_lib.hs.commands.base import Builtin

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


def _version(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    print(f"harness {harness_lib.__version__}")
    return 0


COMMAND = Builtin("Say which version this is", _version)
