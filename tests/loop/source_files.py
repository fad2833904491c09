"""What the user puts into a source of `hs`, at home or in a project: programs, MCP servers, models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def at_home(name: str = "") -> Path:
    """Return the path of something in the user's own source."""
    return Path.home() / ".harness" / name


def write(path: Path | str, text: str, mode: int = 0o644) -> Path:
    """Write a file and the directories above it; a relative path begins at the user's own source."""
    path = at_home() / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def write_program(path: Path | str, text: str) -> Path:
    """Write an executable file and the directories above it."""
    return write(path, text, 0o755)


def write_script(path: Path | str, body: str) -> Path:
    """Write a program of the shell."""
    return write_program(path, f"#!/bin/sh\n{body}\n")


def write_tool(name: str, body: str, **schema: object) -> Path:
    """Write a tool at home that runs `body` in a shell; `schema` is what else it says of itself."""
    said = {"name": name, "description": "d", "input_schema": {"type": "object"}, **schema}
    return write_script(f"tools/{name}", f"[ $1 = --exec ] || exec echo '{json.dumps(said)}'\n{body}")


def write_provider(name: str, url: str, *lines: str) -> Path:
    """Describe a provider at home: of OpenAI's protocol, with a model `m`, unless `lines` say otherwise."""
    # The first of equal keys counts.
    said = (*lines, "protocol=openai", "model=m", f"url={url}")
    return write(f"providers/{name}.conf", "".join(f"{line}\n" for line in said))


def write_servers(source: Path | str = "", /, **servers: Any) -> None:
    """Let the `mcp.json` of `source` name these MCP servers."""
    write(Path(source, "mcp.json"), json.dumps({"mcpServers": servers}))


def write_models(*lines: str, source: Path | str = "") -> None:
    """Let the `models.conf` of `source` have these lines."""
    write(Path(source, "models.conf"), "".join(f"{line}\n" for line in lines))
