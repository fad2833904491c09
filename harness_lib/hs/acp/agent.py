"""Serve the client's requests: open, find and close sessions, and pass each prompt to its session."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from acp import PROTOCOL_VERSION, RequestError, run_agent, schema, stdio_streams

from harness_lib import __version__
from harness_lib.hs import session_store
from harness_lib.hs.acp import ALLOW_ALWAYS, ALLOW_ONCE, REJECT_ONCE
from harness_lib.hs.acp.session import LONGEST, Lines, SessionProcess, commands
from harness_lib.loop import disk, runtime
from harness_lib.loop.piped import Json
from harness_lib.loop.session import Session
from harness_lib.system.processes import own_process

if TYPE_CHECKING:
    from acp import interfaces
    from acp.interfaces import Client


_INVALID = -32602
_PAGE = 50
Block = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
Server = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio
Servers = list[Server] | None


def serve() -> int:
    """Serve the client on standard input and output until it goes."""
    for each in (signal.SIGINT, signal.SIGTERM):
        # This process may die at once: the sessions' processes see it go, and end what they have started.
        signal.signal(each, signal.SIG_DFL)
    asyncio.run(_serve())
    # The transports have closed the streams of a client that is gone.
    own_process.open_closed_streams()
    return 0


async def _serve() -> None:
    agent = Agent()
    lines = Lines(*await stdio_streams(limit=LONGEST))
    try:
        # Closing and resuming a session are no part of the package's stable half yet.
        await run_agent(cast("interfaces.Agent", agent), lines, use_unstable_protocol=True)
    finally:
        await agent.end()


class Agent:
    """The requests that a client may make."""

    def __init__(self) -> None:
        self._sessions: dict[str, SessionProcess] = {}
        self._announcements: set[asyncio.Future[None]] = set()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:  # noqa: ARG002
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="harness", title="Harness", version=__version__),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=True),
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    async def new_session(self, cwd: str, mcp_servers: Servers = None, **_: Any) -> schema.NewSessionResponse:
        session = await self._open(cwd, {}, mcp_servers)
        return schema.NewSessionResponse(session_id=session.id, config_options=session.config)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Servers = None, **_: Any
    ) -> schema.LoadSessionResponse:
        session = await self._open(cwd, {"session": session_id}, mcp_servers)
        for update in session.updates.replay(Session(session.directory).messages()):
            await self._client.session_update(session.id, update)
        return schema.LoadSessionResponse(config_options=session.config)

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Servers = None, **_: Any
    ) -> schema.ResumeSessionResponse:
        session = await self._open(cwd, {"session": session_id}, mcp_servers)
        return schema.ResumeSessionResponse(config_options=session.config)

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> schema.ListSessionsResponse:
        directory = _directory(cwd) if cwd else Path.cwd()
        sessions = session_store.every(runtime.start(os.environ, directory))
        if cwd:
            sessions = [each for each in sessions if each.conf.get("cwd") == str(directory)]
        start = disk.number(cursor or "")
        end = start + _PAGE
        return schema.ListSessionsResponse(
            sessions=[_info(each) for each in sessions[start:end]],
            next_cursor=str(end) if len(sessions) > end else None,
        )

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        session = self._known(session_id)
        del self._sessions[session_id]
        await session.close()
        return schema.CloseSessionResponse()

    async def set_config_option(
        self,
        config_id: str,
        session_id: str,
        value: str | bool,  # noqa: FBT001 (as the protocol has it)
        **_: Any,
    ) -> schema.SetSessionConfigOptionResponse:
        settings = await self._known(session_id).choose(config_id, str(value))
        return schema.SetSessionConfigOptionResponse(config_options=settings)

    async def prompt(self, session_id: str, prompt: list[Block], **_: Any) -> schema.PromptResponse:
        text = "\n\n".join(text for block in prompt if (text := _text(block)).strip())
        session = self._known(session_id)
        if not text:
            raise RequestError(_INVALID, "The prompt is empty, so the model was not asked.")
        return await session.prompt(text)

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._sessions:
            self._sessions[session_id].cancel()

    async def end(self) -> None:
        """End every session."""
        await asyncio.gather(*(session.close() for session in self._sessions.values()))

    async def _open(self, cwd: str, first: Json, named: Servers) -> SessionProcess:
        # First what may be refused: a session that is open stays so then.
        directory, servers = _directory(cwd), {server.name: _entry(server) for server in named or []}
        before = self._sessions.pop(str(first.get("session")), None)
        if before:
            # It is held by the process that has it open.
            await before.close()
        session = SessionProcess(directory, self._client.session_update, self._ask)
        await session.open({**first, "servers": servers})
        self._sessions[session.id] = session
        # The client must know the session before it hears of it.
        asyncio.get_running_loop().call_soon(self._announce, session)
        return session

    def _announce(self, session: SessionProcess) -> None:
        task = asyncio.ensure_future(self._client.session_update(session.id, commands(session.commands)))
        self._announcements.add(task)
        task.add_done_callback(self._announced)

    def _announced(self, task: asyncio.Future[None]) -> None:
        self._announcements.discard(task)
        # A client that has gone need not hear of it.
        if not task.cancelled():
            task.exception()

    async def _ask(self, session_id: str, call: schema.ToolCallUpdate, subject: str) -> str:
        always = f"Always allow in this session: {subject}"
        options = [
            schema.PermissionOption(option_id=ALLOW_ONCE, name="Allow once", kind="allow_once"),
            schema.PermissionOption(option_id=ALLOW_ALWAYS, name=always, kind="allow_always"),
            schema.PermissionOption(option_id=REJECT_ONCE, name="Reject", kind="reject_once"),
        ]
        if not subject:
            del options[1]
        answer = await self._client.request_permission(session_id, call, options)
        if isinstance(answer.outcome, schema.AllowedOutcome):
            return answer.outcome.option_id
        return REJECT_ONCE

    def _known(self, session_id: str) -> SessionProcess:
        if session_id not in self._sessions:
            raise RequestError(_INVALID, f"The session {session_id} is not open; load it first.")
        return self._sessions[session_id]


def _directory(cwd: str) -> Path:
    path = Path(cwd)
    if not path.is_absolute() or not path.is_dir():
        raise RequestError(_INVALID, f"cwd must be the absolute path of a directory, not {cwd}.")
    return path


def _info(session: Session) -> schema.SessionInfo:
    changed = max(path.stat().st_mtime for path in (session.directory, *session.files()[-1:]))
    return schema.SessionInfo(
        session_id=session.id,
        cwd=session.conf.get("cwd", ""),
        title=session.title or None,
        updated_at=datetime.fromtimestamp(changed, timezone.utc).isoformat(timespec="seconds"),
    )


def _text(block: Block) -> str:
    """Return a text, a link or an embedded text. Raises RequestError for another block."""
    if isinstance(block, schema.TextContentBlock):
        return block.text
    if isinstance(block, schema.ResourceContentBlock):
        parts = urlsplit(block.uri)
        # Tools understand the path of a file.
        place = unquote(parts.path) if parts.scheme == "file" else block.uri
        return f"[{block.title or block.name}]({place})"
    if isinstance(block, schema.EmbeddedResourceContentBlock) and isinstance(
        block.resource, schema.TextResourceContents
    ):
        return f'<resource uri="{block.resource.uri}">\n{block.resource.text}\n</resource>'
    raise RequestError(-32602, "hs reads text, links and embedded text; no images, audio or other data yet.")


def _entry(server: Server) -> Json:
    """Return the entry of a server. Raises RequestError for an unsupported transport."""
    if isinstance(server, schema.McpServerStdio):
        env = {each.name: each.value for each in server.env}
        return {"command": server.command, "args": list(server.args), "env": env}
    if isinstance(server, schema.HttpMcpServer):
        return {"url": server.url, "headers": {each.name: each.value for each in server.headers}}
    raise RequestError(-32602, f"The MCP server {server.name} is neither stdio nor http.")
