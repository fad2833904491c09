"""Calls of one answer at the same time: what only reads, and subagents.

Everything else is run in the order of the answer, and so is everything where a hook of a source stands
before the tools: it is promised to see each call before it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, TypeVar

from harness_lib.loop import plugins, processes
from harness_lib.loop.failures import Interrupted
from harness_lib.loop.mcp import tools
from harness_lib.loop.piped import Json
from harness_lib.loop.runtime import Runtime

_READERS = 8
SUBAGENTS = 4

T = TypeVar("T")
U = TypeVar("U")


def first(runtime: Runtime, queue: list[Any]) -> list[Json]:
    """Return the calls at the beginning of `queue` that may run at the same time; at least one."""
    kind = _kind(runtime, queue[0])
    if not kind or any(not plugin.is_ours for plugin in runtime.table.of("hooks.d", "tool_exec")):
        return queue[:1]
    return list(takewhile(lambda call: isinstance(call, dict) and _kind(runtime, call) == kind, queue))


def run(runtime: Runtime, items: Sequence[T], work: Callable[[T], U], most: int) -> list[U]:
    """Return what `work` makes of each, in their order, at most so many at once.

    Ctrl-C ends the programs of all of them before it goes on as Interrupted; said twice, at once.
    """
    if len(items) == 1:
        return [work(items[0])]
    # Imported here: most answers have one call.
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait  # noqa: PLC0415

    stopped = threading.Event()

    def stoppable(each: T) -> U:
        with processes.ended_by(stopped):
            return work(each)

    with ThreadPoolExecutor(min(most, len(items))) as pool:
        try:
            futures = [pool.submit(stoppable, each) for each in items]
            wait(futures, return_when=FIRST_EXCEPTION)
            return [future.result() for future in futures]
        except BaseException:
            stopped.set()
            tools.cancel(runtime)
            try:
                pool.shutdown(cancel_futures=True)
            except Interrupted:
                processes.kill_all()
                raise
            raise


def limit(runtime: Runtime, call: Json) -> int:
    """Return how many calls of its kind may run at once."""
    return SUBAGENTS if _kind(runtime, call) == "agent" else _READERS


def _kind(runtime: Runtime, call: Json) -> str:
    name = str(call.get("name") or "")
    plugin = runtime.table.find("tools", name)
    if name == "agent" and plugin is not None and plugin.is_ours:
        # Under a limit of cost each has to know what the one before has left.
        return "" if runtime.env.get("HARNESS_MAX_COST") else "agent"
    return "reads" if plugins.only_reads(runtime, name) else ""
