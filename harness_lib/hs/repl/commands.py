"""Run the slash commands of the prompt, and complete what is typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document  # noqa: TC002 (loaded already)

from harness_lib.errors import UsageError
from harness_lib.hs import session_store, setup
from harness_lib.hs.repl.drawing import Drawing
from harness_lib.loop import permissions, plugins, trust
from harness_lib.loop.disk import number
from harness_lib.loop.piped import HookError
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.session import Message, Session
from harness_lib.loop.stages import send
from harness_lib.text import counted, harmless

LEAVE = frozenset({"/quit", "/exit"})
_HELP = """\
/model [NAME]   the model, or another one from now on (PROVIDER/NAME of another provider)
/cost           what this session has cost so far
/compact        summarise what was said so far
/new            begin a new session (/clear: and clear the screen); this one can be resumed
/session [ID]   where this session is, or go on in another one
/tools          what the model may call
/permissions    the rules about what runs, is asked about and never runs
/quit           leave (Ctrl-D, too); /NAME of a skill loads it; Tab completes
@FILE           attach a file to what you say; Tab completes
!COMMAND        run a command yourself; the model is told of it with your next message
Enter sends, Alt-Enter begins another line, Ctrl-C ends what is under way or empties the line.
While it works: Enter sends what is typed behind the running tools, Alt-Enter when the turn ends."""


def run(runtime: Runtime, line: str, drawing: Drawing) -> Session | None:
    """Do what `line` says; return the session that the user goes to, held. Raises HarnessError."""
    word, _, rest = line.partition(" ")
    if rest.strip() and word not in _TAKE_A_NAME:
        raise UsageError(f"{word} takes no words.", "It was not done; arrow up brings the line back.")
    return _RUN[word](runtime, rest.strip(), drawing)


def _session(runtime: Runtime, name: str, drawing: Drawing) -> Session | None:
    if not name:
        drawing.note(str(runtime.session.directory))
        return None
    session = session_store.to_go_on(runtime, name)
    if session.id == runtime.session.id:
        raise UsageError("This is that session already.")
    setup.hold(runtime, session)
    return session


def _new(runtime: Runtime, _: str, drawing: Drawing) -> Session:
    if runtime.session.files():
        drawing.note(f"To go on with the one before: /session {runtime.session.id}")
    session = session_store.create(runtime)
    session.hold(is_new=True)
    return session


def _clear(runtime: Runtime, rest: str, drawing: Drawing) -> Session:
    drawing.clear()
    return _new(runtime, rest, drawing)


def _cost(runtime: Runtime, _: str, drawing: Drawing) -> None:
    messages = runtime.messages()
    by_model: dict[str, list[Message]] = {}
    for message in messages:
        if "tokens_in" in message.fields:
            by_model.setdefault(message.fields.get("model") or "subagents", []).append(message)
    lines = [f"{model:<24} {_sum(asked)}" for model, asked in by_model.items()]
    drawing.note("\n".join([*lines, f"{'this session':<24} {_sum(messages)}"]))


def _sum(messages: list[Message]) -> str:
    account = context.total(messages)
    answers = ("assistant", "summary", "error")
    requests = sum(each.role in answers and "tokens_in" in each.fields for each in messages)
    cached = sum(number(message.fields.get("tokens_cached", "")) for message in messages)
    of_cache = f" ({cached:,} from the cache)" if cached else ""
    cost = f"cost {account.shown()}" if account.cost is None else f"${account.shown()}"
    tokens = f"{account.tokens_in:,} tokens in{of_cache}, {account.tokens_out:,} out"
    return f"{counted(requests, 'request')}, {tokens}, {cost}"


def _tools(runtime: Runtime, _: str, drawing: Drawing) -> None:
    tools = runtime.table.of("tools")
    drawing.note("\n".join(f"{tool.name:<20} {tool.target.describe(runtime)}" for tool in tools))


def _permissions(runtime: Runtime, _: str, drawing: Drawing) -> None:
    example = 'no rules; one is written {"permissions": {"allow": ["Bash(git status:*)"]}}'
    rules = "\n".join(map(str, permissions.rules(runtime))) or f"{runtime.home / permissions.FILE}: {example}"
    modes = "\n".join(f"{name}={trust.setting(runtime, name)}" for name in trust.SETTINGS)
    drawing.note(f"{modes}\n{rules}")


def _model(runtime: Runtime, name: str, drawing: Drawing) -> None:
    if name:
        setup.choose_model(runtime, name)
    drawing.note(f"{runtime.model} ({runtime.provider})")


def _compact(runtime: Runtime, _: str, drawing: Drawing) -> None:
    """Summarise the conversation; what comes of it is told as an event or a notice."""
    runtime.kept.pop("summary failed", None)
    try:
        payload = plugins.call(runtime, "assemble", {})
    except HookError as failure:
        drawing.note(str(failure), "red")
        return
    send.compact(runtime, payload)


def _help(_runtime: Runtime, _: str, drawing: Drawing) -> None:
    drawing.note(_HELP)


_RUN: dict[str, Callable[[Runtime, str, Drawing], Session | None]] = {
    "/clear": _clear,
    "/compact": _compact,
    "/cost": _cost,
    "/help": _help,
    "/model": _model,
    "/new": _new,
    "/permissions": _permissions,
    "/session": _session,
    "/tools": _tools,
}
NAMES = frozenset({*_RUN, *LEAVE})
_TAKE_A_NAME = ("/model", "/session")


class Words(Completer):
    """Completes /NAME with what may follow it, and @FILE."""

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
        words = before.split(" ")
        if (begun := before.replace("\n", " ").rpartition(" ")[2]).startswith("@"):
            known = [(f"@{name}", "") for name in _files(self._runtime.work_directory, begun[1:])]
        elif before.startswith("/") and "\n" not in before:
            begun, known = words[-1], self._known(words[:-1])
        else:
            return
        for name, meta in known:
            if name.startswith(begun):
                yield Completion(name, start_position=-len(begun), display_meta=meta)

    def _known(self, typed: list[str]) -> list[tuple[str, str]]:
        """Return what may follow the words `typed`, each with its description."""
        if not typed:
            return [(word, "") for word in sorted({*NAMES, *(f"/{name}" for name in self._skills())})]
        if typed == ["/model"]:
            return [(name, "") for name in self._models()]
        if typed == ["/session"]:
            # The newest first: it is the likeliest.
            return [(session.id, session.title) for session in session_store.every(self._runtime)]
        return []


def _files(directory: Path, begun: str) -> Iterator[str]:
    """Yield the paths that `begun` can become; hidden ones only where it begins with a dot."""
    name = begun.rpartition("/")[2]
    head = begun[: len(begun) - len(name)]
    try:
        entries = sorted(os.scandir(directory / Path(head or ".").expanduser()), key=lambda each: each.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith(".")):
            path = f"{head}{entry.name}{'/' if entry.is_dir() else ''}"
            if harmless(path) == path and " " not in path:
                yield path
