"""Complete a line that begins with a slash: commands, skills, models, sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document  # noqa: TC002 (loaded already)

from harness_lib.hs.repl import commands
from harness_lib.hs.setup import session_store
from harness_lib.loop.runtime import Runtime


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
            return [
                (word, "") for word in sorted({*commands.NAMES, *(f"/{name}" for name in self._skills())})
            ]
        if typed == ["/model"]:
            return [(name, "") for name in self._models()]
        if typed == ["/session"]:
            # The newest first: it is the likeliest.
            return [(session.id, session.title) for session in session_store.every(self._runtime)]
        return []
