"""What an attempt must leave as it was at the claim."""

from __future__ import annotations

import hashlib

import pytest

from harness_lib.checks import check_of
from harness_lib.rules import gates
from harness_lib.task import Gate, Task, Validation


def fingerprint(validation: Validation) -> str:
    return check_of(Task("task-001", "one", validation=validation)).fingerprint()


CHECK = Validation("make test", cwd="app", protect=("tests/**",))
TREE = "a" * 40
GATE = Gate(fingerprint(CHECK), CHECK.cwd, TREE)


@pytest.mark.parametrize(
    ("check", "tree", "names"),
    [
        pytest.param(CHECK, TREE, (), id="nothing"),
        pytest.param(CHECK._replace(timeout_seconds=9), TREE, (), id="more patience is no weaker check"),
        pytest.param(CHECK._replace(command="true"), TREE, ("validation.command",), id="command"),
        pytest.param(CHECK._replace(command=None), TREE, ("validation.command",), id="command gone"),
        pytest.param(CHECK._replace(cwd=None), TREE, ("validation.cwd",), id="directory"),
        pytest.param(CHECK, "b" * 40, ("protected",), id="protected files"),
        pytest.param(CHECK._replace(protect=()), None, ("protected",), id="protection gone"),
        pytest.param(
            Validation("true"), None, ("validation.command", "validation.cwd", "protected"), id="everything"
        ),
    ],
)
def test_changed(check: Validation, tree: str | None, names: tuple[str, ...]) -> None:
    at_claim = fingerprint(check._replace(cwd=GATE.cwd))
    assert gates.changed(GATE, at_claim, check.cwd, tree) == names


def test_a_claim_made_by_the_prose_recorded_nothing_that_could_differ() -> None:
    assert gates.changed(None, fingerprint(CHECK), CHECK.cwd, TREE) == ()
    assert gates.changed(Gate(), fingerprint(CHECK), CHECK.cwd, TREE) == ()


def test_command_and_directory_cannot_be_shifted_into_one_another() -> None:
    assert fingerprint(Validation("a", cwd="b")) != fingerprint(Validation("ab"))
    assert fingerprint(Validation("a", cwd="b")) != fingerprint(Validation("b", cwd="a"))


def test_every_part_of_a_check_is_in_its_hash() -> None:
    checks = [Validation(command, cwd=cwd) for command in ("a", "b", None) for cwd in ("c", "d", None)]

    assert len({fingerprint(check) for check in checks}) == len(checks)


def test_a_hash_in_a_list_is_understood_by_every_later_version() -> None:
    def recorded(data: bytes) -> str:
        return "sha256:" + hashlib.sha256(data).hexdigest()

    assert fingerprint(Validation("make test", cwd="app")) == recorded(b"make test\0app")
    assert fingerprint(Validation("make test")) == recorded(b"make test\0")
    assert fingerprint(Validation(None, cwd="app")) == recorded(b"\0app")


def test_the_hash_names_its_algorithm_and_takes_any_text_that_json_can_carry() -> None:
    assert fingerprint(Validation("\udc80 é")).startswith("sha256:")
