"""What a line that begins with a slash can become: commands, skills, sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document  # noqa: TC002 (loaded already)

from harness_lib.loop.repl import commands
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import store


class Words(Completer):
    """Completes the first word, and what may follow it."""

    def __init__(self, runtime: Runtime, skills: Callable[[], list[str]]) -> None:
        self._runtime = runtime
        self._skills = skills

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 (as the package calls it)
    ) -> Iterator[Completion]:
        """Yield what the word before the cursor can become."""
        before = document.text_before_cursor
        if not before.startswith("/") or "\n" in before:
            return
        words = before.split(" ")
        for word in self._found(words[:-1]):
            if word.startswith(words[-1]):
                yield Completion(word, start_position=-len(words[-1]))

    def _found(self, typed: list[str]) -> list[str]:
        if not typed:
            return sorted({*commands.NAMES, *(f"/{name}" for name in self._skills())})
        # The newest first: it is the likeliest.
        return [each.id for each in store.every(self._runtime)] if typed == ["/session"] else []
