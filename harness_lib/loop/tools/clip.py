"""The result of a tool in bounds: what is too much for the model goes to a file of the session."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING

from harness_lib.loop.provider_files import models

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

MAX_BYTES = 50_000
MAX_LINES = 2000
_CONTEXT_PART = 10
# As the context is counted: a quarter of the characters.
_BYTES_PER_TOKEN = 4
_PLACE = re.compile(r", all of it in .*(?=; this is the beginning and the end \.\.\.\])")


def read(runtime: Runtime, output: IO[bytes]) -> str:
    """Return the text of `output`, or both its ends and the file that holds all of it. Closes `output`."""
    most = _most(runtime)
    with output:
        output.seek(0, 2)
        size = output.tell()
        output.seek(0)
        head = output.read(most + 1)
        if size <= most and head.count(b"\n") <= MAX_LINES:
            return _text(head)
        output.seek(max(0, size - most // 2))
        tail = output.read()
        output.seek(0)
        kept = _keep(runtime, output)
    first, last = _first(head[: most // 2]), _last(tail)
    return f"{first}\n\n[... {size} bytes in all{kept}; this is the beginning and the end ...]\n\n{last}"


def text(runtime: Runtime, result: str) -> str:
    """Return `result`, or both its ends as `read` does."""
    return read(runtime, io.BytesIO(result.encode("utf-8", "replace")))


def without_place(result: str) -> str:
    """Return a clipped result without the name of its file, which is another one every time."""
    return _PLACE.sub("", result)


def _most(runtime: Runtime) -> int:
    """Return how many bytes a model gets of one result: a few of them must leave room for the work."""
    context = models.of(runtime).context
    return min(MAX_BYTES, context * _BYTES_PER_TOKEN // _CONTEXT_PART) if context else MAX_BYTES


def _first(head: bytes) -> str:
    return "\n".join(_text(head).split("\n")[: MAX_LINES // 2])


def _last(tail: bytes) -> str:
    return "\n".join(_text(tail).split("\n")[-MAX_LINES // 2 :])


def _keep(runtime: Runtime, output: IO[bytes]) -> str:
    """Copy all of it into the session; return the words that say where."""
    if runtime.session is None:
        return ""
    if runtime.session.is_full:
        return ", which was not kept: the session has reached its limit on disk"
    directory = runtime.session.directory / "output"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        with _new(directory) as kept:
            shutil.copyfileobj(output, kept)
    except OSError as error:
        return f", which could not be kept: {error.strerror}"
    return f", all of it in {kept.name}"


def _new(directory: Path) -> IO[bytes]:
    """Open the next file of `directory`; calls that run side by side each get their own."""
    number = 1 + sum(1 for _ in directory.iterdir())
    while True:
        try:
            stream = (directory / f"{number:04d}.txt").open("xb")
        except FileExistsError:
            number += 1
            continue
        Path(stream.name).chmod(0o600)
        return stream


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "")
