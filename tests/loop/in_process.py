"""Runs of the loop inside the process of the test, which may look into them; see the fixture `in_process`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.hs import session_store
from harness_lib.loop import discovery, runtime
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.session import Call
from tests.loop.environment import environment
from tests.loop.servers.script import ModelServer

if TYPE_CHECKING:
    from tests.loop.conftest import Wire

# The fixture closes them when the test is over.
STARTED: list[Runtime] = []


def begun(project: Path, **env: str) -> Runtime:
    """Return a run in `project` that has found its plugins, and has no session."""
    run = runtime.start(environment({"HARNESS_LOG": os.devnull, **env}), project)
    discovery.refresh(run)
    return run


def started(project: Path, wire: Wire, server: ModelServer, **more: str) -> Runtime:
    """Return a run whose session begins with one message of the user."""
    chosen = {"HARNESS_PROVIDER": wire.provider, "HARNESS_MODEL": "model-one"}
    run = begun(project, **{**wire.environment(server), **chosen, **more})
    run.enter(session_store.create(run))
    run.session.append("user", {}, "RUN it")
    STARTED.append(run)
    return run


def calls_of(run: Runtime) -> list[Call]:
    """Return the calls of all answers so far."""
    answers = [message for message in run.session.messages() if message.role == "assistant"]
    return [block for answer in answers for block in answer.blocks if isinstance(block, Call)]


def results_of(run: Runtime) -> list[str]:
    """Return what the calls so far came to."""
    return [message.body for message in run.session.messages() if message.role == "tool_result"]
