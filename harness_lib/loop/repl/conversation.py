"""The conversation: a line, a turn, a line. Whatever a turn comes to, the person gets the prompt back."""

from __future__ import annotations

import signal

from harness_lib.errors import HarnessError
from harness_lib.loop import processes, terminal, turn
from harness_lib.loop.failures import Interrupted
from harness_lib.loop.repl import commands, typing
from harness_lib.loop.repl.drawing import Drawing
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import accounts, context
from harness_lib.loop.tools import skills

_LOG = "repl.log"


def talk(runtime: Runtime) -> int:
    """Talk in the run's session until the person leaves."""
    assert runtime.session is not None
    drawing = Drawing()
    person = terminal.Terminal()
    runtime.asker = person.ask
    if runtime.env["HARNESS_LOG"] == "/dev/stderr":
        # What hooks and tools say would fall into the line that is being typed.
        runtime.env["HARNESS_LOG"] = str(runtime.session.directory / _LOG)
    runtime.stream.listeners.append(drawing.hear)
    drawing.note(f"session: {runtime.session.id}   /help says what can be typed")
    editor = typing.line(runtime, lambda before: _words(runtime, before), lambda: _status(runtime))
    while True:
        try:
            said = editor.prompt("You: ").strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        if said in commands.LEAVE:
            return 0
        if said:
            _do(runtime, said, drawing, person)


def _do(runtime: Runtime, said: str, drawing: Drawing, person: terminal.Terminal) -> None:
    person.begin()
    try:
        if commands.run(runtime, said, drawing):
            return
        turn.take(runtime, said)
        drawing.finish()
    except Interrupted as interrupted:
        person.stop()
        processes.end_all()
        drawing.finish()
        if interrupted.args == (signal.SIGTERM,):
            raise
        drawing.note("interrupted", "yellow")
    except HarnessError as error:
        drawing.finish()
        drawing.note(error.message, "red")


def _words(runtime: Runtime, before: str) -> list[str]:
    if " " in before:
        return []
    return sorted({*commands.NAMES, *(f"/{name}" for name in skills.every(runtime))})


def _status(runtime: Runtime) -> str:
    messages = runtime.session.messages() if runtime.session else []
    account = accounts.total(messages)
    return (
        f" {runtime.model}  context {context.tokens(messages)}  "
        f"tokens {account.tokens_in} in, {account.tokens_out} out  cost {account.shown()} "
    )
