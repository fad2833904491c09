"""What is typed behind a slash and is not for the model, and how it is completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document  # noqa: TC002 (loaded already)

from harness_lib.errors import UsageError
from harness_lib.hs.repl.drawing import Drawing
from harness_lib.hs.setup import choose_model, open_session, session_store
from harness_lib.loop import plugins
from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import as_object
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.session import Session
from harness_lib.loop.stages import send

LEAVE = frozenset({"/quit", "/exit"})
NAMES = ("/compact", "/exit", "/help", "/model", "/quit", "/session", "/tools")
_HELP = """\
/model [NAME]   the model, or another one from now on (PROVIDER/NAME of another provider)
/compact        summarise what was said so far
/session [ID]   where this session is, or go on in another one
/tools          what the model may call
/quit           leave (Ctrl-D, too); /NAME of a skill loads it; Tab completes
Enter sends, Alt-Enter begins another line, Ctrl-C ends what is under way or empties the line.
While it works: Enter sends what is typed behind the running tools, Alt-Enter when the turn ends."""


def is_one(line: str) -> bool:
    """Return whether `line` is for us, and never for a turn that is under way."""
    return line.partition(" ")[0] in NAMES


def run(runtime: Runtime, line: str, drawing: Drawing) -> Session | None:
    """Do what `line` says; return the session that the person goes to, held. Raises HarnessError."""
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    if word == "/session" and rest:
        return _other(runtime, rest)
    if word == "/session":
        drawing.note(str(runtime.session.directory) if runtime.session else "")
    elif word == "/tools":
        tools = runtime.table.of("tools")
        drawing.note("\n".join(f"{tool.name:<20} {tool.target.describe(runtime)}" for tool in tools))
    elif word == "/model":
        _model(runtime, rest, drawing)
    elif word == "/compact":
        _compact(runtime, drawing)
    else:
        drawing.note(_HELP)
    return None


def _other(runtime: Runtime, name: str) -> Session:
    session = open_session.to_go_on(runtime, name)
    if runtime.session is not None and session.id == runtime.session.id:
        raise UsageError("This is that session already.")
    open_session.hold(runtime, session)
    return session


def _model(runtime: Runtime, name: str, drawing: Drawing) -> None:
    if name:
        choose_model.choose(runtime, name)
    drawing.note(f"{runtime.model} ({runtime.provider})")


def _compact(runtime: Runtime, drawing: Drawing) -> None:
    """Summarise the conversation; what comes of it is told as an event or a notice."""
    runtime.kept.pop("summary failed", None)
    try:
        payload = as_object(plugins.call(runtime, "assemble", {})) or {}
    except HookError as failure:
        drawing.note(str(failure), "red")
        return
    send.compact(runtime, payload)


class Words(Completer):
    """Completes the first word, and what may follow it."""

    def __init__(
        self, runtime: Runtime, skills: Callable[[], list[str]], models: Callable[[], list[str]]
    ) -> None:
        self._runtime = runtime
        self._skills = skills
        self._models = models

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 (as the package calls it)
    ) -> Iterator[Completion]:
        """Yield what the word before the cursor can become."""
        before = document.text_before_cursor
        if not before.startswith("/") or "\n" in before:
            return
        *typed, begun = before.split(" ")
        for name, meta in self._known(typed):
            if name.startswith(begun):
                yield Completion(name, start_position=-len(begun), display_meta=meta)

    def _known(self, typed: list[str]) -> list[tuple[str, str]]:
        """Return what may follow the words `typed`, and what is said beside it."""
        if not typed:
            return [(word, "") for word in sorted({*NAMES, *(f"/{name}" for name in self._skills())})]
        if typed == ["/model"]:
            return [(name, "") for name in self._models()]
        if typed == ["/session"]:
            # The newest first: it is the likeliest.
            return [(session.id, session.title) for session in session_store.every(self._runtime)]
        return []
