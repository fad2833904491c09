"""A tool that is a function, the bounds of its result, and the tool `bash`.

A file keeps what is too long for the model.
"""

from __future__ import annotations

import codecs
import io
import math
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from harness_lib.loop import confined, disk, hosted, keys, processes, trust
from harness_lib.loop.plugins import Result

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime


MAX_BYTES = 50_000
MAX_LINES = 2000
_CONTEXT_PART = 10
# As good as any larger number of lines or seconds, which may be too large to calculate with.
_LARGEST = 10**9
# The same estimate as for the context.
_BYTES_PER_TOKEN = 4
# In a clipped result, the name of its file, which is another one every time.
PLACE = re.compile(r", all of it in .*(?=; this is the beginning and the end \.\.\.\])")
_TYPES = {str: "string", int: "integer", bool: "boolean"}
# The id of the running call, under which the output of a program is reported.
CALL: ContextVar[str] = ContextVar("CALL", default="")


class ToolError(Exception):
    """The call cannot be done; the message tells the model why."""


class Change(NamedTuple):
    """The text of a file before and after an edit; `old` is None if there is no text yet."""

    path: Path
    old: str | None
    new: str


class Builtin(NamedTuple):
    """A built-in tool; `reads`: it changes nothing.

    `inputs` are told to the model: a text, or its type and a description, and "?" behind what may be missing.
    `change` returns what a call would make of a file, without doing it.
    """

    name: str
    description: str
    inputs: Mapping[str, str | tuple[type, str] | Json]
    function: Callable[[Runtime, Json], Result]
    reads: bool = False
    offered: Callable[[Runtime], bool] | None = None
    change: Callable[[Runtime, Json], Change] | None = None

    def schema(self, runtime: Runtime) -> Json | None:
        if self.offered and not self.offered(runtime):
            return None
        properties: Json = {}
        for key, told in self.inputs.items():
            kind, description = told if isinstance(told, tuple) else (str, told)
            typed = {"type": _TYPES[kind], "description": description}
            properties[key.rstrip("?")] = told if isinstance(told, dict) else typed
        required = [key for key in self.inputs if not key.endswith("?")]
        schema: Json = {
            "name": self.name,
            "description": self.description,
            "input_schema": {"type": "object", "properties": properties, "required": required},
        }
        return {**schema, "annotations": {"readOnlyHint": True}} if self.reads else schema

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        """Return the first sentence of the description."""
        return self.description.partition("\n")[0].partition(". ")[0].rstrip(".")

    def execute(self, runtime: Runtime, tool_input: Json) -> Result:
        try:
            return self.function(runtime, tool_input)
        except ToolError as error:
            return Result(f"error: {error}", error=True)
        except OSError as error:
            name = f" {error.filename}" if error.filename else ""
            return Result(f"error:{name}: {error.strerror or error}", error=True)


# The tools of Claude Code that edit, and the built-in ones that do the same.
_OF_CLAUDE = {"Edit": "replace", "Write": "write_file"}
_KEYS = {"file_path": "path", "old_string": "old", "new_string": "new", "replace_all": "all"}


def change_of(runtime: Runtime, name: str, tool_input: Json) -> Change | None:
    """Return the change that a call of the tool `name` would make; None if it edits no file or would fail."""
    if name in _OF_CLAUDE:
        name, tool_input = _OF_CLAUDE[name], {_KEYS.get(key, key): tool_input[key] for key in tool_input}
    plugin = runtime.table.find("tools", name)
    change = plugin.target.change if plugin and isinstance(plugin.target, Builtin) else None
    try:
        return change(runtime, tool_input) if change else None
    except (ToolError, OSError):
        return None


def text_of(tool_input: Json, key: str) -> str:
    """Return the string `key`. Raises ToolError if it is missing or no string."""
    value = tool_input.get(key)
    if not isinstance(value, str):
        raise ToolError(f"{key} is required" if value is None else f"{key} must be a string")
    return value


def path_of(runtime: Runtime, tool_input: Json) -> Path:
    """Return the file that the call names, seen from the session's directory. Raises ToolError."""
    text = text_of(tool_input, "path")
    if not text or "\0" in text:
        raise ToolError("path is required")
    path = confined.place_of(runtime, runtime.place(text))
    if trust.is_secret(path):
        raise ToolError(f"{text} {trust.REFUSED}")
    if problem := confined.problem(runtime, path):
        raise ToolError(problem)
    return path


def number_of(tool_input: Json, key: str) -> int | None:
    """Return the whole number `key` of at least 1; None if it is not there. Raises ToolError."""
    value = tool_input.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        raise ToolError(f"{key} must be a number of at least 1")
    return int(min(value, _LARGEST))


def run_program(
    runtime: Runtime,
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    stdin: bytes | None = None,
    timeout: float = math.inf,
) -> tuple[str, processes.Finished]:
    """Run `command` in the session's directory; return its output, clipped for the model, and how it ended.

    Emits its output as `tool_progress` while it runs. Interrupted carries the output so far. Raises OSError.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def progress(data: bytes) -> None:
        runtime.stream.emit("tool_progress", id=CALL.get(), text=decoder.decode(data))

    ready = confined.started(runtime, command, env)
    with tempfile.TemporaryFile() as output:
        try:
            done = processes.run(
                ready.argv,
                env=ready.env,
                cwd=runtime.work_directory,
                stdin=stdin,
                merge=True,
                starter=ready.starter,
                timeout=timeout,
                notes=runtime.session.directory if runtime.session else None,
                output=output,
                # Of several that run at once nothing is shown before they have ended.
                heard=progress if threading.current_thread() is threading.main_thread() else None,
            )
        except processes.Interrupted as interrupted:
            interrupted.printed = read_clipped(runtime, output).rstrip("\n")
            raise
        text = read_clipped(runtime, output).rstrip("\n")
        refused = confined.said(runtime, text) if done.code else ""
        return "\n".join(part for part in (text, refused) if part), done


def read_clipped(runtime: Runtime, output: IO[bytes]) -> str:
    """Return the text of `output`, or both its ends and the file that holds all of it. Closes `output`."""
    # A few results must leave room for the work.
    context = hosted.model_of(runtime).context
    most = min(MAX_BYTES, context * _BYTES_PER_TOKEN // _CONTEXT_PART or MAX_BYTES)
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
    first = "\n".join(_text(head[: most // 2]).split("\n")[: MAX_LINES // 2])
    last = "\n".join(_text(tail).split("\n")[-MAX_LINES // 2 :])
    return f"{first}\n\n[... {size} bytes in all{kept}; this is the beginning and the end ...]\n\n{last}"


def clipped(runtime: Runtime, result: str) -> str:
    """Return `result`, or both its ends as `read` does."""
    return read_clipped(runtime, io.BytesIO(result.encode("utf-8", "replace")))


def _keep(runtime: Runtime, output: IO[bytes]) -> str:
    """Copy all of it into the session; return the words that say where."""
    if not runtime.session:
        return ""
    if runtime.session.is_full:
        return ", which was not kept: the session has reached its limit on disk"
    directory = runtime.session.directory / "output"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, prefix="", suffix=".txt", delete=False) as kept:
            shutil.copyfileobj(output, kept)
    except OSError as error:
        return f", which could not be kept: {error.strerror}"
    return f", all of it in {kept.name}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "")


def ending(done: processes.Finished, seconds: int = 0) -> str:
    """Return how a program ended that has failed; "" if it has not. `seconds` was its limit of time."""
    if done.reason == "timeout":
        return f"[timed out after {seconds} seconds; it and what it started were ended]"
    if done.reason == "loud":
        return f"[ended after {processes.OUTPUT_LIMIT} bytes of output]"
    if done.code < 0:
        return f"[ended by signal {-done.code}]"
    return f"[exit status {done.code}]" if done.code else ""


# Linux takes no single argument of 128 KiB.
_LONGEST_ARGUMENT = 100_000
_DEFAULT_SECONDS = 120


def _execute(runtime: Runtime, tool_input: Json) -> Result:
    seconds = number_of(tool_input, "timeout") or usual_seconds(runtime.env)
    inherited = {**runtime.harness_environment(), "HARNESS_CWD": str(runtime.work_directory)}
    env = keys.without(runtime, inherited)
    with _command(text_of(tool_input, "command")) as command:
        text, done = run_program(runtime, command, env, timeout=seconds)
    note = ending(done, seconds)
    return Result("\n".join(part for part in (text, note) if part), error=bool(note))


@contextmanager
def _command(text: str) -> Iterator[list[str]]:
    """Yield what runs `text`; one that is too long for an argument is read from a file. Raises ToolError."""
    if "\0" in text:
        raise ToolError("a command cannot hold the character NUL; printf '\\0' prints one")
    data = text.encode("utf-8", "replace")
    if len(data) < _LONGEST_ARGUMENT:
        # As bytes it is the same whatever the locale; a text would have to fit into its encoding.
        yield ["bash", "-c", os.fsdecode(data)]
        return
    with tempfile.NamedTemporaryFile(prefix="hs-") as file:
        file.write(data)
        file.flush()
        yield ["bash", "-c", '_hs=$1; shift; . "$_hs"', "bash", file.name]


TOOL = Builtin(
    name="bash",
    description=(
        "Run a command in bash. Returns what it prints on standard output and standard error, and its exit "
        "status if that is not 0. It has no standard input, and is ended after `timeout` seconds (120)."
    ),
    inputs={
        "command": "The command",
        "timeout?": (int, "Seconds after which it is ended"),
    },
    function=_execute,
)


def usual_seconds(env: Mapping[str, str], otherwise: int = _DEFAULT_SECONDS) -> int:
    """Return what HARNESS_TOOL_TIMEOUT in `env` says, `otherwise` two minutes."""
    return disk.number(env.get("HARNESS_TOOL_TIMEOUT", "")) or otherwise
