"""What a person types: a line editor with history, in which several pasted lines are one message."""

from __future__ import annotations

import os
from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document  # noqa: TC002 (loaded already)
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from harness_lib.loop.runtime import Runtime

_FILE = "repl_history"


class Words(Completer):
    """Completes the first word where it begins with a slash, and what may follow it."""

    def __init__(self, found: Callable[[str], list[str]]) -> None:
        self._found = found

    def get_completions(self, document: Document, complete_event: CompleteEvent):  # type: ignore[no-untyped-def]  # noqa: ANN201, ARG002
        """Yield what the words before the cursor can become."""
        before = document.text_before_cursor
        if not before.startswith("/"):
            return
        last = before.split(" ")[-1]
        for word in self._found(before):
            if word.startswith(last):
                yield Completion(word, start_position=-len(last))


def line(
    runtime: Runtime, words: Callable[[str], list[str]], status: Callable[[], str]
) -> PromptSession[str]:
    """Return the editor. Enter sends, Alt-Enter begins another line."""
    keys = KeyBindings()

    # What was typed while a turn was under way ends as the terminal ends lines by itself.
    @keys.add("c-j")
    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return PromptSession(
        history=FileHistory(_history(runtime)),
        completer=Words(words),
        complete_while_typing=False,
        multiline=True,
        key_bindings=keys,
        bottom_toolbar=status,
    )


def _history(runtime: Runtime) -> str:
    """Return the file of what was typed before; only its owner may read it."""
    runtime.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = runtime.home / _FILE
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    return str(path)
