"""Keep a line to type in at the bottom of the terminal, also while a turn is under way, and complete it.

It runs in a thread of its own, because the main thread does the work. Several pasted lines are one message.
"""

from __future__ import annotations

import asyncio
import os
import queue
import re
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, get_common_complete_suffix
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from harness_lib.hs import session_store
from harness_lib.hs.repl.drawing import Fragments, rows_of
from harness_lib.loop.runtime import Runtime
from harness_lib.text import harmless

# The beginning of @FILE or @"FILE" before the cursor.
_MENTION_BEGUN = r"""(?<!\S)@(?:"([^"\n]*)|([^\s"]\S*|))$"""
# What Ctrl-D sends during a turn.
LEAVE = "/quit"
_SECONDS_BETWEEN_DRAWINGS = 0.05
# After Ctrl-Z: how long this process may take to stop, where it does so at all.
_STOP_SECONDS = 1.0
# Columns for an answer behind the last row of a question, which is not drawn at all if it fills the line.
_LEAST_ROOM = 6
# Characters of a line that are drawn.
_DRAWN = 4000


class Keys(Protocol):
    """The actions of the user's keys."""

    def sent(self, text: str, *, later: bool) -> None:
        """Take a whole message; `later`: it was sent by Alt-Enter."""
        ...

    def stopped(self) -> bool:
        """Take a Ctrl-C; return whether there was something to stop."""
        ...

    def left(self) -> None:
        """Note that the user wants to leave."""
        ...

    def is_busy(self) -> bool:
        """Return whether a turn is under way."""
        ...


class _Shortened(Processor):
    """Draws both ends of a very long line: the package would take minutes for a pasted megabyte."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        line = fragment_list_to_text(transformation_input.fragments)
        hidden, head = len(line) - _DRAWN, _DRAWN // 2
        if hidden <= 0:
            return Transformation(transformation_input.fragments)
        note = f" ... ({hidden} more characters) ... "
        moved = hidden - len(note)
        return Transformation(
            [("", line[:head]), ("ansibrightblack", note), ("", line[-head:])],
            source_to_display=lambda at: at if at < head else max(head, at - moved),
            display_to_source=lambda at: at if at < head else max(head, at + moved),
        )


class _Question:
    """A question, its possible answers, and what was being typed when it came."""

    def __init__(self, shown: str, choices: str) -> None:
        self.shown = shown
        self.choices = choices
        self.typed = Document()
        self.answer: queue.SimpleQueue[str | None] = queue.SimpleQueue()


class Words(Completer):
    """Completes /NAME with what may follow it, and @FILE."""

    def __init__(
        self, runtime: Runtime, names: Callable[[], Iterable[str]], models: Callable[[], list[str]]
    ) -> None:
        self._runtime = runtime
        self._names = names
        self._models = models

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 (as the package calls it)
    ) -> Iterator[Completion]:
        """Yield what the word before the cursor can become."""
        before = document.text_before_cursor
        *typed, begun = before.split(" ")
        if match := re.search(_MENTION_BEGUN, before):
            for path in _files(self._runtime.work_directory, match[1] or match[2] or ""):
                quoted = f'"{path}' if path.endswith("/") else f'"{path}"'
                is_plain = match[1] is None and " " not in path
                yield Completion(f"@{path if is_plain else quoted}", start_position=-len(match[0]))
        elif before.startswith("/") and "\n" not in before:
            for name, meta in self._known(typed):
                if name.startswith(begun):
                    yield Completion(name, start_position=-len(begun), display_meta=meta)

    def _known(self, typed: list[str]) -> list[tuple[str, str]]:
        """Return what may follow the words `typed`, each with its description."""
        if not typed:
            return [(word, "") for word in sorted(self._names())]
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
            if harmless(path) == path and '"' not in path:
                yield path


class Editor:
    """The line; `above` returns the rows over it."""

    def __init__(
        self, history: Path, completer: Completer, keys: Keys, above: Callable[[int], Fragments]
    ) -> None:
        self._keys = keys
        self._completer = completer
        self._above = above
        self._question: _Question | None = None
        self._gone = threading.Event()
        self._continued = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._session: PromptSession[str] = PromptSession(
            message=self._message,
            # Without this, each drawing would ask the terminal where the cursor is.
            output=Vt100_Output(
                sys.stdout,
                _size,
                os.environ.get("TERM"),
                # 1 bit where NO_COLOR is set.
                default_color_depth=ColorDepth.from_env(),
                enable_cpr=False,
            ),
            history=_History(str(history)),
            completer=completer,
            input_processors=[_Shortened()],
            complete_while_typing=False,
            multiline=True,
            key_bindings=self._bindings(),
            erase_when_done=True,
        )
        self._session.app.min_redraw_interval = _SECONDS_BETWEEN_DRAWINGS
        self._buffer = self._session.default_buffer

    def start(self, typed: str = "") -> None:
        """Show the line with what is `typed` already, and take keys; in the main thread.

        That is the one to which the terminal tells its new size.
        """
        # The prompt asks for the size twice a second, and takes the first answer for what it began with.
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGWINCH: self.draw,
            signal.SIGCONT: self._continued.set,
        }
        self._before = {
            number: signal.signal(number, lambda number, _frame: handlers[number]()) for number in handlers
        }
        self._typed_before = typed
        self._thread.start()
        self._ready.wait()

    def close(self) -> str:
        """Remove the line, restore the terminal, and return what was being typed."""
        self._do(self._exit)
        self._thread.join()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        return self._buffer.text

    def show(self, text: str) -> None:
        """Show `text` above the line: whole lines, with escapes of our own only."""
        if not self._do(self._write, text):
            self._put(text)

    def clear(self) -> None:
        """Clear the screen."""
        self._do(self._session.app.renderer.clear)

    def draw(self) -> None:
        """Draw the rows over the line again."""
        self._session.app.invalidate()

    def put_back(self, text: str) -> None:
        """Put `text` into the line, before what is being typed."""
        self._do(self._insert, text)

    def ask(self, shown: str, choices: str) -> str | None:
        """Show a question and return the answer; None where it was given up.

        What was sent before the question was shown is not an answer to it.
        """
        asked = _Question(shown, choices)
        try:
            return asked.answer.get() if self._do(self._open, asked) else None
        finally:
            self._do(self._shut, asked)

    def give_up(self) -> None:
        """Answer an open question with None."""
        if self._question:
            self._question.answer.put(None)

    def _run(self) -> None:
        try:
            asyncio.run(self._type())
        finally:
            self._gone.set()
            self._ready.set()
            self.give_up()
            self._keys.left()

    async def _type(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self._session.prompt_async(
                default=self._typed_before,
                pre_run=self._ready.set,
                set_exception_handler=False,
                handle_sigint=False,
            )
        except EOFError:
            # The terminal is gone.
            self._keys.stopped()

    def _do(self, callback: Callable[..., None], *args: object) -> bool:
        """Call `callback` in the thread of the line; return whether that is possible."""
        if self._gone.is_set() or not self._ready.is_set():
            return False
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            # It has ended just now.
            return False
        return True

    def _exit(self) -> None:
        if self._session.app.is_running and not self._session.app.is_done:
            self._session.app.exit(result="")

    def _write(self, text: str) -> None:
        renderer = self._session.app.renderer
        renderer.erase()
        self._put(text)
        renderer.reset()
        self.draw()

    def _put(self, text: str) -> None:
        # Not by print: a character that the encoding lacks would be an error there.
        self._session.output.write_raw(text if text.endswith("\n") else f"{text}\n")
        self._session.output.flush()

    def _insert(self, text: str) -> None:
        if self._question:
            # It is about to be removed, and what was typed before it comes back.
            self._question.typed = _before(text, self._question.typed)
        else:
            self._buffer.document = _before(text, self._buffer.document)

    def _open(self, question: _Question) -> None:
        # First the keys that wait: they were typed before the question was shown.
        app = self._session.app
        while not app.input.closed and select.select([app.input.fileno()], [], [], 0)[0]:
            app.key_processor.feed_multiple(app.input.read_keys())
            app.key_processor.process_keys()
        if not self._keys.is_busy():
            # The turn was stopped just now.
            question.answer.put(None)
            return
        # The unfinished line is no answer.
        question.typed = self._buffer.document
        self._buffer.reset()
        self._question = question
        self._write(question.shown)
        # Draw the whole question now.
        app.renderer.render(app, app.layout)

    def _shut(self, question: _Question) -> None:
        if self._question is question:
            self._question = None
            self._buffer.document = question.typed
            self.draw()

    def _message(self) -> Fragments:
        if self._question:
            rows = rows_of(self._question.choices, _size().columns - _LEAST_ROOM)
            return [*self._above(len(rows)), ("bold", "\n".join(rows) + " ")]
        return [*self._above(self._buffer.text.count("\n") + 1), ("bold ansicyan", "You: ")]

    def _send(self, *, later: bool) -> None:
        text = self._buffer.text
        if self._question:
            self._question.answer.put(text)
            # What follows is no second answer.
            self._shut(self._question)
        elif text.strip():
            self._buffer.append_to_history()
            self._buffer.reset()
            self._keys.sent(text.strip(), later=later)
        else:
            self._buffer.reset()
        self.draw()

    def _suspend(self) -> None:
        # Not the package's own Ctrl-Z: the signal stops the main thread first, and meanwhile this one would
        # take back the terminal, which the shell then has as it was.
        self._continued.clear()
        os.kill(0, signal.SIGTSTP)
        self._continued.wait(_STOP_SECONDS)

    def _complete(self) -> None:
        # Not the package's own Tab: it completes a moment later, and typing until then prevents it.
        if self._buffer.complete_state:
            self._buffer.complete_next()
            return
        document = self._buffer.document
        completions = list(
            self._completer.get_completions(document, CompleteEvent(completion_requested=True))
        )
        if len(completions) == 1:
            # It may begin otherwise than what was typed, with a quote.
            self._buffer.apply_completion(completions[0])
        elif completions:
            self._buffer.insert_text(get_common_complete_suffix(document, completions))
            self._buffer.start_completion()

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        at_work = Condition(self._keys.is_busy)
        empty = Condition(lambda: not self._buffer.text)

        # Some terminals send c-j for Enter.
        @keys.add("c-j")
        @keys.add("enter")
        def _enter(_: KeyPressEvent) -> None:
            self._send(later=False)

        @keys.add("escape", "enter", filter=at_work)
        def _later(_: KeyPressEvent) -> None:
            self._send(later=True)

        @keys.add("escape", "enter", filter=~at_work)
        def _newline(_: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add("tab")
        def _tab(_: KeyPressEvent) -> None:
            self._complete()

        @keys.add("c-c")
        def _stop(_: KeyPressEvent) -> None:
            if not self._keys.stopped() and self._buffer.text:
                # Arrow up brings it back.
                self._buffer.append_to_history()
                self._buffer.reset()

        @keys.add("c-z")
        def _to_the_shell(_: KeyPressEvent) -> None:
            run_in_terminal(self._suspend)

        @keys.add("c-d", filter=empty)
        def _leave(_: KeyPressEvent) -> None:
            if self._keys.is_busy():
                self._keys.sent(LEAVE, later=True)
            else:
                self._keys.left()

        return keys


def _before(text: str, typed: Document) -> Document:
    return Document(f"{text}\n{typed.text}" if typed.text else text)


def _size() -> Size:
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    return Size(rows=rows, columns=columns)


class _History(FileHistory):
    """What was typed before; a message is sent also where it cannot be kept."""

    def load_history_strings(self) -> Iterator[str]:
        with suppress(OSError):
            yield from super().load_history_strings()

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)
