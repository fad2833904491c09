"""A sandbox that closes the git directory or the home: what can be done is done, and the rest is said."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from harness_lib.system import fs
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin


@pytest.fixture
def closed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project where no file can be made in the git directory, as on a read-only mount."""
    make = os.open

    def refuse(path: str | Path, flags: int, *args: int, **more: int) -> int:
        if flags & os.O_CREAT and "/.git/" in os.fspath(path):
            raise OSError(errno.EROFS, "Read-only file system", os.fspath(path))
        return make(path, flags, *args, **more)

    monkeypatch.setattr(os, "open", refuse)
    return project


@pytest.mark.parametrize(("verb", "linked"), [("start", False), ("claim", False), ("start", True)])
def test_codex_is_told_how_it_must_be_started_and_not_held(
    closed: Project, agent: Agent, verb: str, *, linked: bool
) -> None:
    """In a linked work tree all places: the list, the repository, what git has of it; Codex closes each."""
    closed.edit(tasks=[{"id": "task-001", "status": "pending", "validation": {"command": "true"}}])
    places = [closed.top / ".git"]
    if linked:
        closed.git("worktree", "add", "-q", "../linked")
        agent.cwd = closed.top.parent / "linked"
        places = [closed.top, *places, closed.top / ".git/worktrees/linked"]

    error = agent.fails(7, verb, CODEX_SESSION_ID="abc")["error"]

    roots = json.dumps(list(map(str, places)))
    assert f"codex -c 'sandbox_workspace_write.writable_roots={roots}'" in error["hint"]
    assert "Nothing was changed" in error["message"]
    assert closed.state["sessions"] == []


def test_an_open_session_is_halted(project: Project, one: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    one.ok("start")
    monkeypatch.setattr(fs, "can_write", lambda _place: False)

    one.fails(7, "claim")

    assert project.state["sessions"][0]["halt"].startswith("ENV_SETUP")


def test_init_leaves_nothing_half_made(make_project: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(bare=True)
    monkeypatch.setattr(fs, "can_write", lambda _place: False)

    project.agent().fails(7, "init")

    assert sorted(project.files) == ["tracked.txt"]
    assert not project.file.exists()
    assert not (project.top / ".harness").exists()


def test_checks_on_a_clean_checkout_need_no_home(
    project: Project, agent: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sandbox of Codex leaves the directory for temporary files open."""
    home = tmp_path / "data"
    make, seen = os.mkdir, tmp_path / "seen"

    def refuse(path: str | Path, *args: int, **more: int) -> None:
        if Path(os.fspath(path)).is_relative_to(home):
            raise OSError(errno.EROFS, "Read-only file system", os.fspath(path))
        make(path, *args, **more)

    begin(agent, f"pwd >> {seen}; test -f a")
    agent.finishes({"a": "x\n"})
    seen.unlink()
    monkeypatch.setattr(os, "mkdir", refuse)

    assert agent.ok("validate", "--all", "--committed", HARNESS_HOME=str(home))["stop"]["reason"] == "done"

    (place,) = map(Path, seen.read_text().splitlines())
    assert not place.is_relative_to(project.top)
    assert not place.parent.exists(), "it is left in the directory for temporary files"
    assert len(project.git("worktree", "list").splitlines()) == 1
