"""A list that nobody may write, as it is for an agent in a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.verbs.project import Project


@contextmanager
def forbidden(project: Project) -> Iterator[None]:
    """Let nobody write the list. Root may do what a mode forbids, so something stands in the lock's place."""
    turn = project.top / ".harness/state.turn"
    turn.unlink(missing_ok=True)
    turn.mkdir()
    yield
    turn.rmdir()
