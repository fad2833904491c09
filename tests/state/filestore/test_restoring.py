"""A lost or broken list comes back, a person's edit is never replaced, and nothing broken is thrown away."""

from __future__ import annotations

import errno
import json
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError, StateUnreadableError
from harness_lib.state import summary
from harness_lib.state.codec import ContractError
from harness_lib.state.filestore import generations, publishing
from harness_lib.state.filestore.schema_cache import MANY
from harness_lib.state.filestore.store import Store
from harness_lib.system.files import append_log, atomic
from harness_lib.system.place.roots import Root
from harness_lib.task import State


def broken_files(root: Root) -> list[Path]:
    return sorted(root.path.glob("harness-tasks.json.broken-*"))


def change(store: Store) -> list[str]:
    with store.transaction() as tx:
        tx.replace(tx.state.tasks[0]._replace(attempts=tx.state.tasks[0].attempts + 1))
    return tx.warnings


def drop_generations(root: Root) -> None:
    for path in root.generations.iterdir():
        path.unlink()


def test_a_list_cut_off_anywhere_is_shown_whole_and_stays_as_it_is(store: Store, root: Root) -> None:
    whole, data = store.read().state, root.state.read_bytes()
    # All but the last brace and line break; without the line break alone it is whole.
    for length in range(len(data) - 1):
        root.state.write_bytes(data[:length])

        snapshot = store.read()

        assert snapshot.state == whole
        assert len(snapshot.warnings) == 1
        assert root.state.read_bytes() == data[:length]
    assert broken_files(root) == []


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_list_cut_off_is_restored_and_the_rest_of_it_kept(store: Store, root: Root, part: float) -> None:
    whole, data = store.read().state, root.state.read_bytes()
    torn = data[: int(len(data) * part)]
    root.state.write_bytes(torn)

    with store.transaction() as tx:
        assert tx.state == whole

    assert [path.read_bytes() for path in broken_files(root)] == [torn]
    assert "restored from .harness/generations/" in tx.warnings[0]
    assert tx.warnings[0] in append_log.tail(root.log, 1)[0]
    assert " WARN " in append_log.tail(root.log, 1)[0]
    assert store.read().warnings == ()
    assert change(store) == []


def test_a_lost_list_is_restored(store: Store, root: Root) -> None:
    whole = store.read().state
    root.state.unlink()

    assert store.read().state == whole
    warnings = change(store)

    assert "is missing: restored" in warnings[0]
    assert broken_files(root) == []
    assert store.read().state.tasks[0].attempts == 1


def test_two_broken_files_of_one_second_are_both_kept(store: Store, root: Root) -> None:
    for text in ("{ one", "{ two", "{ three"):
        root.state.write_text(text, encoding="utf-8")
        change(store)

    assert {path.read_text(encoding="utf-8") for path in broken_files(root)} == {"{ one", "{ two", "{ three"}


def test_what_is_kept_of_a_broken_list_is_among_the_names_that_never_enter_a_commit(
    store: Store, root: Root
) -> None:
    root.state.write_text("{", encoding="utf-8")
    change(store)

    (kept,) = broken_files(root)
    assert any(kept.match(name) for name in root.harness_names())


def test_without_generations_the_backup_is_used(store: Store, root: Root) -> None:
    change(store)
    drop_generations(root)
    root.state.write_text("{", encoding="utf-8")

    assert "harness-tasks.json.bak" in change(store)[0]
    assert store.read().state.tasks[0].attempts == 1


def test_a_backup_that_the_prose_wrote_after_our_last_change_goes_first(store: Store, root: Root) -> None:
    document = json.loads(root.state.read_bytes())
    document["tasks"][0]["title"] = "Changed by the prose"
    root.backup.write_text(json.dumps(document), encoding="utf-8")
    root.state.write_text("{", encoding="utf-8")

    assert store.read().state.tasks[0].title == "Changed by the prose"


def test_generations_that_are_broken_themselves_are_passed_over(store: Store, root: Root) -> None:
    change(store)
    newest = max(root.generations.iterdir())
    newest.write_bytes(newest.read_bytes()[:50])
    root.state.unlink()
    root.backup.unlink()

    change(store)

    assert store.read().state.tasks[0].attempts == 1


def test_with_nothing_good_left_nothing_is_written_but_the_seed_s_line(store: Store, root: Root) -> None:
    root.state.write_text("{ torn", encoding="utf-8")
    root.backup.write_text("{}", encoding="utf-8")
    drop_generations(root)

    with pytest.raises(StateUnreadableError, match="no good earlier state"):
        change(store)

    line = append_log.tail(root.log, 1)[0]
    assert line.endswith("ERROR [ENV_SETUP] harness-tasks.json corrupted and unrecoverable")
    assert root.state.read_text(encoding="utf-8") == "{ torn"
    assert root.backup.read_text(encoding="utf-8") == "{}"


def test_with_no_list_at_all_reading_says_how_to_make_one(root: Root) -> None:
    with pytest.raises(StateUnreadableError) as caught:
        Store(root).read()

    assert caught.value.hint is not None
    assert "harness init" in caught.value.hint


@pytest.mark.parametrize("text", ["[]", '"tasks"', "null", '{"tasks": [{"id": "a"}]}', '{"tasks": {}}'])
def test_what_parses_is_a_person_s_edit_and_never_replaced(store: Store, root: Root, text: str) -> None:
    root.state.write_text(text, encoding="utf-8")

    with pytest.raises(ContractError):
        store.read()
    with pytest.raises(ContractError):
        change(store)

    assert root.state.read_text(encoding="utf-8") == text
    assert broken_files(root) == []


def test_a_list_that_somebody_has_emptied_is_restored_and_what_stood_there_is_kept(
    store: Store, root: Root
) -> None:
    """An object without tasks is nobody's edit of the tasks: something has written over them."""
    text = '{"note": "mine"}'
    root.state.write_text(text, encoding="utf-8")

    assert [task.id for task in store.read().state.tasks] == ["task-001", "task-002", "task-003"]
    change(store)

    assert store.read().warnings == ()
    assert len(json.loads(root.state.read_bytes())["tasks"]) == 3
    assert [path.read_text(encoding="utf-8") for path in broken_files(root)] == [text]


def test_a_person_can_give_up_an_edit_and_nothing_of_it_is_lost(store: Store, root: Root) -> None:
    text = '{"tasks": [{"id": "mine"}]}'
    root.state.write_text(text, encoding="utf-8")

    warnings = store.restore()

    assert len(json.loads(root.state.read_bytes())["tasks"]) == 3
    assert [path.read_text(encoding="utf-8") for path in broken_files(root)] == [text]
    assert broken_files(root)[0].name in warnings[0]


def test_the_broken_bytes_never_become_the_backup(store: Store, root: Root) -> None:
    change(store)
    before = root.backup.read_bytes()
    root.state.write_text("{", encoding="utf-8")

    with store.transaction():
        pass

    assert root.backup.read_bytes() == before


def test_twenty_generations_are_kept_each_a_file_of_its_own(store: Store, root: Root) -> None:
    for _ in range(25):
        change(store)

    kept = sorted(root.generations.iterdir())
    assert len(kept) == generations.KEPT
    assert len({path.stat().st_ino for path in (*kept, root.state, root.backup)}) == generations.KEPT + 2
    assert [path.stem for path in kept] == [f"{number:010}" for number in range(7, 27)]


def test_large_generations_are_fewer_but_the_newest_always_stays(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "KEPT_BYTES", 1000)
    for size in (400, 400, 400, 5000):
        generations.save(root, b"x" * size)

    assert [path.name for path in root.generations.iterdir()] == ["0000000004.json"]
    generations.save(root, b"y")
    assert [path.name for path in root.generations.iterdir()] == ["0000000005.json"]
    # What fits exactly is kept.
    generations.save(root, b"z" * 999)
    assert len(list(root.generations.iterdir())) == 2


def test_files_of_others_among_the_generations_are_left_alone(root: Root) -> None:
    root.generations.mkdir(parents=True)
    theirs = {"mine.json", "12.json", "notes.txt", "abcdefghij.json", "12345678901.json", "²²²²²²²²²².json"}
    for name in theirs:
        (root.generations / name).write_text("{}", encoding="utf-8")
    for _ in range(generations.KEPT + 5):
        generations.save(root, b"{}")

    assert theirs <= {path.name for path in root.generations.iterdir()}


def test_one_that_goes_while_they_are_counted_keeps_no_older_one(root: Root) -> None:
    for _ in range(generations.KEPT):
        generations.save(root, b"{}")
    oldest = min(root.generations.iterdir())
    # A link to nothing is there in a listing and not there to be measured, as one that goes in between.
    (root.generations / "0000000021.json").symlink_to("gone")

    generations.save(root, b"{}")

    assert not oldest.exists()


def test_who_asks_hears_what_was_wrong(store: Store, root: Root) -> None:
    root.state.write_text("{", encoding="utf-8")

    for questions in (store.ask(), store.ask_to_change()):
        (warning,) = questions.warnings
        assert warning.endswith("Restore it with: harness check --repair")


def test_an_error_of_a_list_names_its_file(store: Store, root: Root) -> None:
    root.state.write_text('{"tasks": [{"id": "a", "status": "done"}]}', encoding="utf-8")

    with pytest.raises(ContractError, match=rf"^{root.state.name}: tasks\[0\]\.status"):
        store.read()


def test_a_list_comes_back_in_which_a_task_can_never_run(store: Store, root: Root) -> None:
    with store.transaction() as tx:
        first, second, *_ = tx.state.tasks
        tx.replace(first._replace(depends_on=(second.id,)))
        tx.replace(second._replace(depends_on=(first.id,)))
    root.state.write_text("{", encoding="utf-8")

    store.restore()

    assert summary.read_for(root, root.state.stat()) is not None


def test_a_first_list_that_a_full_disk_does_not_take_is_an_error(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(atomic, "write", full)

    with pytest.raises(EnvSetupError, match="No space left"):
        publishing.publish(root, State(), datetime.now(timezone.utc), old=None)


def test_many_tasks_of_somebody_else_are_changed(store: Store, root: Root) -> None:
    document = json.loads(root.state.read_bytes())
    document["tasks"] = [{"id": f"theirs-{number}", "status": "pending"} for number in range(MANY + 1)]
    root.state.write_text(json.dumps(document), encoding="utf-8")

    change(store)

    assert store.read().state.tasks[0].attempts == 1
