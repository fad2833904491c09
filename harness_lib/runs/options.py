"""What a run and its workers are asked to do: their options, which travel to a worker as one JSON line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import Any

from harness_lib.agents import command, registry
from harness_lib.agents.adapter import Adapter
from harness_lib.core.context import Context, MergeMode, Merging
from harness_lib.rules import rechecks, recovery, run_state
from harness_lib.rules.run_state import Budget
from harness_lib.runs import confinement
from harness_lib.text import Strings

FIRST_PORT = 20000
PORTS = 100
LOCAL = Merging()


@dataclass(frozen=True)
class Rules:
    """The limits of an agent: seconds of silence, seconds in all, and the budget of a task."""

    silence: float = 900.0
    longest: float = 4 * 3600.0
    budget: Budget = field(default_factory=Budget)


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
    extra: Strings = ()
    silence: float = Rules.silence
    longest: float = Rules.longest
    max_file: float = 100.0
    precheck: bool = True
    skip_green: bool = False
    protect: Strings = ()


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


@dataclass(frozen=True, kw_only=True)
class Options(AgentOptions):
    """The options of a run.

    `final_check` None: by the number of tasks. `review`: finished work waits for the user's review. `merge`
    is where finished work goes, `merge_command` opens a pull request, `notify` is called when the user is
    needed.
    """

    workers: int = 1
    budget: Budget = field(default_factory=Budget)
    final_check: rechecks.Scope | None = None
    sandbox: confinement.Asked = field(default_factory=confinement.Asked)
    review: bool = False
    merge: MergeMode = "local"
    merge_command: str | None = None
    notify: str | None = None

    def worker_config(self, ctx: Context, number: int, place: str, limits: Budget) -> WorkerConfig:
        """Return the configuration of worker `number` of the run `ctx`."""
        assert ctx.target is not None
        return WorkerConfig(
            worker=recovery.worker_name(ctx.owner.worker, number),
            number=number,
            place=place,
            target=ctx.target,
            limits=run_state.write_budget(limits),
            merging=ctx.merging,
            **{each.name: getattr(self, each.name) for each in fields(AgentOptions)},
        )
