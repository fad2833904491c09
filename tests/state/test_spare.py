"""The git directory keeps a copy of the list and a second name of its log, where no `git clean` comes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness_lib.errors import StateUnreadableError
from harness_lib.state import journal
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from tests.state.clock import NOON, made_at_noon


@pytest.fixture
def lists(root: Root) -> Path:
    """Make a git directory; return where it keeps lists."""
    (root.path / ".git/objects").mkdir(parents=True)
    return root.path / ".git/harness/lists"


def change(store: Store, title: str = "New") -> list[str]:
    with store.transaction() as tx:
        tx.replace(tx.state.tasks[0]._replace(title=title))
        tx.log("WARN", title, 1)
    return tx.warnings


def clean(root: Root) -> None:
    """Take away all that `git clean -fdx` would."""
    for path in root.path.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_each_change_is_copied_for_us_alone(root: Root, lists: Path) -> None:
    below = Root(root.path / "a/b")
    below.path.mkdir(parents=True)
    made_at_noon(below)
    store = made_at_noon(root)

    for title in ("New", "Again"):
        assert change(store, title) == []
        copy = lists / "%.json"
        assert copy.read_bytes() == root.state.read_bytes()
        assert copy.stat().st_mode & 0o777 == 0o600
        copy.chmod(0o644)
    # A list below the top has one of its own.
    assert sorted(path.name for path in lists.glob("*.json")) == ["%.json", "a%2Fb.json"]


def test_what_was_cleaned_away_comes_back_with_its_log(root: Root, lists: Path) -> None:
    store = made_at_noon(root)
    change(store, "One")
    change(store, "Two")
    before = store.whole()
    clean(root)

    copy = lists / "%.json"
    warning = f"harness-tasks.json is missing; this is the state of {copy}."
    assert store.whole() == before
    assert store.ask().warnings == (f"{warning} Restore it with: harness check --repair",)
    warnings = change(store, "Newer")

    assert warnings == [
        (
            f"harness-tasks.json is missing: restored from {copy} (3 tasks); "
            "if anything was written after that, it is lost; harness-progress.txt was put back, too"
        )
    ]
    assert journal.tail(root.log) == [
        f"[{NOON}] [SESSION-1] WARN One",
        f"[{NOON}] [SESSION-1] WARN Two",
        f"[{NOON}] [SESSION-4] WARN {warnings[0]}",
        f"[{NOON}] [SESSION-1] WARN Newer",
    ]
    assert store.whole().tasks[0].title == "Newer"
    assert store.ask().warnings == ()


def test_a_log_that_is_still_there_is_left_as_it_is(root: Root, lists: Path) -> None:
    store = made_at_noon(root)
    change(store)
    # A copy of the same list that is made an instant later is no newer list.
    later = root.state.stat().st_mtime_ns + 10**9
    os.utime(lists / "%.json", ns=(later, later))
    root.state.unlink()

    (warning,) = change(store, "Newer")

    assert warning == (
        "harness-tasks.json is missing: restored from .harness/generations/0000000002.json (3 tasks); "
        "if anything was written after that, it is lost"
    )
    assert len(journal.tail(root.log)) == 3


@pytest.mark.parametrize("in_a_repository", [False, True])
def test_a_log_that_nobody_has_kept_begins_anew(root: Root, in_a_repository: bool) -> None:
    if in_a_repository:
        (root.path / ".git/objects").mkdir(parents=True)
    store = made_at_noon(root)
    change(store)
    change(store)
    for path in (root.state, root.log, root.path / ".git/harness/lists/%.log"):
        path.unlink(missing_ok=not in_a_repository)

    (warning,) = change(store, "Newer")

    assert warning.endswith("it is lost; harness-progress.txt was lost with it and starts empty")
    assert len(journal.tail(root.log)) == 2


def test_the_newest_of_what_is_left_goes_first(root: Root, lists: Path) -> None:
    store = made_at_noon(root)
    change(store)
    copy, generation = lists / "%.json", max(root.generations.iterdir())
    for seconds, path in enumerate((copy, root.backup, generation)):
        document = json.loads(path.read_bytes())
        document["tasks"][0]["title"] = path.name
        # Two of them are names of one file.
        path.unlink()
        path.write_text(json.dumps(document))
        os.utime(path, (seconds, seconds))
    root.state.write_text("{")

    seen = []
    for path in (generation, root.backup, copy):
        seen.append(store.whole().tasks[0].title)
        os.utime(path, (0, 0))
        path.write_text("{")
        if path == generation:
            for other in root.generations.iterdir():
                other.unlink()

    assert seen == ["0000000002.json", "harness-tasks.json.bak", "%.json"]
    with pytest.raises(StateUnreadableError):
        store.ask()


def test_where_the_git_directory_is_closed_there_is_no_copy_and_no_word_about_it(root: Root) -> None:
    (root.path / ".git/objects").mkdir(parents=True)
    (root.path / ".git/harness").write_text("not ours", encoding="ascii")

    assert change(made_at_noon(root)) == []


def test_a_copy_that_cannot_be_written_for_another_reason_is_a_warning(root: Root, lists: Path) -> None:
    store = made_at_noon(root)
    (lists / "%.json").unlink()
    (lists / "%.json").mkdir()

    (warning,) = change(store)

    beginning = "The change is made, but the copy in the git directory could not be written: "
    assert warning == f"{beginning}Is a directory"
    assert store.whole().tasks[0].title == "New"


def test_a_git_directory_without_a_repository_gets_no_copy(root: Root) -> None:
    """Git passes it over; a copy there would be found from every directory below it."""
    (root.path / ".git").mkdir()

    assert change(made_at_noon(root)) == []

    assert list((root.path / ".git").iterdir()) == []
