"""What a run tells a worker when it starts it: one line of JSON between two processes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from harness_lib import agents
from harness_lib.agents import command
from harness_lib.agents.adapter import Adapter
from harness_lib.rules import budget
from harness_lib.rules.budget import Budget

PORTS = 100
# How a line begins that gives a worker other limits.
LIMITS = "limits "
# Whether a limit of the run is reached.
LIMITED, UNLIMITED = "limited", "unlimited"


@dataclass(frozen=True)
class WorkerConfig:
    """Who a worker is, where it works, and which agent it lets work; `silence` and `longest` are seconds."""

    worker: str
    number: int
    place: str
    target: str
    agent: str | None
    agent_command: str | None
    model: str | None
    extra: tuple[str, ...]
    silence: float
    longest: float
    first_port: int
    max_file: float = 100.0
    precheck: bool = True
    skip_green: bool = False
    limits: dict[str, float] = field(default_factory=dict)

    def adapter(self) -> Adapter:
        """Return how to drive the agent that was asked for."""
        if self.agent_command is not None:
            return command.adapter(self.agent_command)
        assert self.agent is not None
        return agents.named(self.agent)

    def env(self) -> dict[str, str]:
        """Return what tells this worker's processes from those of the others."""
        first = self.first_port + (self.number - 1) * PORTS
        return {
            "HARNESS_WORKER_ID": self.worker,
            "HARNESS_WORKER_NUMBER": str(self.number),
            "HARNESS_PORT_FIRST": str(first),
            "HARNESS_PORT_LAST": str(first + PORTS - 1),
            # Without its `.git` a work tree would be part of whatever repository lies around it.
            "GIT_CEILING_DIRECTORIES": self.place,
        }


def limits(allowed: Budget) -> str:
    """Return other limits of a task as a line without its end."""
    return LIMITS + json.dumps(budget.write(allowed))


def write(config: WorkerConfig) -> str:
    """Return `config` as a line without its end."""
    return json.dumps(asdict(config))


def read(line: str) -> WorkerConfig:
    """Return the configuration that `write` made `line` of."""
    return WorkerConfig(**json.loads(line, object_hook=_tuples))


def _tuples(document: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
