"""Why a task or a session stands still until somebody has acted, and what follows from each kind of halt.

What is decided, is decided by the kind; the words are for people.
"""

from __future__ import annotations

from typing import NamedTuple

from harness_lib.errors import ConfigError, HarnessError
from harness_lib.task import Category, HaltKind, Task


class Halt(NamedTuple):
    """A halt: its kind, and the words for people."""

    kind: HaltKind
    words: str


def of_error(error: HarnessError) -> HaltKind:
    """Return the kind of halt for an error that a person must see to."""
    if isinstance(error, ConfigError):
        return "CONFIG"
    return "ENV_SETUP" if error.kind == "ENV_SETUP" else "REFUSED"


def of_category(category: Category) -> HaltKind:
    """Return the kind of halt for a failure of a category that stops a session."""
    return "CONFIG" if category == "CONFIG" else "ENV_SETUP"


def is_for_a_person(task: Task) -> bool:
    """Return whether only a person may lift the halt of `task`: never an agent.

    So is one that does not say its kind, as nobody knows what it is about.
    """
    if task.halt is None:
        return False
    match task.halt_kind:
        case "CHECK_CHANGED" | "SECRET" | "JUDGES" | None:
            return True
        case "CONFIG" | "ENV_SETUP" | "REFUSED" | "UNSTARTED" | "SPENT":
            return False


def is_lifted_by_an_edit(kind: HaltKind | None) -> bool:
    """Return whether a session goes on once the task has been edited that it was halted for."""
    match kind:
        case "CONFIG" | "CHECK_CHANGED":
            return True
        case "ENV_SETUP" | "REFUSED" | "UNSTARTED" | "SPENT" | "SECRET" | "JUDGES" | None:
            return False


def takes_an_answer(kind: HaltKind | None) -> bool:
    """Return whether work was kept that a person can accept as it is, or return to an agent."""
    match kind:
        case "SECRET" | "JUDGES":
            return True
        case "CONFIG" | "ENV_SETUP" | "REFUSED" | "CHECK_CHANGED" | "UNSTARTED" | "SPENT" | None:
            return False
