"""How often a change waits for the database: over a network that is most of its time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness_lib.rules import transitions
from harness_lib.state import api
from harness_lib.state.pgstore.changing import RowsTx
from tests.state.pgstore.beside import claim, finish
from tests.state.pgstore.line import Line
from tests.state.pgstore.machines import Shared


def beat(tx: api.Tx) -> None:
    task = tx.task("task-002")
    assert task is not None
    tx.replace(transitions.renew(task, now=tx.now, lease_seconds=90))


@pytest.mark.parametrize(
    "act",
    [lambda tx: claim(tx, "two"), beat, lambda tx: finish(tx, "task-002")],
    ids=["claim", "beat", "finish"],
)
def test_a_change_of_a_task_takes_three_round_trips(
    shared: Shared, line: Line, monkeypatch: pytest.MonkeyPatch, act: Callable[[api.Tx], object]
) -> None:
    """Begin, ask, write with the commit; then the files follow, in one more."""
    found: list[int] = []
    store = shared.with_tasks(3, line=line)
    for task_id in ("task-001", "task-002"):
        with store.transaction("tasks") as tx:
            assert claim(tx, task_id).id == task_id

    before = line.trips
    with store.transaction("tasks") as tx:
        act(tx)
        tx.log("WARN", "done", session=0)
        monkeypatch.setattr(
            store, "_follow", follow(store._follow, lambda: found.append(line.trips - before))
        )
    assert [*found, line.trips - before] == [3, 4]


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
