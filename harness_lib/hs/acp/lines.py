"""The client's lines of JSON-RPC: one that is no message gets an error reply, and the next one is read."""

from __future__ import annotations

import asyncio
import json

from acp import RequestError

from harness_lib.loop.piped import Json, dumps

# Far more than a prompt with files in it.
LONGEST = 256 * 1024 * 1024


class Lines:
    """A transport of the protocol's package, over the two streams of the client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        # One line after another, also where a slow client has to be waited for.
        self._turn = asyncio.Lock()

    async def send(self, message: Json) -> None:
        """Write a message."""
        async with self._turn:
            self._writer.write(f"{dumps(message)}\n".encode())
            await self._writer.drain()

    async def receive(self) -> Json | None:
        """Return the next message; None when no more will come."""
        while True:
            try:
                line = await self._reader.readline()
                if not line:
                    return None
                message = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError):
                # No JSON, or a line beyond LONGEST.
                await self._refuse(RequestError.parse_error())
                continue
            if isinstance(message, dict) and _is_message(message):
                return message
            if line.strip():
                await self._refuse(RequestError.invalid_request())

    async def close(self) -> None:
        """Leave the streams to the process, which ends."""

    async def _refuse(self, error: RequestError) -> None:
        # Whose request it was cannot be told, so JSON-RPC wants null for its id.
        await self.send({"jsonrpc": "2.0", "id": None, "error": error.to_error_obj()})


def _is_message(value: Json) -> bool:
    """Return whether `value` is a request, a notification or a response, as far as its keys go."""
    if not isinstance(value.get("id"), int | str | None):
        return False
    if "method" in value:
        return isinstance(value["method"], str)
    return "id" in value and isinstance(value.get("error"), dict | None)
