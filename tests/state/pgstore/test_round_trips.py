"""How often a change waits for the database: over a network that is most of its time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness_lib.rules import transitions
from harness_lib.state import api
from harness_lib.state.pgstore.changing import RowsTx
from tests.state.pgstore.beside import claim, claimed, finish, there
from tests.state.pgstore.line import Line
from tests.state.pgstore.machines import Shared

PLAYS = 5


def beat(tx: api.Tx, task_id: str) -> None:
    tx.replace(transitions.renew(there(tx, task_id), now=tx.now, lease_seconds=90))


@pytest.mark.parametrize(
    "act", [lambda tx, _: claim(tx, "two"), beat, finish], ids=["claim", "beat", "finish"]
)
def test_a_change_of_a_task_takes_three_round_trips(
    shared: Shared, line: Line, monkeypatch: pytest.MonkeyPatch, act: Callable[[api.Tx, str], object]
) -> None:
    """Begin, ask, write with the commit; then the files follow, in one more.

    On a busy machine a part of an answer can come before all is sent, and count as a trip more; never less.
    """
    before_files: list[int] = []
    store = shared.with_tasks(2 * PLAYS, line=line)
    monkeypatch.setattr(store, "_follow", follow(store._follow, lambda: before_files.append(line.trips)))
    names = [f"task-{number:03}" for number in range(1, PLAYS + 1)]
    for name in names:
        assert claimed(store, name).id == name

    counts = []
    for name in names:
        began = line.trips
        with store.transaction("tasks") as tx:
            act(tx, name)
            tx.log("WARN", "done", 0)
        counts.append([before_files[-1] - began, line.trips - began])
    assert min(counts) == [3, 4]


def follow(then: Callable[..., list[str]], note: Callable[[], None]) -> Callable[..., list[str]]:
    """Return what calls `note`, and then does as before."""

    def following(*args: object) -> list[str]:
        note()
        return then(*args)

    return following


def test_no_statement_of_a_change_is_compiled(shared: Shared) -> None:
    """In a list of 100,000 tasks that would take longer than all the rest of a claim."""
    with shared.with_tasks(1).transaction("tasks") as tx:
        assert isinstance(tx, RowsTx)
        assert tx.connection.execute("show jit").fetchone() == ("off",)
