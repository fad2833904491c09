"""What the user puts into a source of `hs`, at home or in a project: programs, MCP servers, models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    """Write a file and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def write_program(path: Path, text: str) -> Path:
    """Write an executable file and the directories above it."""
    return write(path, text, 0o755)


def write_servers(source: Path, **servers: Any) -> None:
    """Let the `mcp.json` of `source` name these MCP servers."""
    write(source / "mcp.json", json.dumps({"mcpServers": servers}))


def write_models(source: Path, *lines: str) -> None:
    """Let the `models.conf` of `source` have these lines."""
    write(source / "models.conf", "".join(f"{line}\n" for line in lines))
