"""What the policy decides from: plain values, which `facts` gathers."""

from __future__ import annotations

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from harness_lib.state.summary_shape import OpenSession, Summary

    Kind = Literal["allow", "block", "keep", "context", "deny"]


class BlockCounter:
    """How often an agent was held in a row, at which `progress`, and the last `warning` it was given.

    `waited`: it was let go for background work of an unknown kind; that is done once.
    """

    __slots__ = ("blocks", "progress", "waited", "warning")

    def __init__(
        self, progress: str = "", blocks: int = 0, warning: str = "", *, waited: bool = False
    ) -> None:
        self.waited = waited
        self.progress = progress
        self.blocks = blocks
        self.warning = warning


class HookContext:
    """The state of the list, seen by one agent session.

    `cache` is the status cache (`state.summary.build`), None if there is none. With `trouble`, the reason why
    the list cannot be read, it is the last one that harness wrote.
    `mine` are the open sessions of the caller, `others` those of agents that may still run (known when an
    agent starts), `workers` the names under which the caller may have claimed a task.
    `program` is what to type for `harness`, not quoted. `shared`: machines share the list. `attempted` is how
    many tasks the last session of the legacy protocol has completed or failed (known when an agent stops and
    they are limited).
    """

    __slots__ = (
        *("attempted", "cache", "counter", "mine", "others"),
        *("program", "root", "shared", "trouble", "workers"),
    )

    def __init__(
        self,
        cache: Summary | None,
        *,
        program: str,
        mine: Sequence[OpenSession] = (),
        workers: Sequence[str] = (),
        trouble: str = "",
        counter: BlockCounter | None = None,
        root: str = "",
        shared: bool = False,
    ) -> None:
        self.cache = cache
        self.attempted = 0
        self.mine = mine
        self.others: Sequence[OpenSession] = ()
        self.workers = workers
        self.trouble = trouble
        self.counter = counter or BlockCounter()
        self.program = program
        self.root = root
        self.shared = shared

    @property
    def must_check(self) -> bool:
        """Whether the caller's session has to run the final check of the list."""
        return any([each.get("final_check") for each in self.mine])  # noqa: C419 (a generator starts slower)


class Answer:
    """What a hook says.

    Let the agent go (`allow`), hold it (`block`; `keep` for a teammate), tell it something (`context`), or
    refuse what it is about to do (`deny`).
    `warning` is for the user and the log, once. `progress` is what a held agent is measured by next time.
    `finished`: nothing is left, and the enable flag is removed. `waits`: background work may wake the agent.
    """

    __slots__ = ("finished", "kind", "progress", "text", "waits", "warning")

    def __init__(
        self,
        kind: Kind,
        text: str = "",
        *,
        warning: str = "",
        progress: str = "",
        finished: bool = False,
        waits: bool = False,
    ) -> None:
        self.waits = waits
        self.kind = kind
        self.text = text
        self.warning = warning
        self.progress = progress
        self.finished = finished
