"""An editor as a client of `hs acp`: the official library, and a real process behind its pipes."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.conftest import CHECKOUT
from tests.forked import Forked, with_children
from tests.loop.environment import environment
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    import acp
    from acp.interfaces import Client
else:

    class _WhenUsed:
        """Import the library when it is used: each worker would pay two seconds for it to collect."""

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                # pytest asks each object of a module whether it is a fixture.
                raise AttributeError(name)
            return getattr(importlib.import_module("acp"), name)

    acp = _WhenUsed()

__all__ = ["Editor", "acp", "editor", "pytest_pyfunc_call"]
# The seconds of a test.
LIMIT = 90


class Editor:
    """Keeps what it is told, and answers each question with `answer`; with "never" it does not answer.

    It starts `hs acp` with the environment `env`, and opens sessions in `project`.
    """

    def __init__(self, env: dict[str, str], project: Path) -> None:
        self.env, self.project = env, project
        self.answer = "allow_once"
        self.updates: list[Any] = []
        self.questions: list[tuple[Any, Any]] = []
        self.processes: list[Any] = []
        self.pipes: list[asyncio.StreamWriter] = []

    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002
        self.updates.append(update)

    async def request_permission(
        self,
        session_id: str,  # noqa: ARG002
        tool_call: Any,
        options: Any,
        **_: Any,
    ) -> acp.schema.RequestPermissionResponse:
        self.questions.append((tool_call, options))
        if self.answer == "never":
            await asyncio.Event().wait()
        outcome = acp.schema.AllowedOutcome(outcome="selected", option_id=self.answer)
        return acp.schema.RequestPermissionResponse(outcome=outcome)

    def updates_of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    def ended(self) -> list[Any]:
        """Return what was told of each call at its end."""
        calls = self.updates_of("tool_call_update")
        return [update for update in calls if update.status in {"completed", "failed"}]

    def said(self) -> str:
        """Return all that the agent has answered."""
        return "".join(update.content.text for update in self.updates_of("agent_message_chunk"))

    async def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.updates
            await asyncio.sleep(0.02)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        """Start `hs acp`, and yield the connection."""
        (said, heard), (answers, answered) = socket.socketpair(), socket.socketpair()
        env = environment(self.env)
        with heard, answers:
            process = Forked(
                ["acp"], program=with_children(), stdin=heard, stdout=answers, env=env, cwd=CHECKOUT
            )
        self.processes.append(process)
        _, writer = await asyncio.open_connection(sock=said)
        reader, unused = await asyncio.open_connection(sock=answered, limit=1 << 24)
        self.pipes += (writer, unused)
        conn = acp.connect_to_agent(cast("Client", self), writer, reader, use_unstable_protocol=True)
        try:
            await conn.initialize(protocol_version=1)
            yield conn
        finally:
            await conn.close()
            for each in (writer, unused):
                each.close()
            await asyncio.to_thread(process.wait, 60)

    @asynccontextmanager
    async def opened(self, **options: Any) -> AsyncIterator[Opened]:
        """Start `hs acp`, and open a session in the project."""
        async with self.connected() as conn:
            yield await self.opens(conn, **options)

    async def prompts(self, text: str = "go", **options: Any) -> None:
        """Open a session in the project, send one prompt, and wait for the end of the turn."""
        async with self.opened(**options) as session:
            await session.says(text)

    async def opens(self, conn: Any, **options: Any) -> Opened:
        """Open a session in the project."""
        session = await conn.new_session(cwd=str(self.project), **options)
        return Opened(conn, session.session_id, session.config_options)


@dataclass
class Opened:
    """A session that an editor has opened, and its options then."""

    conn: Any
    id: str
    options: Any = ()

    async def says(self, *said: Any) -> Any:
        """Send a prompt of texts and other blocks, and return how its turn has ended."""
        blocks = [acp.text_block(each) if isinstance(each, str) else each for each in said]
        return await self.conn.prompt(session_id=self.id, prompt=blocks)

    async def cancel(self) -> None:
        await self.conn.cancel(session_id=self.id)

    async def sets(self, option: str, value: str) -> Any:
        """Set an option of the session, and return its options."""
        return await self.conn.set_config_option(config_id=option, session_id=self.id, value=value)


@pytest.fixture
def editor(served: dict[str, str], project: Path) -> Editor:
    """Return an editor whose model is that served last."""
    return Editor(served, project)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Let a test that is a coroutine do its work, within a limit."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asked = inspect.signature(pyfuncitem.obj).parameters
    work = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in asked})
    asyncio.run(asyncio.wait_for(work, LIMIT))
    return True
