"""How many tasks a session of the legacy protocol has got through, by the lines of its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.hookio import facts
from harness_lib.system.place import find_root

AT = "[2026-01-01T00:00:00Z]"


def attempted(root: Path, *lines: str) -> int:
    (root / find_root.LOG_FILE).write_text("".join(f"{AT} {line}\n" for line in lines))
    return facts.attempted(str(root), 3)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ([], 0),
        (["[SESSION-3] Completed [task-001] (commit abc)"], 1),
        (["[SESSION-3] ERROR [task-001] [TEST_FAIL] no"], 1),
        (["[SESSION-3] Completed [task-001]", "[SESSION-3] ERROR [task-002] [TIMEOUT] no"], 2),
        (["[SESSION-2] Completed [task-001]", "[SESSION-33] Completed [task-001]"], 0),
        # An error of the environment, and what is no end.
        (["[SESSION-3] ERROR [ENV_SETUP] no", "[SESSION-3] Starting [task-001]"], 0),
        (["[SESSION-3] CHECKPOINT [task-001] step=1/2"], 0),
    ],
)
def test_what_ends_an_attempt_is_counted(tmp_path: Path, lines: list[str], count: int) -> None:
    assert attempted(tmp_path, *lines) == count


def test_without_a_log_of_the_project_nothing_is_counted(tmp_path: Path) -> None:
    assert facts.attempted(str(tmp_path), 3) == 0

    (tmp_path / "other").write_text(f"{AT} [SESSION-3] Completed [a]\n")
    (tmp_path / find_root.LOG_FILE).symlink_to(tmp_path / "other")
    assert facts.attempted(str(tmp_path), 3) == 0


def test_of_a_long_log_only_its_end_is_read(tmp_path: Path) -> None:
    done = "[SESSION-3] Completed [task-001]"
    talk = ["[SESSION-3] Starting [task-001]" for _ in range(5000)]

    assert attempted(tmp_path, done, *talk, done, done) == 2


def test_bytes_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / find_root.LOG_FILE).write_bytes(b"\xff\xfe\n" + f"{AT} [SESSION-3] Completed [a]\n".encode())

    assert facts.attempted(str(tmp_path), 3) == 1
