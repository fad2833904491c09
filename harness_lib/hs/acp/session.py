"""Run one session in a process of its own, and turn its events into the protocol's updates."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from acp import RequestError, helpers, schema

from harness_lib.hs.acp import REJECT_ONCE
from harness_lib.loop.piped import Json, as_object, dumps
from harness_lib.loop.session import Message, Text, Thinking
from harness_lib.system.install import launcher

_KINDS = {"bash": "execute", "glob": "search", "grep": "search", "read_file": "read", "skill": "read"}
# What the agent itself says of an event.
_NOTICES = {
    "held": "held: {reason}",
    "notice": "{message}",
    "retry": "{message}",
    "summary": "The conversation was summarised ({seq}).",
}
_EDITS = ("edit_file", "replace", "write_file")
_TITLE = 200
_PRINTED = 8000


class Updates:
    """Turns the events of one session into updates, and remembers which calls the client knows."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._open: dict[str, Json] = {}
        # What running tools have printed last.
        self._printed: dict[str, str] = {}

    def of(self, event: Json) -> list[Any]:
        """Return the updates for `event`."""
        kind = str(event.get("type"))
        if kind in _NOTICES:
            # The protocol has no notices of the agent itself.
            return [*self._on_thinking({"text": f"{_NOTICES[kind].format_map(event)}\n"})]
        convert = getattr(self, f"_on_{kind}", None)
        return list(convert(event)) if convert else []

    def abandoned(self) -> list[Any]:
        """Return a failure for each call that will never finish."""
        left, self._open = list(self._open), {}
        return [helpers.update_tool_call(each, status="failed") for each in left]

    def replay(self, messages: Iterable[Message]) -> Iterator[Any]:
        """Yield the updates that tell a client the whole conversation so far."""
        for message in messages:
            if message.role == "user":
                yield helpers.update_user_message_text(message.said)
            elif message.role == "assistant":
                for block in message.blocks:
                    if isinstance(block, Text):
                        yield from self._on_text({"text": block.text})
                    elif isinstance(block, Thinking):
                        yield from self._on_thinking({"text": block.text})
                    else:
                        event = {"id": block.id, "name": block.name, "input": block.input}
                        yield from self._on_tool_start(event)
            elif message.role == "tool_result":
                event = {"id": message.fields.get("call_id", ""), "error": message.fields.get("error")}
                yield from self._on_tool_done({**event, "result": message.body})
        yield from self.abandoned()

    def _on_text(self, event: Json) -> Iterator[Any]:
        yield helpers.update_agent_message_text(str(event.get("text", "")))

    def _on_thinking(self, event: Json) -> Iterator[Any]:
        yield helpers.update_agent_thought_text(str(event.get("text", "")))

    def _on_tool_start(self, event: Json) -> Iterator[Any]:
        if event.get("id") not in self._open:
            self._open[str(event["id"])] = event
            yield helpers.start_tool_call(status="pending", **self._shown(event))

    def _on_tool_run(self, event: Json) -> Iterator[Any]:
        # A permission hook may have changed the input, and a foreign provider reports no call before it runs.
        yield from self._on_tool_start(event)
        yield helpers.update_tool_call(status="in_progress", **self._shown(event))

    def _on_tool_progress(self, event: Json) -> Iterator[Any]:
        call = str(event["id"])
        if call in self._open:
            self._printed[call] = (self._printed.get(call, "") + str(event["text"]))[-_PRINTED:]
            content = [_content({"result": self._printed[call]})]
            yield helpers.update_tool_call(call, status="in_progress", content=content)

    def _on_tool_done(self, event: Json) -> Iterator[Any]:
        self._open.pop(str(event["id"]), None)
        self._printed.pop(str(event["id"]), None)
        status: schema.ToolCallStatus = "failed" if event.get("error") == "true" else "completed"
        yield helpers.update_tool_call(str(event["id"]), status=status, content=[_content(event)])

    def _on_usage(self, event: Json) -> Iterator[Any]:
        cost = schema.Cost(amount=event["cost"], currency="USD") if event["cost"] is not None else None
        yield schema.UsageUpdate(
            session_update="usage_update", used=event["used"], size=event["size"], cost=cost
        )

    def _shown(self, event: Json) -> Json:
        """Return what a client shows of a call before it has a result."""
        name, tool_input = str(event.get("name")), event.get("input") or {}
        path = tool_input.get("path")
        offset = tool_input.get("offset")
        line = offset if isinstance(offset, int) and offset >= 0 else None
        place = None
        if isinstance(path, str) and path and "\0" not in path:
            place = str(self._cwd / os.path.expanduser(path))  # noqa: PTH111 (as the tools do)
        return {
            "tool_call_id": str(event["id"]),
            "title": title(name, tool_input),
            "kind": "edit" if name in _EDITS else _KINDS.get(name, "other"),
            "locations": [schema.ToolCallLocation(path=place, line=line)] if place else None,
            "raw_input": tool_input,
        }

    def asked(self, call: Json) -> schema.ToolCallUpdate:
        """Return the call that the user is asked about, an edit with its difference."""
        content = [_content(call)] if call.get("diff") else None
        return schema.ToolCallUpdate(status="pending", content=content, **self._shown(call))


def _content(event: Json) -> Any:
    """Return the difference that `event` has, else its result."""
    if diff := event.get("diff"):
        return helpers.tool_diff_content(diff["path"], diff["new"], diff["old"])
    return helpers.tool_content(helpers.text_block(str(event.get("result", ""))))


def title(name: str, tool_input: Json) -> str:
    """Return one line that says what a call is about."""
    about = tool_input.get("command") if name == "bash" else tool_input.get("path") or tool_input.get("name")
    text = " ".join(str(about).split()) if about else ""
    return (text if name == "bash" and text else f"{name} {text}".rstrip())[:_TITLE]


def commands(known: Sequence[Json]) -> schema.AvailableCommandsUpdate:
    """Return the slash commands of a session."""
    hint = schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint="what to do"))
    return helpers.update_available_commands(schema.AvailableCommand(input=hint, **each) for each in known)


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
    "session/load": {"mcpServers": []},
    "session/prompt": {},
}
# Far more than a prompt with files in it.
LONGEST = 256 * 1024 * 1024


class SessionProcess:
    """One session; `tell` sends updates to the client, and `ask` asks the user."""

    def __init__(self, cwd: Path, tell: Tell, ask: Ask) -> None:
        self.id = ""
        self.directory = Path()
        # As the protocol has it.
        self.config: list[Any] = []
        self.commands: list[Json] = []
        self.updates = Updates(cwd)
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
            cwd=self._cwd, env=dict(os.environ), limit=LONGEST, start_new_session=True,
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
        """Take a turn and return why it ended. Raises RequestError if the provider or a hook failed."""
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
        """End the current turn at once."""
        if self._busy.locked():
            self._send({"cancel": self._turn})
            self._withdraw()

    async def choose(self, name: str, value: str) -> list[Any]:
        """Change a setting after the current turn and return all settings. Raises RequestError."""
        async with self._setting:
            self._send({"config": name, "value": value})
            reply = await self._settings.get()
        if reply["error"]:
            raise RequestError(-32602, str(reply["error"]))
        self.config = reply["config"]
        return self.config

    async def close(self) -> None:
        """End its process, and with it the current turn and everything that its tools have started."""
        self._withdraw()
        if self._process.stdin:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 10.0)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()

    def _withdraw(self) -> None:
        for question in self._questions:
            question.cancel()

    def _send(self, line: Json) -> None:
        if not self._process.stdin or self._process.returncode is not None:
            raise RequestError(_INTERNAL, "The session's process has ended; load the session again.")
        self._process.stdin.write(f"{dumps(line)}\n".encode())

    async def _next(self) -> Json:
        """Return the next event of the process; an empty one when there are no more."""
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
        answer = REJECT_ONCE
        try:
            answer = await self._ask(self.id, call, str(event["for"]))
        except (RequestError, ConnectionError, ValueError):
            # A client that cannot ask the user, or answers nonsense, has not said yes.
            pass
        finally:
            # The process waits for an answer, also if the turn was cancelled.
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
