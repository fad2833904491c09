"""What an attempt needs of the worker that makes it, and what it tells the worker when a person must act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness_lib.agents.adapter import Adapter
from harness_lib.attempts import precheck
from harness_lib.errors import HarnessError
from harness_lib.rules import halting
from harness_lib.rules.events import News
from harness_lib.runs.agent_process import Rules
from harness_lib.task import HaltKind


class WorkerPort(Protocol):
    """What an attempt needs of the worker that makes it."""

    adapter: Adapter
    known: precheck.Known

    @property
    def config(self) -> AgentOptions:
        """Return what the run wants of agents."""
        ...

    def tell(self, news: News) -> None:
        """Send an event to the run."""
        ...

    def rules(self) -> Rules:
        """Return what an agent may take now."""
        ...

    def held_back(self) -> str:
        """Return why the run starts no further agent; "" if it does."""
        ...


class AgentOptions(Protocol):
    """How agents are to be started."""

    @property
    def model(self) -> str | None: ...  # noqa: D102 - a word of the agent's own

    @property
    def extra(self) -> tuple[str, ...]: ...  # noqa: D102 - likewise

    @property
    def precheck(self) -> bool: ...  # noqa: D102 - whether checks run before the first agent works

    @property
    def skip_green(self) -> bool: ...  # noqa: D102 - whether a check that passes then needs no agent

    @property
    def max_file(self) -> float: ...  # noqa: D102 - megabytes that nobody has to be asked about


class HeldBackError(Exception):
    """The run starts no further agent, and the attempt needs one: the task goes back, uncounted."""


@dataclass
class StuckError(Exception):
    """A person must act; `everywhere`: for this task and for every other one.

    `unstarted`: the agent ended before it did anything, which may be the task's doing or the agent's.
    `halts_as`: what halts the task, if it is not that.
    """

    kind: str
    reason: str
    hint: str = ""
    everywhere: bool = False
    unstarted: bool = False
    halts_as: HaltKind = "ENV_SETUP"


def stuck(error: HarnessError) -> StuckError:
    """Return that a person must act because of `error`."""
    return StuckError(error.kind, error.message, error.hint or "", halts_as=halting.of_error(error))
