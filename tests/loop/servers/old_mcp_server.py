"""An MCP server by hand, of the protocol with sessions: `python old_mcp_server.py [http]`.

It knows nothing of the newer protocol, and refuses whoever does not begin with `initialize`. With `http` it
listens on 127.0.0.1, says where on standard output, and wants its session named in every request.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROTOCOL = "2025-06-18"
SESSIONS = ["the-session"]
TOOL = {
    "name": "spoken",
    "description": "Say what is spoken",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


def answer(message: dict[str, Any], authorization: str | None) -> dict[str, Any]:
    """Return the answer to a request."""
    method, wanted = message["method"], message.get("params", {}).get("arguments", {})
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        about = {"name": "old", "version": "1"}
        capabilities: dict[str, Any] = {"tools": {}}
        result: Any = {"protocolVersion": PROTOCOL, "capabilities": capabilities, "serverInfo": about}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call" and wanted.get("fail"):
        return {**head, "error": {"code": -32000, "message": "There is no such page"}}
    elif method == "tools/call":
        SESSIONS.extend(wanted.get("forget", []))
        result = {"content": [{"type": "text", "text": f"{PROTOCOL} {authorization}"}]}
    else:
        return {**head, "error": {"code": -32601, "message": f"Method not found: {method}"}}
    return {**head, "result": result}


def say(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    """Streamable HTTP, answered in JSON."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        named = self.headers.get("mcp-session-id")
        if message.get("method") != "initialize" and named != SESSIONS[-1]:
            # As the servers by the vendor's package in TypeScript say it.
            error = {"code": -32001, "message": "Session not found"}
            self.reply(404 if named else 400, {"jsonrpc": "2.0", "id": None, "error": error})
        elif "id" not in message:
            self.reply(202, None)
        else:
            self.reply(200, answer(message, self.headers.get("authorization")))

    def do_GET(self) -> None:
        self.reply(405, None)

    def do_DELETE(self) -> None:
        self.reply(200, None)

    def reply(self, status: int, value: dict[str, Any] | None) -> None:
        data = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        self.send_header("mcp-session-id", SESSIONS[-1])
        if data:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    if "http" in sys.argv:
        listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        say(f"http://127.0.0.1:{listening.server_address[1]}/mcp")
        listening.serve_forever()
    for line in sys.stdin:
        if "id" in (said := json.loads(line)):
            say(json.dumps(answer(said, None)))
