"""What a check prints may be a key: nobody else on the machine can read what harness keeps of it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.attempts import worker_worktrees
from harness_lib.core.context import Context
from harness_lib.system.place import own_files
from tests.run_to_end import run_to_end
from tests.verbs.project import Project, make

OURS = ("harness-tasks.json", "harness-tasks.json.bak", "harness-progress.txt", ".harness-active")


@pytest.fixture
def open_to_all() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


@pytest.fixture
def worked_in(open_to_all: None, tmp_path: Path) -> Iterator[Project]:  # noqa: ARG001
    """Return a project in which a check has printed a key and failed, and a task was done."""
    project = make(tmp_path / "repo")
    agent = project.agent()
    agent.ok("add", "One", "--validate", "echo KEY=s3cret; false")
    agent.ok("claim")
    project.put("work.txt")
    agent.fails(1, "finish")
    agent.ok("claim")
    agent.ok("note", "task-001", "hello")
    agent.ok("checkpoint", "task-001", "1/2", "half")
    yield project
    project.close()


def _open_to_others(*places: Path) -> list[str]:
    paths = [path for place in places for path in (place, *place.rglob("*"))]
    assert paths
    return [str(path) for path in paths if stat.S_IMODE(path.lstat().st_mode) & 0o077]


def test_nobody_else_can_read_what_harness_keeps(worked_in: Project) -> None:
    top = worked_in.top

    assert "s3cret" in (top / ".harness/logs/task-001/1.log").read_text()
    assert _open_to_others(*(top / name for name in OURS), top / ".harness", top / ".git/harness") == []


def test_what_stood_open_is_closed(worked_in: Project) -> None:
    """By an earlier harness, or by a clone."""
    for place in (worked_in.top / ".harness", worked_in.top / ".git/harness"):
        place.chmod(0o755)

    worked_in.agent().ok("add", "Two", "--validate", "true")
    worked_in.agent().ok("init")

    assert _open_to_others(worked_in.top / ".harness", worked_in.top / ".git/harness") == []


def test_a_list_that_its_owner_has_opened_stays_open(worked_in: Project) -> None:
    worked_in.file.chmod(0o640)

    worked_in.agent().ok("add", "Two", "--validate", "true")

    assert stat.S_IMODE(worked_in.file.stat().st_mode) == 0o640
    assert _open_to_others(worked_in.top / ".harness") == []


def test_the_work_trees_of_a_run_are_in_a_directory_of_our_own(worked_in: Project, home: Path) -> None:
    worker_worktrees.directory_of(Context(env=os.environ, cwd=worked_in.top), "run-1")

    assert _open_to_others(home / "data/harness") == []


@pytest.mark.usefixtures("open_to_all")
def test_what_a_hook_makes_anew_is_private_too(tmp_path: Path) -> None:
    """`.harness/` may be deleted at any time, and a hook may be the first to need it."""
    own_files.write_note(own_files.note_path(str(tmp_path), "stops", "a session"), b"{}")

    assert _open_to_others(tmp_path / ".harness") == []


def test_a_umask_that_takes_the_owners_rights_leaves_the_list_usable(tmp_path: Path) -> None:
    project = make(tmp_path / "repo")
    typed = 'umask 777; exec "$0" -m harness_lib "$@"'
    for words in (("add", "One", "--validate", "true"), ("claim",)):
        run_to_end(["sh", "-c", typed, sys.executable, *words], cwd=project.top, check=True)
    project.close()

    own = [place for name in OURS if (place := project.top / name).exists()]
    for path in (*own, *(project.top / ".harness").rglob("*")):
        rights = 0o700 if path.is_dir() else 0o600
        assert path.stat().st_mode & rights == rights, path
