"""Read a line, take a turn or do a command, and give the prompt back, until the user leaves."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from harness_lib.errors import HarnessError, UsageError
from harness_lib.hs import session_store, setup, terminal
from harness_lib.hs.repl import drawing, editor
from harness_lib.hs.repl.drawing import Drawing, Fragments, status
from harness_lib.loop import context, disk, piped, plugins, processes, request, turn
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.session import Message, Session, Text
from harness_lib.loop.tools import asking, skills
from harness_lib.loop.wires import http
from harness_lib.text import Strings, counted, in_one_line

_LEAVE = frozenset({editor.LEAVE, "/exit"})
_HELP = """\
/model [NAME]   the model, or another one from now on (PROVIDER/NAME of another provider)
/cost           what this session has cost so far
/compact        summarise what was said so far
/new            begin a new session (/clear: and clear the screen); this one can be resumed
/session [ID]   where this session is, or go on in another one
/tools          what the model may call
/quit           leave (Ctrl-D, too); /NAME of a skill loads it; Tab completes
@FILE           attach a file to what you say; Tab completes
!COMMAND        run a command yourself; the model is told of it with your next message
Enter sends, Alt-Enter begins another line, Ctrl-C ends what is under way or empties the line.
While it works: Enter sends what is typed behind the running tools, Alt-Enter when the turn ends."""
_LOG = "repl.log"
_HISTORY = "repl_history"
_MEANWHILE = "Enter: after the running tools · Alt-Enter: when the turn ends · Ctrl-C: stop"


class Line(NamedTuple):
    """A message; `soon`: the current turn gets it after the running tools."""

    text: str
    soon: bool


class Ahead(NamedTuple):
    """What was typed ahead for the next conversation: messages, and the unfinished line."""

    sent: Strings = ()
    line: str = ""


class Typed:
    """Messages that wait. Those that `is_command` accepts are never sent to a turn under way.

    The thread of the prompt adds messages, and the main thread takes them.
    """

    def __init__(self, is_command: Callable[[str], bool]) -> None:
        self._is_command = is_command
        # Changed in place only, which is safe between threads.
        self._lines: list[Line] = []
        self._changed: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._left = False

    @property
    def waiting(self) -> list[str]:
        """The messages that wait."""
        return [line.text for line in tuple(self._lines)]

    def put(self, text: str, *, soon: bool) -> None:
        """Send a line."""
        self._lines.append(Line(text, soon and not self._is_command(text)))
        self._changed.put(None)

    def leave(self) -> None:
        """Let `take` return None after the messages that wait."""
        self._left = True
        self._changed.put(None)

    def take(self) -> str | None:
        """Wait for the next line and return it; None when the user leaves."""
        while True:
            with suppress(IndexError):
                return self._lines.pop(0).text
            if self._left:
                return None
            self._changed.get()

    def soon(self) -> list[str]:
        """Return the messages that the current turn gets now."""
        return [line.text for line in tuple(self._lines) if line.soon and self._took(line)]

    def withdraw(self) -> list[str]:
        """Take back the messages that wait."""
        return [line.text for line in tuple(self._lines) if self._took(line)]

    def _took(self, line: Line) -> bool:
        # The other thread may have been faster.
        with suppress(ValueError):
            self._lines.remove(line)
            return True
        return False


def talk(runtime: Runtime, ahead: Ahead) -> tuple[Session | None, Ahead]:
    """Talk in the run's session until the user leaves it.

    `ahead` was typed in the conversation before. Return the session to go on in, held, and what was typed
    ahead for it.
    """
    if runtime.env["HARNESS_LOG"] == "/dev/stderr":
        # The output of hooks and tools would disturb the prompt.
        runtime.env["HARNESS_LOG"] = str(runtime.session.directory / _LOG)
    conversation = Conversation(runtime, ahead.sent)
    conversation.editor.start(ahead.line)
    try:
        session = conversation.go_on()
    finally:
        line = conversation.editor.close()
    return session, conversation.ahead(line)


class Conversation:
    """The user in one session; the messages in `sent` are done first."""

    def __init__(self, runtime: Runtime, sent: Sequence[str]) -> None:
        self._runtime = runtime
        self._typed = Typed(self._is_ours)
        for text in sent:
            self._typed.put(text, soon=False)
        self._skills: list[str] = []
        self._models: list[str] = []
        self._provider = ""
        self._status = ""
        completer = editor.Words(runtime, self._words, lambda: self._models)
        history = runtime.home / _HISTORY
        self.editor = editor.Editor(history, completer, self, self._above)
        self._under_way = processes.UnderWay(signal.SIGINT, changed=self.editor.draw)
        self._drawing = Drawing(runtime, self.editor.show, self.editor.draw, self.editor.clear)
        runtime.asker = self._ask
        runtime.notices.append(lambda text: self._drawing.note(text, "yellow"))
        if not os.path.lexists(history):
            # Only its owner may read it.
            runtime.keep(history, b"")
        runtime.typed_meanwhile = self._soon
        runtime.stream.listeners += [self._hear, self._drawing.hear]
        # Before the first key: it may be a Tab.
        self._look()

    def go_on(self) -> Session | None:
        """Do what is typed, until the user leaves."""
        session = self._runtime.session
        self._drawing.note(f"session: {session.id}   /help says what can be typed")
        # The last exchange of a session that is resumed.
        asked, answered = last_exchange(session.messages())
        if asked:
            self._drawing.typed(asked)
            self._drawing.answered(answered)
        while True:
            text = self._typed.take()
            if text is None or text in _LEAVE:
                if session.files():
                    self._drawing.note(f"To go on with it: hs --resume {session.id}")
                return None
            self._drawing.typed(text)
            other = self._guarded(lambda text=text: self._do(text))  # type: ignore[misc]
            if other is not None:
                return other
            self._look()

    def ahead(self, line: str) -> Ahead:
        """Return the messages that were not done yet, with the unfinished `line`."""
        return Ahead(tuple(self._typed.withdraw()), line)

    # The actions of the keys, called in the thread of the prompt.

    def sent(self, text: str, *, later: bool) -> None:
        self._typed.put(text, soon=self._under_way.now and not later)

    def stopped(self) -> bool:
        # First: when the work has ended, the other thread takes the next message.
        waiting = self._typed.withdraw() if self._under_way.now else []
        is_stopped = self._under_way.interrupt()
        if waiting:
            self.editor.put_back("\n".join(waiting))
        return is_stopped

    def left(self) -> None:
        self._typed.leave()

    def is_busy(self) -> bool:
        return self._under_way.now

    def _guarded(self, work: Callable[[], Session | None]) -> Session | None:
        """Do `work` and show an error or an interruption."""
        try:
            with self._under_way:
                return work()
        except processes.Interrupted as interrupted:
            self._under_way.now = False
            self._wind_up()
            if interrupted.args != (signal.SIGINT,):
                raise
            self._drawing.note("interrupted", "yellow")
        except HarnessError as error:
            self._drawing.finish()
            self._drawing.note(terminal.one_line(error), "red")
        finally:
            # Also the question of a subagent that has ended.
            self.editor.give_up()
        return None

    def _is_ours(self, text: str) -> bool:
        """Return whether `text` must never be sent to a turn that is under way."""
        return text.startswith("!") or bool(self._unknown(text)) or text.partition(" ")[0] in _NAMES

    def _unknown(self, text: str) -> str:
        return terminal.unknown(self._runtime.provider, text, self._words())

    def _words(self) -> set[str]:
        # With the names known so far: the thread of the prompt calls this, too.
        return {*_NAMES, *(f"/{name}" for name in self._skills)}

    def _do(self, text: str) -> Session | None:
        """Do what `text` says; return the session that the user goes to, held. Raises HarnessError."""
        word, _, rest = text.partition(" ")
        if word in _NAMES:
            if rest.strip() and word not in _TAKE_A_NAME:
                raise UsageError(f"{word} takes no words.", "It was not done; arrow up brings the line back.")
            return _RUN[word](self._runtime, rest.strip(), self._drawing)
        if problem := self._unknown(text):
            raise UsageError(problem, "/help says what can be typed. It was not sent.")
        if text.startswith("!") and text[1:].strip():
            terminal.run_command(self._runtime, text[1:].strip())
        else:
            turn.take(self._runtime, terminal.with_files(self._runtime, text))
        return None

    def _wind_up(self) -> None:
        self.editor.give_up()
        processes.end_all()
        # Nobody reads the rest of this response any more.
        http.forget(self._runtime.kept)
        self._drawing.finish()

    def _soon(self) -> list[str]:
        texts = self._typed.soon()
        for text in texts:
            self._drawing.typed(text)
        return [terminal.with_files(self._runtime, text) for text in texts]

    def _ask(self, question: asking.Question) -> asking.Said:
        """Ask the user; also for subagents, which may ask at the same time, and behind the end of a turn."""
        shown = self._drawing.asked(question)
        answer = self.editor.ask(shown, terminal.choices(question))
        if answer is None:
            return asking.Said(allowed=False, reason="interrupted")
        return terminal.understood(answer, question)

    def _hear(self, event: dict[str, object]) -> None:
        if event["type"] in {"stop", "summary", "tool_done"}:
            self._status = status(self._runtime)

    def _look(self) -> None:
        self._status = status(self._runtime)
        self._skills = list(skills.every(self._runtime))
        if self._provider != self._runtime.provider:
            self._provider = self._runtime.provider
            self._models = setup.offered(self._runtime)
        self.editor.draw()

    def _above(self, below: int) -> Fragments:
        """Return the rows above the line: the stream, what waits, and the status."""
        width = self._drawing.width()
        waiting = [f"waits: {line}" for text in self._typed.waiting for line in text.splitlines()]
        hint = [_MEANWHILE] if self._under_way.now else []
        under = [*waiting, *hint]
        return [
            *self._drawing.live(below + len(under)),
            *[("ansibrightblack", f"{drawing.cut_row(line, width)}\n") for line in under],
            ("reverse", drawing.cut_row(self._status, width)),
            ("", "\n"),
        ]


def last_exchange(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the beginning of the last question, in one line, and its answer; "" for a missing one."""
    asked = next((message for message in reversed(messages) if message.role == "user"), None)
    if not asked:
        return "", ""
    answers = [message for message in messages if message.role == "assistant" and message.seq > asked.seq]
    texts = [block.text for block in answers[-1].blocks if isinstance(block, Text)] if answers else []
    return in_one_line(asked.said)[:300], "\n".join(texts)


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
    messages = runtime.session.messages()
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
    cached = sum(disk.number(message.fields.get("tokens_cached", "")) for message in messages)
    of_cache = f" ({cached:,} from the cache)" if cached else ""
    cost = f"cost {account.shown()}" if account.cost is None else f"${account.shown()}"
    tokens = f"{account.tokens_in:,} tokens in{of_cache}, {account.tokens_out:,} out"
    return f"{counted(requests, 'request')}, {tokens}, {cost}"


def _tools(runtime: Runtime, _: str, drawing: Drawing) -> None:
    tools = runtime.table.of("tools")
    drawing.note("\n".join(f"{tool.name:<20} {tool.target.describe(runtime)}" for tool in tools))


def _model(runtime: Runtime, name: str, drawing: Drawing) -> None:
    if name:
        setup.switch(runtime, *setup.meant(runtime, name))
    drawing.note(f"{runtime.model} ({runtime.provider})")


def _compact(runtime: Runtime, _: str, drawing: Drawing) -> None:
    """Summarise the conversation; what comes of it is told as an event or a notice."""
    runtime.kept.pop("summary failed", None)
    try:
        payload = plugins.call(runtime, "assemble", {})
    except piped.HookError as failure:
        drawing.note(str(failure), "red")
        return
    request.compact(runtime, payload)


def _help(_runtime: Runtime, _: str, drawing: Drawing) -> None:
    drawing.note(_HELP)


_RUN: dict[str, Callable[[Runtime, str, Drawing], Session | None]] = {
    "/clear": _clear,
    "/compact": _compact,
    "/cost": _cost,
    "/help": _help,
    "/model": _model,
    "/new": _new,
    "/session": _session,
    "/tools": _tools,
}
_NAMES = frozenset({*_RUN, *_LEAVE})
_TAKE_A_NAME = ("/model", "/session")
