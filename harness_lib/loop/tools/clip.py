"""The result of a tool in bounds: what is too much for the model goes to a file of the session."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

MAX_BYTES = 50_000
MAX_LINES = 2000
_END = MAX_BYTES // 2


def read(runtime: Runtime, output: IO[bytes]) -> str:
    """Return the text of `output`, or both its ends and the file that holds all of it. Closes `output`."""
    with output:
        output.seek(0, 2)
        size = output.tell()
        output.seek(0)
        head = output.read(MAX_BYTES + 1)
        if size <= MAX_BYTES and head.count(b"\n") <= MAX_LINES:
            return _text(head)
        output.seek(max(0, size - _END))
        tail = output.read()
        output.seek(0)
        kept = _keep(runtime, output)
    first, last = _first(head), _last(tail)
    return f"{first}\n\n[... {size} bytes in all{kept}; this is the beginning and the end ...]\n\n{last}"


def _first(head: bytes) -> str:
    return "\n".join(_text(head[:_END]).split("\n")[: MAX_LINES // 2])


def _last(tail: bytes) -> str:
    return "\n".join(_text(tail).split("\n")[-MAX_LINES // 2 :])


def _keep(runtime: Runtime, output: IO[bytes]) -> str:
    """Copy all of it into the session; return the words that say where."""
    if runtime.session is None:
        return ""
    directory = runtime.session.directory / "output"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        path = _free(directory)
        with path.open("xb") as kept:
            path.chmod(0o600)
            shutil.copyfileobj(output, kept)
    except OSError as error:
        return f", which could not be kept: {error.strerror}"
    return f", all of it in {path}"


def _free(directory: Path) -> Path:
    number = 1 + sum(1 for _ in directory.iterdir())
    while (path := directory / f"{number:04d}.txt").exists():
        number += 1
    return path


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "")
