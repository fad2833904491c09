"""The MCP servers of these tests: their entries in `mcp.json`, their tools in a request, their end."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import forked

SERVERS = Path(__file__).parent / "servers"
# As a shell starts the one that knows the older protocol only.
OLD_SERVER = shlex.join([sys.executable, str(SERVERS / "old_mcp_server.py")])


def entry(*args: str, program: str = "mcp_server.py", **more: Any) -> dict[str, Any]:
    """Return the entry of a server that is spoken with over pipes; it is forked."""
    command, *words = forked.command(_run(program))
    return {"command": command, "args": [*words, *args], **more}


def _run(program: str) -> str:
    return f"import runpy; runpy.run_path({str(SERVERS / program)!r}, run_name='__main__')"


def offered(request: dict[str, Any]) -> list[str]:
    """Return the names of servers' tools in a request of the chat wire."""
    return [name for tool in request["tools"] if (name := tool["function"]["name"]).startswith("mcp__")]


def have_ended(project: Path) -> bool:
    """Return whether every server that was started here has ended."""
    pids = [int(line) for line in (project / "started").read_text().split()]
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(pids) and not any(Path(f"/proc/{pid}").exists() for pid in pids)


@contextmanager
def listening(program: str, cwd: Path) -> Iterator[str]:
    """Start a server over HTTP, and yield its address."""
    process = forked.Forked(["http"], program=_run(program), cwd=cwd, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
