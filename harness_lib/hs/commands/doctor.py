"""`hs doctor`: what may be wrong with hs here, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from harness_lib.errors import Exit, UsageError
from harness_lib.hs import health
from harness_lib.hs.commands.base import Builtin
from harness_lib.hs.showing import show
from harness_lib.loop.piped import dumps

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


def _doctor(runtime: Runtime, args: list[str]) -> int:
    if args not in ([], ["--json"]):
        raise UsageError("hs doctor takes no arguments but --json.")
    findings = list(health.examine(runtime))
    if args:
        show(dumps([asdict(each) for each in findings]))
        return 0
    for each in findings:
        show(f"{each.level:<4}  {each.what}{f' -> {each.cure}' if each.cure else ''}")
    return int(Exit.CHECK_FAILED if any(each.cure for each in findings) else Exit.DONE)


COMMAND = Builtin("Say what may be wrong here, and what to do", _doctor)
