"""What the log and the records of runs promise: each line whole, also beside others."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.errors import EnvSetupError
from harness_lib.runs import run_files
from harness_lib.state import journal
from harness_lib.system import fs
from harness_lib.system.clock import Clock
from harness_lib.system.place.roots import Root
from harness_lib.task import Category, LogType

WRITER = """
import sys
from pathlib import Path
from harness_lib.state import journal as log
for number in range(100):
    log.append(Path(sys.argv[1]), f"{sys.argv[2]} {number} " + "x" * 300)
"""


class ScriptedClock(Clock):
    """Does the next of its acts instead of sleeping."""

    def __init__(self, *acts: object) -> None:
        self.acts = list(acts)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        act = self.acts.pop(0)
        assert callable(act)
        act()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "progress.txt"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a\nb", "a\\nb"),
        ("a\r\n\tb", "a\\r\\n\\tb"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x00\x85", "\\x00\\x85"),
        ("a\u2028b\u2029", "a\\u2028b\\u2029"),
        ("\u202egnp", "\\u202egnp"),
        ("file \udcff", "file \\udcff"),
        ("x" * 5000, "x" * 3999 + "…"),
    ],
)
def test_breaks_and_control_characters_are_escaped(path: Path, text: str, escaped: str) -> None:
    """A title must not be able to forge a second log line or to repaint the reader's terminal."""
    journal.append(path, text)

    assert journal.tail(path, 9) == [escaped]


@given(text=st.text())
def test_any_text_is_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    journal.append(path, text)

    assert len(path.read_bytes().decode().splitlines()) == 1


def test_a_torn_line_is_ended_first(path: Path) -> None:
    """A writer died in the middle, or an editor saves without a last line break."""
    path.write_bytes(b"[2025] torn")

    journal.append(path, "whole")

    assert journal.tail(path, 9) == ["[2025] torn", "whole"]


def test_writers_never_mix(path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "abcd"]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]

    lines = path.read_text().splitlines()

    expected = {f"{name} {number} " + "x" * 300 for name in "abcd" for number in range(100)}
    assert len(lines) == 400
    assert set(lines) == expected


def test_a_pipe_in_its_place_neither_hangs_nor_swallows(path: Path) -> None:
    os.mkfifo(path)

    with pytest.raises(EnvSetupError, match="not a regular file"):
        journal.append(path, "line")
    assert journal.tail(path, 5) == []


def test_tail_of_nothing(path: Path) -> None:
    assert journal.tail(path, 5) == []
    path.touch()
    assert journal.tail(path, 5) == []
    journal.append(path, "x")
    assert journal.tail(path, 0) == []


@pytest.mark.parametrize("ending", ["", "\n"])
@pytest.mark.parametrize("count", [1, 200, 2999, 3000, 5000])
def test_tail_returns_the_last_lines(path: Path, ending: str, count: int) -> None:
    lines = [f"{number} {'y' * 40}" for number in range(3000)]
    path.write_text("\n".join(lines) + ending)

    assert journal.tail(path, count) == lines[-count:]


def test_tail_reads_no_more_than_its_bound_and_survives_foreign_bytes(path: Path) -> None:
    path.write_bytes(b"first\n" + b"z" * (3 * journal.TAIL_BYTES) + b"\ncaf\xe9\n")

    assert journal.tail(path, 2) == ["caf\ufffd"]


def test_follow_yields_what_is_added_and_survives_a_new_file(path: Path) -> None:
    journal.append(path, "before")

    def add(data: bytes) -> None:
        with path.open("ab") as stream:
            stream.write(data)

    def anew() -> None:
        path.unlink()
        journal.append(path, "four")

    clock = ScriptedClock(
        lambda: journal.append(path, "one"),
        lambda: add(b"two "),
        lambda: add(b"halves\n"),
        path.unlink,
        lambda: journal.append(path, "three"),
        anew,
    )
    lines = journal.follow(path, clock)

    assert [next(lines) for _ in range(4)] == ["one", "two halves", "three", "four"]


# -- every line of the log keeps the grammar that people grep for


NOW = datetime(2025, 7, 1, 12, 0, 2, 999999, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("kind", "message", "task", "category", "expected"),
    [
        ("LOCK", "released", None, None, "LOCK released"),
        ("Starting", "Title (base=abc)", "task-001", None, "Starting [task-001] Title (base=abc)"),
        ("ERROR", "Redis refused", "task-002", "TASK_EXEC", "ERROR [task-002] [TASK_EXEC] Redis refused"),
        ("ERROR", "no make", None, "ENV_SETUP", "ERROR [ENV_SETUP] no make"),
        ("WARN", "", "task-003", None, "WARN [task-003]"),
    ],
)
def test_stamp_session_type_task_category_message(
    kind: LogType, message: str, task: str | None, category: Category | None, expected: str
) -> None:
    line = journal.line(kind, message, now=NOW, session=7, task=task, category=category)

    assert line == f"[2025-07-01T10:00:02Z] [SESSION-7] {expected}"


# -- what a run and other terminals leave each other lies below `.harness/`, by the process of the run


def test_the_stamps_are_others_after_each_change_of_what_runs_show_and_only_then(root: Root) -> None:
    seen = [run_files.stamps(root)]
    assert seen == [[]]
    for pid, size in ((7, 1), (7, 2), (8, 1), (7, 0), (8, 3)):
        path = run_files.file_of(root, "board", pid)
        fs.write(path, b" " * size, make=True) if size else path.unlink()
        seen.append(run_files.stamps(root))
        fs.write(run_files.file_of(root, "budget", 7), b"{}")
        assert run_files.stamps(root) == seen[-1]
    assert all(one != other for place, one in enumerate(seen) for other in seen[:place])
    assert [len(each) for each in seen] == [0, 1, 1, 2, 1, 1]


def test_a_file_that_goes_while_we_look_has_no_stamp(root: Root) -> None:
    fs.write(run_files.file_of(root, "board", 7), b"{}", make=True)
    run_files.file_of(root, "board", 8).symlink_to("nowhere")
    fs.write(run_files.file_of(root, "board", 9), b"{}")

    assert str(run_files.stamps(root)).count("None") == 1
