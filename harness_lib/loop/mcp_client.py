"""Connections to MCP servers by the official package, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent import futures
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import mcp
import pydantic
import pydantic_core
from mcp import types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from harness_lib.loop import disk
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.tools import builtin
from harness_lib.text import sentence

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

START_SECONDS = 10.0
_END_SECONDS = 8.0
_CLOSED = (types.CONNECTION_CLOSED, "Connection closed")

_PACKAGE = logging.getLogger("mcp")
_PACKAGE.propagate = False
# Without a handler, logging would write to standard error.
_PACKAGE.addHandler(logging.NullHandler())

T = TypeVar("T")


class Server(Protocol):
    """A server; `filled` is its entry, with a `command` or a `url`."""

    @property
    def name(self) -> str: ...

    @property
    def filled(self) -> Json: ...

    def remember(self, tools: list[Json]) -> None:
        """Take its tools, as it has told them."""
        ...


class _ToLog(logging.Handler):
    """Writes to the log that `opened` opens."""

    def __init__(self, opened: Callable[[], io.TextIOWrapper]) -> None:
        super().__init__()
        self._opened = opened

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError), self._opened() as log:
            log.write(f"{self.format(record)}\n")


class Connections:
    """The servers of a run: started when they are first needed, ended with it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop = asyncio.new_event_loop()
        # The task that holds each connection, and the client when it is ready.
        self._open: dict[str, tuple[asyncio.Task[None], asyncio.Future[mcp.Client]]] = {}
        self._calls: set[Future[tuple[str, bool]]] = set()
        # The status with which a server over HTTP has refused the last request; 0 if it has not.
        self._refused: dict[str, int] = {}
        # On standard error, messages of the package would disturb the prompt.
        self._heard = _ToLog(self._log)
        _PACKAGE.addHandler(self._heard)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def learn(self, servers: list[Server]) -> bool:
        """Ask all of `servers` for their tools at once; name those that do not answer."""
        asked = [(server, self._start(self._list(server))) for server in servers]
        deadline = time.monotonic() + START_SECONDS
        answered = False
        for server, future in asked:
            left = max(0.0, deadline - time.monotonic())
            problem = self._problem(server, future, left, START_SECONDS)
            if problem:
                self._runtime.notice(sentence(f"the MCP server {server.name} is left out: {problem}"))
            answered |= not problem
        return answered

    def refresh(self, servers: list[Server]) -> None:
        """Query servers in the background; keep the cached tools of those that do not respond."""
        for server in servers:
            self._start(self._list(server))

    def call(self, server: Server, tool: str, tool_input: Json) -> tuple[str, bool]:
        """Return the result of the tool, and whether it is an error."""
        future = self._start(self._call(server, tool, tool_input))
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        seconds = builtin.usual_seconds(self._runtime.env)
        problem = self._problem(server, future, seconds + START_SECONDS, seconds)
        return (
            (f"error: the MCP server {server.name} failed: {problem}", True) if problem else future.result()
        )

    def cancel(self) -> None:
        """Cancel the calls that are running."""
        for future in list(self._calls):
            future.cancel()

    def close(self) -> None:
        """End the servers."""
        with suppress(futures.TimeoutError, asyncio.CancelledError):
            self._start(self._end()).result(_END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
        _PACKAGE.removeHandler(self._heard)

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _problem(self, server: Server, future: Future[T], seconds: float, limit: float) -> str:
        """Wait so many `seconds` for `future`, which has a `limit`; return "" or why nothing came."""
        late = f"no answer within {limit:.0f} s"
        try:
            error = future.exception(seconds)
        except (futures.TimeoutError, CancelledError):
            return late
        finally:
            # Its result is not needed any more, also where the turn is interrupted.
            future.cancel()
        if not error:
            return ""
        if isinstance(error, asyncio.TimeoutError):
            return late
        if "url" not in server.filled:
            return _said(error, closed="it has ended; what it said is in the session's mcp.log")
        status = self._refused.pop(server.name, 0)
        return f"{_said(error)} (HTTP {status})" if status else _said(error)

    async def _list(self, server: Server) -> list[Json]:
        client = await self._client(server)
        tools: list[Json] = []
        cursor: str | None = None
        for _ in range(100):
            page = await asyncio.wait_for(client.list_tools(cursor=cursor), START_SECONDS)
            tools += [_spec(tool) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        server.remember(tools)
        return tools

    async def _call(self, server: Server, tool: str, tool_input: Json) -> tuple[str, bool]:
        client = await self._client(server)
        try:
            done = await asyncio.wait_for(
                client.call_tool(tool, tool_input), builtin.usual_seconds(self._runtime.env)
            )
        except mcp.MCPError as error:
            # A server over HTTP that has forgotten the session refuses it, each with a code of its own.
            if _is_closed(error) or self._refused.get(server.name):
                await self._end(server.name)
            raise
        parts = [_text(block) for block in done.content]
        if not parts and done.structured_content is not None:
            parts = [dumps(done.structured_content)]
        return "\n".join(parts), bool(done.is_error)

    async def _client(self, server: Server) -> mcp.Client:
        if server.name not in self._open:
            future: asyncio.Future[mcp.Client] = self._loop.create_future()
            self._open[server.name] = asyncio.create_task(self._hold(server, future)), future
        holder, ready = self._open[server.name]
        either: set[asyncio.Future[Any]] = {holder, ready}
        await asyncio.wait(either, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if holder.done():
            holder.result()
        if not ready.done():
            raise asyncio.TimeoutError
        return ready.result()

    async def _hold(self, server: Server, ready: asyncio.Future[mcp.Client]) -> None:
        """Keep the connection in the task that has opened it, as the package demands."""
        try:
            with self._log() as log:
                async with mcp.Client(self._transport(server, log)) as client:
                    ready.set_result(client)
                    await asyncio.Event().wait()
        finally:
            # The next call starts the server again.
            del self._open[server.name]

    async def _end(self, name: str = "") -> None:
        """End the connection to the server `name`, or all of them."""
        holders = [holder for each, (holder, _) in self._open.items() if name in {"", each}]
        for holder in holders:
            holder.cancel()
        await asyncio.gather(*holders, return_exceptions=True)

    def _transport(self, server: Server, log: Any) -> Any:
        config = server.filled
        if "url" in config:
            client = create_mcp_http_client(headers=config.get("headers", {}))

            async def look(response: Any) -> None:
                # A server need not know GET and DELETE, and no call fails for them.
                if response.request.method == "POST":
                    self._refused[server.name] = response.status_code if response.is_error else 0

            client.event_hooks["response"].append(look)
            return streamable_http_client(config["url"], http_client=client)
        parameters = mcp.StdioServerParameters(
            command=config["command"],
            args=config.get("args", []),
            env=config.get("env", {}),
            cwd=self._runtime.work_directory,
            # Some print lines of a log there, in whatever encoding.
            encoding_error_handler="replace",
        )
        return stdio_client(parameters, errlog=log)

    def _log(self) -> io.TextIOWrapper:
        session = self._runtime.session
        path = session.directory / "mcp.log" if session else Path(os.devnull)
        return io.TextIOWrapper(disk.appending(path), encoding="utf-8", write_through=True)


def _spec(tool: types.Tool) -> Json:
    reads = tool.annotations is not None and tool.annotations.read_only_hint is True
    return {
        "name": tool.name,
        "description": tool.description or tool.title or "",
        # A default that is NaN is not JSON, and hosts refuse the whole request.
        "input_schema": pydantic_core.from_json(
            pydantic_core.to_json(tool.input_schema, inf_nan_mode="null")
        ),
        "reads": reads,
    }


def _text(block: Any) -> str:
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    if isinstance(block, types.ResourceLink):
        return f"[{block.name}]({block.uri})"
    return f"[a block of the type {block.type}, which hs cannot show a model yet]"


def _is_closed(error: BaseException) -> bool:
    """Return whether the connection is lost; servers give errors of their own the same code."""
    return isinstance(error, mcp.MCPError) and (error.code, str(error)) == _CLOSED


def _said(error: BaseException, closed: str = "") -> str:
    """Return the words of an error, or `closed` for a lost connection; of a group, those of the first."""
    if inner := getattr(error, "exceptions", None):
        return _said(inner[0], closed)
    if closed and _is_closed(error):
        return closed
    if isinstance(error, pydantic.ValidationError):
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"its answer does not follow the protocol ({where}: {first['msg']})"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
