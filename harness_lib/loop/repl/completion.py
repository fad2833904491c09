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
        *typed, begun = before.split(" ")
        if not typed:
            for word in sorted({*commands.NAMES, *(f"/{name}" for name in self._skills())}):
                if word.startswith(begun):
                    yield Completion(word, start_position=-len(begun))
        elif typed == ["/session"]:
            # The newest first: it is the likeliest.
            for session in store.every(self._runtime):
                if session.id.startswith(begun):
                    yield Completion(session.id, start_position=-len(begun), display_meta=session.title)
