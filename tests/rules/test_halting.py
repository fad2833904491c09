"""What follows from a halt is decided by its kind, whatever its words are."""

from __future__ import annotations

import pytest

from harness_lib.errors import ConfigError, EnvSetupError, RefusedError
from harness_lib.rules import halting
from harness_lib.task import CATEGORIES, HALT_KINDS, HaltKind, Task


@pytest.mark.parametrize("kind", [*HALT_KINDS, None])
def test_a_halt_over_the_check_itself_or_a_secret_or_nobody_knows_what_is_for_a_person(
    kind: HaltKind | None,
) -> None:
    task = Task("a", halt="a person must say what the check is", halt_kind=kind)
    assert halting.is_for_a_person(task) is (kind in {"CHECK_CHANGED", "SECRET", None})
    assert not halting.is_for_a_person(task._replace(halt=None))


def test_an_edit_of_the_task_lifts_what_its_configuration_has_halted() -> None:
    for kind in (*HALT_KINDS, None):
        assert halting.is_lifted_by_an_edit(kind) is (kind in {"CONFIG", "CHECK_CHANGED"})


def test_only_work_that_was_kept_takes_an_answer() -> None:
    assert [kind for kind in (*HALT_KINDS, None) if halting.takes_an_answer(kind)] == ["SECRET"]


def test_an_error_and_a_failure_say_what_must_be_seen_to() -> None:
    errors = (ConfigError("x"), EnvSetupError("x"), RefusedError("x"))
    assert [halting.of_error(error) for error in errors] == ["CONFIG", "ENV_SETUP", "REFUSED"]
    for category in CATEGORIES:
        assert halting.of_category(category) == ("CONFIG" if category == "CONFIG" else "ENV_SETUP")
