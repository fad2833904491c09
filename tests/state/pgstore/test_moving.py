"""A list moves to a database, to other machines and back, and nothing of it is lost."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from harness_lib.errors import AwayError, EnvSetupError, HeldError, RefusedError, UsageError
from harness_lib.state import publishing, reading
from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore import connecting, setup
from harness_lib.state.pgstore.store import opened
from harness_lib.state.store import Store
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, State, Task
from tests import postgres
from tests.state.any_state import states
from tests.state.pgstore.line import Line
from tests.state.pgstore.machines import Shared


def in_file(directory: Path, state: State) -> Store:
    directory.mkdir()
    store = Store(Root(directory))
    store.create(state._replace(sessions=()))
    with store.transaction() as tx:
        tx.log("INIT", "Begun in a file", 0)
    return store


@settings(max_examples=8)
@given(state=states)
def test_any_list_comes_back_as_it_went(state: State) -> None:
    """Ids, fences, the log, counts, unknown keys: another machine brings it back to a file."""
    server = postgres.require()
    directory = Path(tempfile.mkdtemp(prefix="moving-")).resolve()
    try:
        file = in_file(directory / "one", state)
        before = file.ask().state
        link = Link(server, directory.name)
        setup.to_database(file, link, SYSTEM)
        root = Root(directory / "two")
        root.path.mkdir()
        setup.join(root, link, SYSTEM)
        setup.to_file(opened(root, SYSTEM), SYSTEM.now())
        after = Store(root).ask().state
        settings_now = before.session_config._replace(concurrency_mode="concurrent")
        assert reading.encode(after) == reading.encode(before._replace(session_config=settings_now))
        texts = [line.partition("] ")[2] for line in Store(root).log_tail()]
        assert texts[0] == "[SESSION-0] INIT Begun in a file"
        assert texts[-1] == f"[SESSION-{state.session_count}] WARN the list was moved to a file"
        with pytest.raises(EnvSetupError, match="There is no list called"):
            opened(file.root, SYSTEM).ask()
    finally:
        shutil.rmtree(directory)


def test_a_list_on_which_somebody_works_is_not_moved(shared: Shared, tmp_path: Path) -> None:
    store = in_file(tmp_path.resolve() / "one", State(sessions=()))
    with store.transaction() as tx:
        tx.add_session(Session(1, "somebody", "elsewhere"))
    with pytest.raises(RefusedError, match="Session 1 of somebody is open"):
        setup.to_database(store, Link(shared.server, shared.name), SYSTEM)
    assert not store.root.link.exists()
    with store.transaction() as tx:
        tx.remove_session(1)
    setup.to_database(store, Link(shared.server, shared.name), SYSTEM)
    there = opened(store.root, SYSTEM)
    with there.transaction() as tx:
        tx.add_session(Session(2, "somebody", "elsewhere"))
    with pytest.raises(RefusedError, match="Session 2 of somebody is open"):
        setup.to_file(there, SYSTEM.now())
    assert opened(store.root, SYSTEM).ask().sessions()


def test_what_another_machine_changes_in_that_moment_is_not_left_behind(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that would finish a task while the file is written waits, and then works on no old list."""
    mine, other = shared.with_tasks(), shared.machine("second", timeout=0.2)
    publish = publishing.publish

    def later(*args: Any, **more: Any) -> list[str]:
        with pytest.raises(HeldError, match="Another machine"), other.transaction():
            pass
        return publish(*args, **more)

    with monkeypatch.context() as patched:
        patched.setattr("harness_lib.state.publishing.publish", later)
        setup.to_file(mine, SYSTEM.now())
    assert not mine.root.link.exists()
    with pytest.raises(EnvSetupError, match="There is no list called"), other.transaction():
        pass


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_move_to_the_file_that_is_cut_off_leaves_one_list(shared: Shared, line: Line, when: str) -> None:
    """Before its COMMIT the list is in the database, after it in the file; the next command finds which."""
    shared.with_tasks(line=line)
    line.lose, line.then_cut = when, True
    store = shared.machine("first", timeout=0.1)
    with pytest.raises(EnvSetupError, match="not known yet"):
        setup.to_file(store, SYSTEM.now())
    line.mend()
    again = opened(store.root, SYSTEM)
    if when == "before":
        assert len(again.ask().search()) == 2
        assert "mirror_of" in store.root.state.read_text()
        setup.to_file(again, SYSTEM.now())
    else:
        with pytest.raises(EnvSetupError, match="was moved to"):
            again.ask()
    assert not store.root.link.exists()
    assert [task.title for task in Store(store.root).ask().search()] == ["Task 1", "Task 2"]


def test_a_name_that_is_taken_leaves_both_lists_as_they_are(shared: Shared, tmp_path: Path) -> None:
    shared.with_tasks()
    store = in_file(tmp_path.resolve() / "one", State(tasks=(Task("task-001", "Mine"),), sessions=()))
    with pytest.raises(RefusedError, match="has a list called"):
        setup.to_database(store, Link(shared.server, shared.name), SYSTEM)
    assert not store.root.link.exists()
    assert [task.title for task in store.ask().search()] == ["Mine"]
    assert len(shared.machine("second").ask().search()) == 2


def test_a_move_that_fails_at_the_end_leaves_no_copy_behind(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = in_file(tmp_path.resolve() / "one", State(sessions=()))

    def full(_root: Root) -> None:
        raise EnvSetupError("no space is left")

    monkeypatch.setattr("harness_lib.state.publishing.publish", lambda *_args, **_more: full(store.root))
    with pytest.raises(EnvSetupError, match="no space"):
        setup.to_database(store, Link(shared.server, shared.name), SYSTEM)
    monkeypatch.undo()
    assert setup.to_database(store, Link(shared.server, shared.name), SYSTEM) == 0


def test_a_project_with_a_list_of_its_own_joins_no_other(shared: Shared, tmp_path: Path) -> None:
    shared.with_tasks()
    store = in_file(tmp_path.resolve() / "one", State(sessions=()))
    with pytest.raises(UsageError, match="a task list of its own"):
        setup.join(store.root, Link(shared.server, shared.name), SYSTEM)


def test_a_clone_that_cannot_join_is_as_it_was(shared: Shared, tmp_path: Path) -> None:
    """It may type the same again, or another address, after a failover."""

    class Hasty(Clock):
        passed = 0.0

        def monotonic(self) -> float:
            self.passed += 20.0
            return self.passed

    root = Root(tmp_path.resolve() / "clone")
    root.path.mkdir()
    with shared.apart():
        shared.with_tasks()
        postgres.set_read_only(shared.server, on=True)
        with pytest.raises(AwayError, match="is read-only now, so nothing was changed"):
            setup.join(root, Link(shared.server, shared.name), Hasty())
    assert not root.link.exists()
    assert not root.state.exists()


def test_a_link_that_came_with_a_clone_or_a_copy_is_not_used(shared: Shared, tmp_path: Path) -> None:
    """Nobody else chooses the database that this machine connects to; joining makes it this machine's own."""
    store = shared.with_tasks()
    shutil.copytree(store.root.path, tmp_path / "copy")
    root = Root(tmp_path.resolve() / "copy")
    with pytest.raises(EnvSetupError, match="came with a clone or a copy"):
        opened(root, SYSTEM)
    setup.join(root, store.link._replace(uuid="", mirrored=0), SYSTEM)
    assert len(opened(root, SYSTEM).ask().search()) == 2


def test_the_files_are_not_taken_for_the_list_once_the_link_is_gone(shared: Shared) -> None:
    """`.harness/` may be deleted at any time: the clone joins again and nothing is lost."""
    store = shared.with_tasks()
    shutil.rmtree(store.root.private)
    file = Store(store.root)
    for act in (file.ask, file.ask_to_change, lambda: file.transaction().__enter__()):
        with pytest.raises(EnvSetupError, match="is only a copy of a list in a database"):
            act()
    setup.join(store.root, store.link._replace(uuid="", mirrored=0), SYSTEM)
    assert len(opened(store.root, SYSTEM).ask().search()) == 2


@pytest.mark.parametrize(
    ("url", "name", "why"),
    [
        ("postgresql://me:secret@db.example.org/agents", "shop", ""),
        ("host=db.example.org password=secret", "shop", ""),
        ("postgresql://db.example.org/agents", "a\0b", ""),
        ("postgresql://db.example.org/agents", "", ""),
        ("postgresql://[", "shop", ""),
        ("postgresql://m\udcff@db.example.org/agents", "shop", ""),
        ("postgresql://me:%secret@db", "shop", r"database\.$"),
        ("postgresql://me:[secret@db.example.org/agents", "shop", ""),
        ("host=db password=my secret", "shop", r"database\.$"),
        ("host=db dbname", "shop", r'missing "=" after "dbname"'),
        ("postgresql://me@db:6543/agents?pgbouncer=true", "shop", 'parameter: "pgbouncer"'),
        ("postgresql://me:pass@db:6543/agents?pgbouncer=secret", "shop", r"database\.$"),
    ],
)
def test_no_password_and_no_odd_name_gets_into_a_link_and_the_answer_says_what_to_type(
    url: str, name: str, why: str
) -> None:
    with pytest.raises(UsageError) as caught:
        connecting.checked(url, name)
    assert re.search(why, caught.value.message)
    assert caught.value.hint
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_a_server_that_is_elsewhere_must_prove_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    modes = {
        url: connecting.encrypted(url).get("sslmode")
        for url in (
            "postgresql://db.example.org/agents",
            "postgresql://localhost,db.example.org/agents",
            "postgresql:///agents?hostaddr=192.0.2.2",
            "postgresql://db.example.org/agents?sslmode=require",
            "postgresql://127.0.0.1/agents",
            "postgresql:///agents?host=/run/postgresql",
        )
    }
    assert list(modes.values()) == [*["verify-full"] * 3, None, None, None]
