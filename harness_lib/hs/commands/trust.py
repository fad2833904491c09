"""`hs trust`: let the plugins, settings and credentials of this project be used, as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.errors import UsageError
from harness_lib.hs.commands.base import Builtin
from harness_lib.hs.showing import show
from harness_lib.loop import trust

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


def _trust(runtime: Runtime, args: list[str]) -> int:
    if args:
        raise UsageError(
            "hs trust takes no arguments.", "It trusts the .harness directories from here upwards."
        )
    sources = [source for source in runtime.sources if trust.content(runtime, source)]
    if not sources:
        show("There is nothing to trust here.")
        return 0
    trust.save(runtime, sources)
    for source in sources:
        show(f"trusted: {source}")
        for path in trust.content(runtime, source):
            show(f"  {path.relative_to(source)}")
    return 0


COMMAND = Builtin("Let this project's plugins and settings be used as they are now", _trust)
