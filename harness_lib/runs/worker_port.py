"""The interface between an attempt and its worker, and what the worker reports when the user must act."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness_lib.agents import command, registry
from harness_lib.agents.adapter import Adapter
from harness_lib.attempts import check
from harness_lib.core.context import Merging
from harness_lib.errors import (
    AwayError,
    ConfigError,
    EnvSetupError,
    HarnessError,
    RefusedError,
    UntrustedError,
)
from harness_lib.rules import attempts
from harness_lib.rules.events import News
from harness_lib.runs.agent_process import Rules
from harness_lib.task import HaltKind

FIRST_PORT = 20000
PORTS = 100
LOCAL = Merging()


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """How agents are started, and what is asked of their work.

    `agent_command` is for a shell, `silence` and `longest` are seconds, `max_file` is megabytes that nobody
    has to be asked about. `precheck`: run each check before its first agent works; `skip_green`: then start
    no agent for a check that passes. No task may change what the globs `protect` match.
    """

    agent: str | None = None
    agent_command: str | None = None
    model: str | None = None
    extra: tuple[str, ...] = ()
    silence: float = Rules.silence
    longest: float = Rules.longest
    max_file: float = 100.0
    precheck: bool = True
    skip_green: bool = False
    protect: tuple[str, ...] = ()


class WorkerPort(Protocol):
    """What an attempt needs of its worker."""

    adapter: Adapter
    known: check.Known

    @property
    def config(self) -> AgentOptions:
        """Return how agents are to be started."""
        ...

    def tell(self, news: News) -> None:
        """Send an event to the run."""
        ...

    def rules(self) -> Rules:
        """Return the limits of an agent now."""
        ...

    def held_back(self) -> str:
        """Return why no further agent may start; "" if one may."""
        ...


class HeldBackError(Exception):
    """The run starts no further agent, but the attempt needs one: the task is requeued, uncounted."""


@dataclass
class StuckError(Exception):
    """The user must act; `everywhere`: for this task and every other one.

    `unstarted`: the agent ended before it did anything, which may be the task's doing or the agent's.
    `halts_as`: what halts the task, if it is not that.
    """

    kind: str
    reason: str
    hint: str = ""
    everywhere: bool = False
    unstarted: bool = False
    halts_as: HaltKind = "ENV_SETUP"


@contextmanager
def halting_task(also: type[HarnessError] = RefusedError) -> Iterator[None]:
    """Raise StuckError, which says that the user must act, for what stops the task in this block, or `also`.

    The error stays what it is if the database is away, which may come back without the user, and if the list,
    or the commands of the task, are not trusted on this machine: no task is to blame.
    """
    try:
        yield
    except (AwayError, UntrustedError):
        raise
    except (ConfigError, EnvSetupError, RefusedError, also) as error:
        halts_as = attempts.of_error(error)
        raise StuckError(error.kind, error.message, error.hint or "", halts_as=halts_as) from error


@dataclass(frozen=True, kw_only=True)
class WorkerConfig(AgentOptions):
    """The name of a worker, its work tree, and its agents."""

    worker: str
    number: int
    place: str
    target: str
    limits: dict[str, float] = field(default_factory=dict)
    merging: Merging = LOCAL

    def adapter(self) -> Adapter:
        """Return the adapter of the agent that was asked for."""
        if self.agent_command is not None:
            return command.adapter(self.agent_command)
        assert self.agent is not None
        return registry.named(self.agent)

    def env(self) -> dict[str, str]:
        """Return the variables that mark this worker's processes."""
        first = FIRST_PORT + (self.number - 1) * PORTS
        return {
            "HARNESS_WORKER_ID": self.worker,
            "HARNESS_WORKER_NUMBER": str(self.number),
            "HARNESS_PORT_FIRST": str(first),
            "HARNESS_PORT_LAST": str(first + PORTS - 1),
            # Without its `.git` a work tree would be part of a repository around it.
            "GIT_CEILING_DIRECTORIES": self.place,
        }


def read(line: str) -> WorkerConfig:
    """Return the configuration that `line` has as JSON."""
    config = WorkerConfig(**json.loads(line, object_hook=_tuples))
    return replace(config, merging=Merging(*config.merging))


def _tuples(document: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
