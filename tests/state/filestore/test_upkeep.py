"""What lies beside the list is told, ended and swept, to the letter; the list stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.rules.selection import UNPROVEN
from harness_lib.state import journal, schema
from harness_lib.state.api import Examined
from harness_lib.state.reading import Problem
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.state.clock import NOON, Noon, made_at_noon


def oddities(store: Store) -> list[tuple[str, ...]]:
    return [tuple(part for part in each if part) for each in store.oddities()]


def test_a_line_that_was_left_unfinished_is_ended(store: Store, root: Root) -> None:
    for content, is_torn in ((b"", False), (b"x\n", False), (b"x", True), (b"one\ntwo", True)):
        root.log.write_bytes(content)

        done, warnings = store.repair()

        ended = ["harness-progress.txt: its unfinished last line is ended"]
        assert (done, warnings) == (ended if is_torn else [], [])
        if is_torn:
            line = f"[{NOON}] [SESSION-4] WARN the line above was left unfinished"
            assert journal.tail(root.log)[-2:] == [content.decode().splitlines()[-1], line]


@pytest.mark.parametrize("lost", ["summary", "generations"])
def test_what_hooks_and_repairs_read_is_made_anew(store: Store, root: Root, lost: str) -> None:
    before = store.whole()
    shutil.rmtree(root.generations) if lost == "generations" else root.summary.unlink()

    assert store.repair() == ([".harness/: generation and summary of the list are made again"], [])

    assert store.repair() == ([], [])
    assert store.whole() == before


def test_a_list_that_is_lost_is_put_back_and_that_is_no_warning_then(store: Store, root: Root) -> None:
    before = store.whole()
    root.state.unlink()

    done, warnings = store.repair()

    (repair,) = done
    assert repair.startswith("harness-tasks.json is missing: restored from .harness/generations/")
    assert warnings == []
    assert store.whole() == before


def test_what_dead_writers_left_is_swept_and_counted_by_its_place(store: Store, root: Root) -> None:
    left = [
        root.path / ".harness-tasks.json.1.tmp",
        root.path / ".harness-tasks.json.bak.2.tmp",
        root.private / ".summary.json.3.tmp",
        root.private / ".summary.json.4.tmp",
        root.generations / ".0000000009.json.5.tmp",
    ]
    for path in left:
        path.touch()
    assert store.sweep() == []
    for path in left:
        os.utime(path, (0, 0))

    where = (root.path, root.private, root.generations)
    gone = [
        f"{place}: {count} temporary files of dead writers removed"
        for place, count in zip(where, (2, 2, 1), strict=True)
    ]
    assert store.sweep() == gone
    assert not any(path.exists() for path in left)


def test_a_log_that_is_none_is_told(store: Store, root: Root) -> None:
    root.log.mkdir()

    hint = "move it away; the next command makes a new log"
    assert oddities(store) == [("bad", f"{root.log} is not a regular file", hint)]


def test_a_log_beyond_a_hundred_megabytes_is_told(store: Store, root: Root) -> None:
    root.log.touch()
    os.truncate(root.log, 100 * 2**20)
    assert oddities(store) == []
    os.truncate(root.log, 103 * 2**20)

    assert oddities(store) == [("ok", "harness-progress.txt has 103 MB; only its end is ever read")]


def test_a_search_of_the_log_says_how_much_of_its_end_it_reads(store: Store, root: Root) -> None:
    root.log.unlink(missing_ok=True)
    assert store.log_searched() is None
    root.log.touch()
    for size, searched in ((journal.TAIL_BYTES, None), (journal.TAIL_BYTES + 1, journal.TAIL_BYTES)):
        os.truncate(root.log, size)
        assert store.log_searched() == searched


def test_whoever_took_the_lock_and_died_is_named(store: Store, root: Root) -> None:
    root.lock_file.write_text("pid 7 on host since then\n", encoding="ascii")

    who = "the state lock was not released by its last holder, pid 7 on host since then"
    assert oddities(store) == [("ok", f"{who}; the kernel frees it")]


def test_the_directory_of_the_legacy_protocol_is_told_by_whom_it_stands_for(
    store: Store, directory: Path
) -> None:
    directory.symlink_to("/")
    foreign = f"{directory} belongs to another user or is a symlink: the legacy protocol is not locked out"
    assert oddities(store) == [("warn", foreign, "let its owner remove it")]
    directory.unlink()
    directory.mkdir()
    nobody = f"{directory} has no pid in it"
    assert oddities(store) == [("warn", nobody, "after ten seconds the next command takes it over")]
    (directory / "pid").write_text(f"{os.getpid()}\n", encoding="ascii")
    assert oddities(store) == [("ok", f"{directory} is held by the living process {os.getpid()}")]
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    (directory / "pid").write_text(f"{dead.pid}\n", encoding="ascii")
    gone = f"{directory} is held by process {dead.pid}, which is gone"
    assert oddities(store) == [("warn", gone, "the next command takes it over")]


# -- what `harness check` finds in the file of the list, to the letter; it writes nothing


NAME = "harness-tasks.json"
NEWEST = "the newest good state is .harness/generations/0000000001.json with 3 tasks"
TORN = "is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"


@pytest.fixture
def store(root: Root) -> Store:
    return made_at_noon(root, (Task("a", depends_on=("b",)), Task("b", depends_on=("a",)), Task("c")))


def problems_in(examined: Examined) -> list[str]:
    return [f"{problem.path}: {problem.message}" for problem in examined.problems]


def edit(root: Root, **fields: object) -> None:
    """Change the third task by hand, and let the first two wait for nothing."""
    document = json.loads(root.state.read_bytes())
    for task in document["tasks"]:
        task["depends_on"] = []
    document["tasks"][2] |= fields
    root.state.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda root: root.state.unlink(), f": {NAME} is missing; {NEWEST}"),
        (lambda root: root.state.write_text("{"), f": {NAME} {TORN}; {NEWEST}"),
        (lambda root: root.state.write_text('{"a": 1}'), f": {NAME} has no tasks in it; {NEWEST}"),
    ],
    ids=["missing", "torn", "emptied"],
)
def test_of_a_lost_list_it_is_told_what_a_repair_would_bring_back(
    store: Store, root: Root, damage: Callable[[Root], object], problem: str
) -> None:
    damage(root)

    examined = store.examine()

    assert (problems_in(examined), *examined[1:]) == ([problem], None, True, False)


def test_where_nothing_is_left_that_is_told(root: Root) -> None:
    lost = Problem("", f"{NAME} is missing; no good earlier state is left")
    assert Store(root).examine() == Examined((lost,))


def test_a_list_in_order_is_answered_for_and_a_ring_is_named(store: Store, root: Root) -> None:
    examined = store.examine()

    assert problems_in(examined) == ["tasks: cycle: a -> b -> a"]
    assert (examined.is_lost, examined.is_only_unproven) == (False, False)
    edit(root)
    examined = store.examine()
    assert problems_in(examined) == []
    assert examined.questions is not None
    assert (examined.questions.now, examined.questions.counts().total) == (Noon().now(), 3)


def test_what_nothing_proves_is_named_and_is_no_other_problem(store: Store, root: Root) -> None:
    edit(root, status="completed")

    examined = store.examine()

    assert problems_in(examined) == [f"tasks[2].status: c: {UNPROVEN}; harness start has its check run"]
    assert examined.is_only_unproven
    assert examined.questions is not None


def test_a_key_that_stands_twice_is_told(store: Store, root: Root) -> None:
    root.state.write_text('{"tasks": [], "tasks": []}')

    examined = store.examine()

    assert problems_in(examined) == ["tasks: stands 2 times; only one can be meant"]
    assert (examined.questions, examined.is_lost) == (None, False)


def test_what_only_the_schema_refuses_is_told_of_what_somebody_else_wrote_and_of_that_alone(
    store: Store, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "problems", lambda _document: [Problem("tasks[2].title", "is poison")])
    told_of_ours = problems_in(store.examine())

    edit(root, title="Poison")

    assert problems_in(store.examine()) == ["tasks[2].title: is poison"]
    assert told_of_ours == ["tasks: cycle: a -> b -> a"]
