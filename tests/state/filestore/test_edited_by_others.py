"""Others edit the list beside us: what they wrote is kept, and nothing is written over it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness_lib.errors import HeldError
from harness_lib.state import load, schema
from harness_lib.state.codec import ContractError
from harness_lib.state.reading import Problem
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from harness_lib.task import Checkpoint
from tests.state.filestore.changes import document, rename


def test_unknown_keys_survive_a_change_at_every_level(root: Root) -> None:
    examples = Path(__file__).parents[2] / "schemas/valid"
    before = json.loads((examples / "unknown-keys-everywhere.json").read_bytes())
    root.state.write_text(json.dumps(before))

    with Store(root).transaction() as tx:
        task = tx.state.tasks[2]
        grown = (*task.checkpoints, Checkpoint(1, 1, "again", "2025-07-01T10:00:00Z"))
        tx.replace(task._replace(checkpoints=grown))

    after = document(root)
    assert after["tasks"][2].pop("checkpoints") != before["tasks"][2].pop("checkpoints")
    # `commit: null` said nothing, so it is left out.
    assert after["tasks"][2]["intent"] == {
        key: value for key, value in before["tasks"][2].pop("intent").items() if value is not None
    }
    after["tasks"][2].pop("intent")
    # From a harness that wrote no proofs.
    assert after.pop("proofs")
    assert after["tasks"][0].pop("proof")
    assert after == before


def test_a_change_of_one_task_leaves_the_text_of_the_others_as_it_was(store: Store, root: Root) -> None:
    before = root.state.read_text().splitlines()

    rename(store, "New")

    after = root.state.read_text().splitlines()
    assert [line for line in after if line not in before] == ['      "title": "New",']


@pytest.mark.parametrize("way", ["in place", "by rename"])
def test_an_edit_by_the_user_between_two_changes_is_kept(store: Store, root: Root, way: str) -> None:
    text = root.state.read_text().replace('"Second"', '"Mine!!"')
    if way == "in place":
        root.state.write_text(text)
    else:
        other = root.path / "edited"
        other.write_text(text)
        other.rename(root.state)

    assert not load.find(root).ours
    rename(store, "New")

    assert [task.title for task in store.whole().tasks] == ["New", "Mine!!", ""]


def test_what_the_schema_refuses_is_kept(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema is the contract: its word counts for what somebody else wrote, and for that alone."""

    def problems(document: Any, part: str = "list") -> list[Problem]:
        if part == "list":
            titles = [task["title"] for task in document["tasks"]]
            return [Problem(f"tasks[{titles.index('Poison')}].title", "is poison")]
        return [Problem("title", "is poison")] if document.get("title") == "Poison" else []

    monkeypatch.setattr(schema, "problems", problems)
    edited = document(root)
    edited["tasks"][0]["title"] = "Poison"
    root.state.write_text(json.dumps(edited))
    before = root.state.read_bytes()

    message = rf"^{root.state.name}: tasks\[0\]\.title: is poison$"
    with pytest.raises(ContractError, match=message), store.transaction() as tx:
        tx.replace(tx.state.tasks[1]._replace(title="New"))

    assert root.state.read_bytes() == before


def test_an_edit_of_the_same_length_that_breaks_the_contract_is_noticed(store: Store, root: Root) -> None:
    text = root.state.read_text().replace('"P1"', '"P9"')
    root.state.write_text(text)

    with pytest.raises(ContractError) as caught:
        rename(store, "New")

    assert len(caught.value.problems) == 3
    assert root.state.read_text() == text
    with pytest.raises(ContractError, match=r"tasks\[2\]\.priority"):
        store.ask()


def test_what_the_user_saves_while_a_change_is_made_is_not_written_over(store: Store, root: Root) -> None:
    text = root.state.read_text().replace("Second", "Mine")

    with pytest.raises(HeldError) as caught, store.transaction() as tx:  # noqa: PT012 (what is left undone is the promise)
        tx.replace(tx.state.tasks[0]._replace(title="New"))
        root.state.write_text(text)

    message = f"{root.state} was saved by another program just now, so nothing was changed."
    assert (caught.value.message, caught.value.hint) == (message, "Type the command again.")
    assert root.state.read_text() == text


def test_what_the_user_saves_then_is_kept(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    edited, sync = root.state.read_bytes() + b"\n", os.fsync

    def save(descriptor: int) -> None:
        """Let an editor save while the new list is on its way to the disk."""
        file = root.path / "edited"
        file.write_bytes(edited)
        file.replace(root.state)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", save)

    with pytest.raises(HeldError, match="was saved by another program just now"):
        rename(store, "ours")

    assert root.state.read_bytes() == edited
    assert list(root.path.glob(".*.tmp")) == []
