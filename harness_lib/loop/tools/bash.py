"""The tool `bash`: a command, its output, and how it ended."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness_lib.loop import processes
from harness_lib.loop.disk import number
from harness_lib.loop.plugins import Result
from harness_lib.loop.providers import keys
from harness_lib.loop.tools import builtin
from harness_lib.loop.tools.builtin import Builtin, ToolError, number_of, text_of

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime


# Linux takes no single argument of 128 KiB.
_LONGEST_ARGUMENT = 100_000
_DEFAULT_SECONDS = 120


def _execute(runtime: Runtime, tool_input: Json) -> Result:
    seconds = number_of(tool_input, "timeout") or usual_seconds(runtime.env)
    inherited = {**runtime.harness_environment(), "HARNESS_CWD": str(runtime.work_directory)}
    env = keys.without(runtime, inherited)
    with _command(text_of(tool_input, "command")) as command:
        text, done = builtin.run_program(runtime, command, env, timeout=seconds)
    note = f"[exit status {done.code}]" if done.code else ""
    if done.reason == "timeout":
        note = f"[timed out after {seconds} seconds; it and what it started were ended]"
    elif done.reason == "loud":
        note = f"[ended after {processes.OUTPUT_LIMIT} bytes of output]"
    elif done.code < 0:
        note = f"[ended by signal {-done.code}]"
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
    properties={
        "command": {"type": "string", "description": "The command"},
        "timeout": {"type": "integer", "description": "Seconds after which it is ended"},
    },
    required=["command"],
    function=_execute,
)


def usual_seconds(env: Mapping[str, str]) -> int:
    """Return what HARNESS_TOOL_TIMEOUT in `env` says, two minutes otherwise."""
    return number(env.get("HARNESS_TOOL_TIMEOUT", "")) or _DEFAULT_SECONDS
