"""Projects for the tests of the verbs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from harness_lib.system.processes import child
from tests.system.git.gitrepo import put
from tests.verbs import project as projects
from tests.verbs.project import Agent, Project


class Make(Protocol):
    """Make a project with one commit and an empty list; `bare`: without the list."""

    def __call__(self, name: str = "repo", *, mode: str = "exclusive", bare: bool = False) -> Project: ...


@pytest.fixture
def make_project(tmp_path: Path) -> Iterator[Make]:
    made: list[Project] = []

    def make(name: str = "repo", *, mode: str = "exclusive", bare: bool = False) -> Project:
        made.append(projects.make(tmp_path / name, mode=mode, bare=bare))
        return made[-1]

    yield make
    for project in made:
        project.close()


@pytest.fixture
def project(make_project: Make) -> Project:
    return make_project()


@pytest.fixture
def shared(make_project: Make) -> Project:
    """Return a project whose list several workers share."""
    return make_project(mode="concurrent")


@pytest.fixture
def bare(make_project: Make) -> Project:
    """Return a repository without a list."""
    return make_project(bare=True)


@pytest.fixture
def with_git(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that makes a PATH on which git is of the version it is given."""

    def path(version: str) -> str:
        fake = tmp_path / f"git {version}" / "git"
        fake.parent.mkdir()
        real = shutil.which("git")
        text = (
            f'#!/bin/sh\ncase "$*" in *version) echo git version {version} ;; *) exec {real} "$@" ;; esac\n'
        )
        put(fake, text, executable=True)
        return f"{fake.parent}:{os.environ['PATH']}"

    return path


@pytest.fixture
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `harness doctor` ask hs and a worker how they are in one test, and remember what they said."""
    monkeypatch.setattr(child, "ask", _asked_once)


_ANSWERS: dict[tuple[str, ...], child.Answer] = {}
_ask = child.ask


def _asked_once(command: Sequence[str], **how: Any) -> child.Answer:
    asked = tuple(command)
    if asked not in _ANSWERS:
        _ANSWERS[asked] = _ask(command, **how)
    return _ANSWERS[asked]


@pytest.fixture
def agent(project: Project) -> Agent:
    """Return an agent at work in `project`."""
    return project.agent()


@pytest.fixture
def one(agent: Agent) -> Agent:
    """Return an agent at work in `project`, on a list of the one task "One"."""
    agent.ok("add", "One", "--validate", "true")
    return agent


@pytest.fixture
def holder(agent: Agent) -> Agent:
    """Return an agent that holds the one task of `project`, which is done where there is a file `done`."""
    projects.begin(agent)
    return agent
