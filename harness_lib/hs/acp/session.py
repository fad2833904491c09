"""A session as the process that speaks the protocol sees it: another process, and what it tells."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from acp import RequestError, schema

from harness_lib.hs.acp import inbox, updates
from harness_lib.loop.piped import Json, as_object, dumps
from harness_lib.system.install import launcher

_LINE_LIMIT = 256 * 1024 * 1024
_END_SECONDS = 10.0
_INTERNAL = -32603
_STOPS = {
    "length": "max_tokens",
    "max_turns": "max_turn_requests",
    "refusal": "refusal",
    "content_filter": "refusal",
    "cancelled": "cancelled",
}
Tell = Callable[[str, Any], Awaitable[None]]
Ask = Callable[[str, schema.ToolCallUpdate, str], Awaitable[str]]
# Requests and what clients of the original agent loop do not say in them.
_LEFT_OUT: dict[str, Json] = {
    "initialize": {"protocolVersion": 1},
    "session/new": {"mcpServers": []},
    "session/prompt": {},
}
# Far more than a prompt with files in it.
LONGEST = 256 * 1024 * 1024


class SessionProcess:
    """One session: `tell` takes its updates, `ask` the questions for a person."""

    def __init__(self, cwd: Path, tell: Tell, ask: Ask) -> None:
        self.id = ""
        self.directory = Path()
        self.config: list[Json] = []
        self.commands: list[Json] = []
        self.updates = updates.Updates(cwd)
        self._cwd = cwd
        self._tell = tell
        self._ask = ask
        self._turn = 0
        self._answers: asyncio.Queue[Json] = asyncio.Queue()
        self._settings: asyncio.Queue[Json] = asyncio.Queue()
        self._busy = asyncio.Lock()
        self._setting = asyncio.Lock()
        self._questions: set[asyncio.Task[None]] = set()

    async def open(self, first: Json) -> None:
        """Start its process. Raises RequestError with the reason if it cannot be opened."""
        self._process = await asyncio.create_subprocess_exec(
            *launcher.hs(), "acp", "--session",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            cwd=self._cwd, env=dict(os.environ), limit=_LINE_LIMIT, start_new_session=True,
        )  # fmt: skip
        self._send(first)
        opened = await self._next()
        if opened.get("type") != "opened":
            await self.close()
            raise RequestError(_INTERNAL, str(opened.get("message") or "The session's process ended."))
        self.id, self.directory = str(opened["session"]), Path(opened["directory"])
        self.config, self.commands = opened["config"], opened["commands"]
        self._reader = asyncio.create_task(self._read())

    async def prompt(self, text: str) -> schema.PromptResponse:
        """Take a turn; return why it ended. Raises RequestError where the provider or a hook failed."""
        if self._busy.locked():
            raise RequestError(-32600, "The session is at work; wait for its answer, or cancel it.")
        async with self._busy:
            self._turn += 1
            self._send({"prompt": text, "turn": self._turn})
            result = await self._answers.get()
            for update in self.updates.abandoned():
                await self._tell(self.id, update)
        reason: Any = _STOPS.get(str(result["stop"]), "end_turn")
        if result["error"] and reason == "end_turn":
            raise RequestError(_INTERNAL, str(result["error"]))
        tokens_in, tokens_out = int(result["tokens_in"]), int(result["tokens_out"])
        usage = schema.Usage(
            input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out
        )
        return schema.PromptResponse(stop_reason=reason, usage=usage)

    def cancel(self) -> None:
        """End the turn of this moment, wherever it is."""
        if self._busy.locked():
            self._send({"cancel": self._turn})
            self._withdraw()

    async def choose(self, name: str, value: str) -> list[Json]:
        """Change a setting, after the turn of this moment; return all of them. Raises RequestError."""
        async with self._setting:
            self._send({"config": name, "value": value})
            reply = await self._settings.get()
        if reply["error"]:
            raise RequestError(-32602, str(reply["error"]))
        self.config = reply["config"]
        return self.config

    async def close(self) -> None:
        """End its process, and with it the turn of this moment and all that its tools have started."""
        self._withdraw()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()

    def _withdraw(self) -> None:
        for question in self._questions:
            question.cancel()

    def _send(self, line: Json) -> None:
        if self._process.stdin is None or self._process.returncode is not None:
            raise RequestError(_INTERNAL, "The session's process has ended; load the session again.")
        self._process.stdin.write(f"{dumps(line)}\n".encode())

    async def _next(self) -> Json:
        """Return the next line that its process tells; an empty one when there are no more."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            event = as_object(line.decode("utf-8", "replace"))
            if event is not None:
                return event
        return {}

    async def _read(self) -> None:
        while event := await self._next():
            kind = event.get("type")
            if kind == "result":
                self._answers.put_nowait(event)
            elif kind == "config":
                self._settings.put_nowait(event)
            elif kind == "permission":
                question = asyncio.create_task(self._question(event))
                self._questions.add(question)
                question.add_done_callback(self._questions.discard)
            else:
                for update in self.updates.of(event):
                    await self._tell(self.id, update)
        gone = "The session's process has ended; load the session again."
        self._answers.put_nowait({"stop": "error", "error": gone, "tokens_in": 0, "tokens_out": 0})
        self._settings.put_nowait({"error": gone})

    async def _question(self, event: Json) -> None:
        call = self.updates.asked(event["call"])
        answer = inbox.REJECT_ONCE
        try:
            answer = await self._ask(self.id, call, str(event["for"]))
        except (RequestError, ConnectionError):
            # A client that cannot ask a person has not said yes.
            pass
        finally:
            # Whoever waits for it goes on, also where the turn was cancelled.
            self._send({"permission": event["asked"], "answer": answer})


class Lines:
    """A transport of the protocol's package, over the two streams of the client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        # One line after another, also where a slow client has to be waited for.
        self._turn = asyncio.Lock()
        # What a client that has said all it wants to say still waits for; a turn is no such thing.
        self._waiting: set[int | str] = set()
        self._answered = asyncio.Event()

    async def send(self, message: Json) -> None:
        """Write a message."""
        async with self._turn:
            self._writer.write(f"{dumps(message)}\n".encode())
            await self._writer.drain()
        if "method" not in message and message["id"] is not None:
            self._waiting.discard(message["id"])
            self._answered.set()

    async def receive(self) -> Json | None:
        """Return the next message; None when no more will come."""
        while True:
            try:
                line = await self._reader.readline()
                if not line:
                    await self._end()
                    return None
                message = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError):
                # No JSON, or a line beyond LONGEST.
                await self._refuse(RequestError.parse_error())
                continue
            if isinstance(message, dict) and _is_message(message):
                if message.get("id") is not None and message.get("method") not in {None, "session/prompt"}:
                    self._waiting.add(message["id"])
                return _completed(message)
            if line.strip():
                await self._refuse(RequestError.invalid_request())

    async def _end(self) -> None:
        """Wait for the answers to what was asked last."""
        while self._waiting:
            self._answered.clear()
            await self._answered.wait()

    async def close(self) -> None:
        """Leave the streams to the process, which ends."""

    async def _refuse(self, error: RequestError) -> None:
        # Whose request it was cannot be told, so JSON-RPC wants null for its id.
        await self.send({"jsonrpc": "2.0", "id": None, "error": error.to_error_obj()})


def _completed(message: Json) -> Json:
    """Return `message` with what clients of the original agent loop leave out."""
    params = message.get("params") or {}
    if message.get("method") not in _LEFT_OUT or not isinstance(params, dict):
        return message
    params = {**_LEFT_OUT[message["method"]], **params}
    if isinstance(blocks := params.get("prompt"), list):
        params["prompt"] = [{"type": "text", **each} if isinstance(each, dict) else each for each in blocks]
    return {**message, "params": params}


def _is_message(value: Json) -> bool:
    """Return whether `value` is a request, a notification or a response, as far as its keys go."""
    if not isinstance(value.get("id"), int | str | None):
        return False
    if "method" in value:
        return isinstance(value["method"], str)
    return "id" in value and isinstance(value.get("error"), dict | None)
