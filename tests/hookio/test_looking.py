"""How a hook learns how the list stands: from the summary, from what it has found before, from the list."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness_lib.hookio import facts
from harness_lib.state import load, summary
from harness_lib.state.store import Store
from harness_lib.system.clock import SYSTEM
from harness_lib.system.place.roots import Root
from harness_lib.task import State, Task
from tests.hookio.lists import unreadable


@pytest.fixture
def root(root: Root, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Return the root of a list that we wrote, with two tasks; we are elsewhere."""
    monkeypatch.chdir("/")
    tasks = (Task("task-001", "One"), Task("task-002", "Two", status="completed"))
    assert Store(root, timeout=10).create(State(tasks=tasks, sessions=())) == ()
    return root


def look(root: Root) -> tuple[Any, str]:
    return facts.read(str(root.path))


def touch(root: Root, text: str | None = None) -> None:
    """Write the list as somebody else does: the same, or `text`."""
    root.state.write_text(text or root.state.read_text(encoding="utf-8") + "\n", encoding="utf-8")


def foreign(root: Root) -> dict[str, Any]:
    note = json.loads((root.path / ".harness" / "foreign.json").read_bytes())
    assert isinstance(note, dict)
    return note


def test_of_a_list_of_ours_the_summary_is_enough(root: Root) -> None:
    unreadable(root, "summary.json")

    cache, trouble = look(root)

    assert (cache, trouble) == (summary.read(root), "")
    assert cache["counts"]["total"] == 2
    assert not (root.path / ".harness" / "foreign.json").exists()


def test_a_list_of_others_is_decoded_and_what_was_found_is_kept(root: Root) -> None:
    touch(root)

    cache, trouble = look(root)

    assert (cache["counts"]["total"], cache["next"]["id"], trouble) == (2, "task-001", "")
    assert cache["stamp"] == []
    assert foreign(root) == {
        "format": summary.FORMAT,
        "stamp": load.stamp_now(root),
        "summary": cache,
    }


def test_what_was_found_is_told_again_until_the_list_changes(root: Root) -> None:
    touch(root)
    look(root)
    note = root.path / ".harness" / "foreign.json"
    note.write_text(json.dumps({**foreign(root), "summary": {"a": 1}}), encoding="utf-8")

    assert look(root) == ({"a": 1}, "")
    touch(root)
    assert look(root)[0]["counts"]["total"] == 2


def test_a_list_that_cannot_be_used_is_told_with_the_last_one_that_we_wrote(root: Root) -> None:
    before = summary.read(root)
    touch(root, json.dumps({"tasks": [{"id": "a", "status": "almost"}]}))

    cache, trouble = look(root)

    assert cache == before
    assert "tasks[0].status" in trouble
    (root.path / ".harness" / "summary.json").unlink()
    assert look(root) == (None, trouble)


@pytest.mark.parametrize("torn", [False, True])
def test_a_lost_list_is_told_from_what_stands_in_and_not_kept(root: Root, *, torn: bool) -> None:
    root.state.unlink()
    if torn:
        touch(root, "{")

    cache, trouble = look(root)

    assert (cache["counts"]["total"], trouble) == (2, "")
    assert not (root.path / ".harness" / "foreign.json").exists()


def test_what_can_never_run_is_found_in_somebody_elses_list_too(root: Root) -> None:
    touch(root, json.dumps({"tasks": [{"id": "a", "status": "pending", "depends_on": ["a"]}]}))

    assert look(root)[0]["unreachable"] == ["a"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_where_nothing_can_be_kept_the_answer_is_the_same(root: Root) -> None:
    touch(root)
    (root.path / ".harness").chmod(0o500)
    try:
        assert look(root)[0]["counts"]["total"] == 2
    finally:
        (root.path / ".harness").chmod(0o700)


def test_a_note_that_cannot_be_written_is_as_good_as_lost(tmp_path: Path) -> None:
    (tmp_path / ".harness").write_text("in the way", encoding="utf-8")

    facts._keep_foreign(str(tmp_path), [1, 2, 3, 4], summary.build(State(), SYSTEM.now(), []))

    assert list(tmp_path.iterdir()) == [tmp_path / ".harness"]
