"""A run in a session, and its tools as the calls of a model run them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_lib.hs import session_store
from harness_lib.loop import plugins
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from tests.loop.in_process import begun

Do = Callable[..., Result]


@pytest.fixture
def run(project: Path) -> Runtime:
    """Return a run in a session of `project`."""
    run = begun(project)
    run.enter(session_store.create(run))
    return run


@pytest.fixture
def do(run: Runtime) -> Do:
    """Return a callable that runs a tool as a model's call does."""

    def call(tool: str, /, **arguments: Any) -> Result:
        found = plugins.tool(run, tool)
        assert found
        return found.execute(run, arguments)

    return call
