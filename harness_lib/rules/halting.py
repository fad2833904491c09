"""Decide what follows from each kind of halt: a task or session that waits until somebody has acted.

Decisions depend on the kind only; the words are for people.
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
    """Return the kind of halt for an error that needs the user."""
    if isinstance(error, ConfigError):
        return "CONFIG"
    return "ENV_SETUP" if error.kind == "ENV_SETUP" else "REFUSED"


def of_category(category: Category) -> HaltKind:
    """Return the kind of halt for a failure of a category that stops a session."""
    return "CONFIG" if category == "CONFIG" else "ENV_SETUP"


def is_for_user(task: Task) -> bool:
    """Return whether only the user may lift the halt of `task`: never an agent.

    This includes a halt without a kind, as nobody knows what it is about.
    """
    if task.halt is None:
        return False
    match task.halt_kind:
        case "CHECK_CHANGED" | "SECRET" | "JUDGES" | "REVIEW" | "HUMAN" | None:
            return True
        case "CONFIG" | "ENV_SETUP" | "REFUSED" | "UNSTARTED" | "SPENT":
            return False


def is_lifted_by_an_edit(kind: HaltKind | None) -> bool:
    """Return whether a session continues once the task for which it was halted has been edited."""
    match kind:
        case "CONFIG" | "CHECK_CHANGED":
            return True
        case (
            "ENV_SETUP" | "REFUSED" | "UNSTARTED" | "SPENT" | "SECRET" | "JUDGES" | "REVIEW" | "HUMAN" | None
        ):
            return False


def asks_a_person(task: Task) -> bool:
    """Return whether `task` is nothing but a question to a person, who has looked when they accept it."""
    return task.halt_kind == "HUMAN"


def takes_an_answer(kind: HaltKind | None) -> bool:
    """Return whether work was kept that the user can accept or return."""
    match kind:
        case "SECRET" | "JUDGES" | "REVIEW":
            return True
        case "CONFIG" | "ENV_SETUP" | "REFUSED" | "CHECK_CHANGED" | "UNSTARTED" | "SPENT" | "HUMAN" | None:
            return False
