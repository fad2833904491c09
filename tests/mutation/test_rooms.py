"""Mutants are tried with tests that are there: pytest passes over a deselected one that is not."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.mutants import CHECKOUT, ROOMS
from tests.mutation.rooms import TESTS

DESELECT = "--deselect="
NAMED = [argument.removeprefix(DESELECT) for arguments in TESTS.values() for argument in arguments]


def test_every_room_has_tests() -> None:
    assert set(TESTS) == set(ROOMS)


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_is_there(name: str) -> None:
    place, _, test = name.partition("::")
    assert (CHECKOUT / place).exists()
    if test:
        tree = ast.parse((CHECKOUT / place).read_text())
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
