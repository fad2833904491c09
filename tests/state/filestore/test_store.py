"""The one door to the list: what a transaction promises to us, to people and to other processes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.state import journal, load, summary
from harness_lib.state.store import Store
from harness_lib.system import mkdir_lock
from harness_lib.system.place.roots import Root
from harness_lib.task import SessionConfig, State
from tests.state.clock import NOON, NOON_IN_NAMES, Noon
from tests.state.filestore.changes import document, rename
from tests.state.questions import answers

REPOSITORY = Path(__file__).parents[3]
COUNT_UP = """
import sys
from pathlib import Path
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root

store = Store(Root(Path(sys.argv[1])))
for _ in range(int(sys.argv[2])):
    with store.transaction() as tx:
        task = tx.state.tasks[0]
        tx.replace(task._replace(attempts=task.attempts + 1, title=str(task.attempts + 1)))
        tx.log("CHECKPOINT", "counted", 1, task.id)
"""


def test_a_change_leaves_the_bytes_before_it_and_a_summary_that_fits(store: Store, root: Root) -> None:
    before = root.state.read_bytes()

    rename(store, "New")

    assert store.whole().tasks[0].title == document(root)["tasks"][0]["title"] == "New"
    assert root.backup.read_bytes() == before
    newest, digest = load.newest(root), summary.read(root)
    assert newest is not None
    assert newest.document == document(root)
    assert digest is not None
    assert digest["next"] == {"id": "task-001", "title": "New"}


def test_a_transaction_without_a_change_writes_only_its_log_lines(store: Store, root: Root) -> None:
    before = summary.stamp(root.state.stat())

    with store.transaction() as tx:
        tx.log("WARN", "only said", 4)

    assert summary.stamp(root.state.stat()) == before
    assert journal.tail(root.log, 9)[0].endswith("[SESSION-4] WARN only said")


def test_a_lock_directory_that_cannot_be_made_is_told_and_nothing_is_changed(
    store: Store, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(mkdir_lock.SeedLock, "acquire", full)

    message = f"^{root.path} cannot be written, so nothing was changed: No space left on device$"
    with pytest.raises(EnvSetupError, match=message):
        rename(store, "New")


def test_no_change_is_lost_between_processes_and_readers_see_it_whole(store: Store, root: Root) -> None:
    counters = [
        subprocess.Popen([sys.executable, "-c", COUNT_UP, str(root.path), "12"], cwd=REPOSITORY)
        for _ in range(4)
    ]
    seen = 0
    while any(counter.poll() is None for counter in counters):
        snapshot = store.ask()
        task = snapshot.state.tasks[0]
        assert not snapshot.warnings
        assert task.attempts >= seen
        assert task.title in {"First", str(task.attempts)}
        seen = task.attempts

    assert [counter.returncode for counter in counters] == [0, 0, 0, 0]
    assert store.whole().tasks[0].attempts == 48
    assert load.find(root).ours
    assert len(journal.tail(root.log, 100)) == 48


def test_a_root_that_cannot_be_written_is_the_machine_s_fault(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(EnvSetupError):
        Store(Root(file)).create(State())


def test_a_list_that_is_begun_knows_when(root: Root) -> None:
    settings = SessionConfig("concurrent", 1, 2)

    Store(root, clock=Noon()).begin(settings, "x")

    assert (document(root)["created"], document(root)["sessions"]) == (NOON, [])
    assert Store(root).whole().session_config == settings


def test_what_is_asked_in_order_to_change_is_what_is_asked(store: Store) -> None:
    assert answers(store.ask_to_change()) | {"now": None} == answers(store.ask()) | {"now": None}


def test_a_list_that_is_started_over_keeps_the_old_one_beside_it(store: Store, root: Root) -> None:
    before = root.state.read_bytes()

    with Store(root, clock=Noon()).transaction() as tx:
        name = tx.start_over()

    assert name == f"{root.state.name}.old-{NOON_IN_NAMES}"
    assert (root.path / name).read_bytes() == before
    assert (document(root)["created"], document(root)["sessions"]) == (NOON, [])
    assert store.whole().tasks == ()
