"""Files of text as tools read and write them: nothing of what they do not change gets lost."""

from __future__ import annotations

import os
from pathlib import Path

from harness_lib.loop.tools.builtin import ToolError
from harness_lib.system.files import atomic


def read(path: Path) -> str:
    """Return the text of `path`, line ends as they are. Raises ToolError for what is no text file."""
    if path.is_dir():
        raise ToolError(f"{path} is a directory")
    if not path.exists():
        raise ToolError(f"{path} does not exist")
    if not path.is_file():
        raise ToolError(f"{path} is no regular file")
    data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not UTF-8 text") from None


def write(path: Path, text: str) -> None:
    """Replace the content of `path` in one step; its mode, and a symlink, stay. Makes its parents."""
    if path.exists() and not path.is_file():
        raise ToolError(f"{path} is no regular file")
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(target, text.encode("utf-8", "replace"), durable=False)


def split(text: str) -> list[str]:
    """Return the lines of `text`; a line break at the end ends the last line and begins none."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
