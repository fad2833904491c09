"""What is typed behind a slash and is not for the model."""

from __future__ import annotations

from harness_lib.errors import HarnessError
from harness_lib.loop import compaction, pipeline
from harness_lib.loop.commands.resolving import resolve
from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import as_object
from harness_lib.loop.repl.drawing import Drawing
from harness_lib.loop.runtime import Runtime

LEAVE = frozenset({"/quit", "/exit"})
NAMES = ("/compact", "/exit", "/help", "/model", "/quit", "/session", "/tools")
_HELP = """\
/model [NAME]   the model, or another one from now on
/compact        summarise what was said so far
/session        where this session is
/tools          what the model may call
/quit           leave (Ctrl-D, too); /NAME of a skill loads it
Enter sends, Alt-Enter begins another line, Ctrl-C ends what is under way."""


def run(runtime: Runtime, line: str, drawing: Drawing) -> bool:
    """Do what `line` says; return whether it was one of ours."""
    word, _, rest = line.partition(" ")
    if word == "/help":
        drawing.note(_HELP)
    elif word == "/session":
        drawing.note(str(runtime.session.directory) if runtime.session else "")
    elif word == "/tools":
        tools = runtime.table.of("tools")
        drawing.note("\n".join(f"{tool.name:<20} {tool.target.describe(runtime)}" for tool in tools))
    elif word == "/model":
        _model(runtime, rest.strip(), drawing)
    elif word == "/compact":
        _compact(runtime, drawing)
    else:
        return False
    return True


def _model(runtime: Runtime, name: str, drawing: Drawing) -> None:
    if name:
        runtime.env["HARNESS_MODEL"] = name
        try:
            resolve(runtime)
        except HarnessError as error:
            drawing.note(error.message, "red")
    drawing.note(f"{runtime.model} ({runtime.provider})")


def _compact(runtime: Runtime, drawing: Drawing) -> None:
    runtime.kept.pop("summary failed", None)
    try:
        payload = as_object(pipeline.call(runtime, "assemble", {})) or {}
    except HookError as failure:
        drawing.note(str(failure), "red")
        return
    done = compaction.compact(runtime, payload)
    drawing.note("summarised" if done else "not summarised: there is too little, or see /session's repl.log")
