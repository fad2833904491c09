"""What an attempt must leave as it was at the claim."""

from __future__ import annotations

import hashlib

import pytest

from harness_lib.rules import attempts
from harness_lib.rules.attempts import command_hash
from harness_lib.task import Gate

GATE = Gate(command_hash("make test", "app"), "app")


@pytest.mark.parametrize(
    ("command", "cwd", "names"),
    [
        pytest.param("make test", "app", (), id="nothing"),
        pytest.param("true", "app", ("validation.command",), id="command"),
        pytest.param(None, "app", ("validation.command",), id="command gone"),
        pytest.param("make test", None, ("validation.cwd",), id="directory"),
        pytest.param("true", None, ("validation.command", "validation.cwd"), id="everything"),
    ],
)
def test_changed(command: str | None, cwd: str | None, names: tuple[str, ...]) -> None:
    assert attempts.changed(GATE, command_hash(command, GATE.cwd), cwd) == names


def test_a_hash_is_of_every_part_of_a_check_and_understood_by_every_later_version() -> None:
    """Command and directory cannot be shifted into one another; any text will do that JSON can carry."""
    parts = {(command, cwd) for command in ("a", "b", "ab", None, "\udc80 é") for cwd in ("a", "b", None)}

    assert len({command_hash(*each) for each in parts}) == len(parts)
    for command, cwd in parts:
        data = f"{command or ''}\0{cwd or ''}".encode("utf-8", "surrogatepass")
        assert command_hash(command, cwd) == "sha256:" + hashlib.sha256(data).hexdigest()
