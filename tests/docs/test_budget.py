"""The code does not grow unnoticed: no room is larger than tests/budget.toml says."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomlkit

from benchmarks import size

BUDGET = Path(__file__).resolve().parents[1] / "budget.toml"


@pytest.mark.parametrize("folder", ["harness_lib", "tests"])
def test_no_room_is_larger_than_its_budget(folder: str) -> None:
    """Whoever needs more raises the number, and says in a comment beside it what for."""
    budget = tomlkit.parse(BUDGET.read_text()).unwrap()
    over = [
        f"{room}: {measured} {what}, budget {budget[room][what]}"
        for room, found in size.rooms(folder).items()
        for what, measured in found._asdict().items()
        if what != "statements" and measured > budget[room][what]
    ]
    assert not over
