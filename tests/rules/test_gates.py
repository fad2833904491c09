"""What an attempt must leave as it was at the claim."""

from __future__ import annotations

import hashlib

import pytest

from harness_lib.rules import attempts
from harness_lib.rules.attempts import command_hash
from harness_lib.task import Gate

TREE = "a" * 40
GATE = Gate(command_hash("make test", "app"), "app", TREE)


@pytest.mark.parametrize(
    ("command", "cwd", "tree", "names"),
    [
        pytest.param("make test", "app", TREE, (), id="nothing"),
        pytest.param("true", "app", TREE, ("validation.command",), id="command"),
        pytest.param(None, "app", TREE, ("validation.command",), id="command gone"),
        pytest.param("make test", None, TREE, ("validation.cwd",), id="directory"),
        pytest.param("make test", "app", "b" * 40, ("protected",), id="protected files"),
        pytest.param("make test", "app", None, ("protected",), id="protection gone"),
        pytest.param(
            "true", None, None, ("validation.command", "validation.cwd", "protected"), id="everything"
        ),
    ],
)
def test_changed(command: str | None, cwd: str | None, tree: str | None, names: tuple[str, ...]) -> None:
    assert attempts.changed(GATE, command_hash(command, GATE.cwd), cwd, tree) == names


def test_a_claim_made_by_the_legacy_protocol_recorded_nothing_that_could_differ() -> None:
    for gate in (None, Gate()):
        assert attempts.changed(gate, command_hash("make test", "app"), "app", TREE) == ()


def test_a_hash_is_of_every_part_of_a_check_and_understood_by_every_later_version() -> None:
    """Command and directory cannot be shifted into one another; any text will do that JSON can carry."""
    parts = {(command, cwd) for command in ("a", "b", "ab", None, "\udc80 é") for cwd in ("a", "b", None)}

    assert len({command_hash(*each) for each in parts}) == len(parts)
    for command, cwd in parts:
        data = f"{command or ''}\0{cwd or ''}".encode("utf-8", "surrogatepass")
        assert command_hash(command, cwd) == "sha256:" + hashlib.sha256(data).hexdigest()
