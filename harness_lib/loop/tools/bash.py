"""The tool `bash`: a command, its output, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.loop import credentials, processes
from harness_lib.loop.plugins import Result
from harness_lib.loop.tools import clip
from harness_lib.loop.tools.builtin import Builtin, number_of, text_of

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime

_DEFAULT_SECONDS = 120


def _execute(runtime: Runtime, given: Json) -> Result:
    seconds = number_of(given, "timeout") or _limit(runtime)
    inherited = {**runtime.harness_environment(), "HARNESS_CWD": str(runtime.work_directory)}
    env = credentials.without(runtime, inherited)
    done = processes.run(
        ["bash", "-c", text_of(given, "command")],
        env=env,
        cwd=runtime.work_directory,
        merge=True,
        timeout=seconds,
    )
    text = clip.read(runtime, done.output).rstrip("\n")
    note = _note(done, seconds)
    return Result("\n".join(part for part in (text, note) if part), error=bool(note))


def _note(done: processes.Finished, seconds: int) -> str:
    if done.reason == "timeout":
        return f"[timed out after {seconds} seconds; it and what it started were ended]"
    if done.reason == "loud":
        return f"[ended after {processes.OUTPUT_LIMIT} bytes of output]"
    if done.code < 0:
        return f"[ended by signal {-done.code}]"
    return f"[exit status {done.code}]" if done.code else ""


def _limit(runtime: Runtime) -> int:
    text = runtime.env.get("HARNESS_TOOL_TIMEOUT", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else _DEFAULT_SECONDS


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
