"""Hooks are rung as hosts ring them: the executable, a bare interpreter, a payload on standard input."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import pytest

from harness_lib.hookio import entry
from harness_lib.system.install import private_env
from harness_lib.system.place.roots import Root
from tests.hookio import visits
from tests.verbs import project as projects
from tests.verbs.project import Agent, Project

CHECKOUT = Path(__file__).parents[2]
HOOKS = CHECKOUT / "hooks"
ME = "5e551011-0000-4000-8000-000000000001"
OTHER = "5e551011-0000-4000-8000-000000000002"


@dataclass(frozen=True)
class Heard:
    """What a hook answered."""

    code: int
    out: str
    err: str

    @property
    def silent(self) -> bool:
        """Whether the agent is let go without a word, as every host understands it."""
        return (self.code, self.out, self.err) == (0, "", "")

    @property
    def json(self) -> dict[str, Any]:
        assert self.code == 0, self
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer

    @property
    def reason(self) -> str:
        """Why the agent is held; fails unless the answer has exactly the keys that every host takes."""
        assert set(self.json) == {"decision", "reason"}, self
        assert self.json["decision"] == "block"
        return str(self.json["reason"])

    @property
    def context(self) -> str:
        return str(self.json["hookSpecificOutput"]["additionalContext"])


class Ring(Protocol):
    """Ring the hook `name`; `payload` are fields beside the usual ones, or all of the bytes."""

    def __call__(
        self,
        name: str,
        payload: Mapping[str, object] | bytes = ...,
        *,
        cwd: Path | None = None,
        args: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> Heard: ...


EVENTS = {
    "stop": "Stop",
    "sessionstart": "SessionStart",
    "teammateidle": "TeammateIdle",
    "subagentstart": "SubagentStart",
    "subagentstop": "SubagentStop",
    "sessionend": "SessionEnd",
    "pretooluse": "PreToolUse",
    "posttooluse": "PostToolUse",
}


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    """Return a callable that rings hooks in the project `repo` of the test."""

    def call(
        name: str,
        payload: Mapping[str, object] | bytes = b"",
        *,
        cwd: Path | None = None,
        args: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> Heard:
        here = cwd or (tmp_path / "repo" if (tmp_path / "repo").is_dir() else tmp_path)
        if not isinstance(payload, bytes):
            usual = {"session_id": ME, "cwd": str(here), "hook_event_name": EVENTS[name]}
            payload = json.dumps({**usual, **payload}).encode()
        bell = str(HOOKS / f"harness-{name}.py")
        if projects.MUTATED:
            return _rung_here(bell, EVENTS[name], payload, here, args, env or {})
        done = subprocess.run(
            [sys.executable, "-I", "-S", bell, *args],
            input=payload,
            cwd=here,
            env={**os.environ, **(env or {})},
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Heard(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


def _rung_here(
    bell: str, event: str, payload: bytes, cwd: Path, args: tuple[str, ...], env: Mapping[str, str]
) -> Heard:
    """Answer as the doorbell does, but in this process: a mutant is only known here."""
    stdin, out, err = io.TextIOWrapper(io.BytesIO(payload)), io.StringIO(), io.StringIO()
    with ExitStack() as stack:
        stack.enter_context(projects.placed(cwd, env))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        for name, value in {
            "stdin": stdin,
            "argv": [bell, *args],
            "path": [*sys.path],
            "dont_write_bytecode": True,
            "pycache_prefix": sys.pycache_prefix,
        }.items():
            stack.enter_context(mock.patch.object(sys, name, value))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", ResourceWarning)  # a beat that is started outlives us
        code = entry.answer(event, args)
    return Heard(code, out.getvalue(), err.getvalue())


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """Return a project with an empty exclusive list."""
    made = projects.make(tmp_path / "repo")
    yield made
    made.close()


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Project]:
    """Return a project with an empty concurrent list."""
    made = projects.make(tmp_path / "repo", mode="concurrent")
    yield made
    made.close()


def agent(project: Project, session_id: str = ME, cwd: Path | None = None) -> Agent:
    """Return an agent whose host gives it `session_id`, as Claude Code does."""
    env = {"HARNESS_WORKER_ID": None, "CLAUDE_CODE_SESSION_ID": session_id, "CLAUDECODE": "1"}
    return project.agent(session_id, cwd, **env)


def worktree(project: Project, name: str = "tree") -> Path:
    """Return a new linked worktree beside `project`."""
    path = project.top.parent / name
    project.git("worktree", "add", "-q", str(path), "-b", name)
    return path


def add(project: Project, *titles: str, check: str = "true") -> None:
    """Add a task for each title."""
    person = project.agent("person")
    for title in titles:
        person.ok("add", title, "--validate", check)


def site_packages() -> Path:
    spec = importlib.util.find_spec("jsonschema")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parents[1]


@pytest.fixture
def prepared(home: Path) -> Path:
    """Make a private environment out of the packages that the tests run with; return it."""
    data = home / "data" / "harness"
    env = private_env.environment(data)
    env.mkdir(parents=True)
    data.chmod(0o700)
    private_env.packages(env).symlink_to(site_packages())
    private_env.ready_marker(env).write_text(private_env.recipe(), encoding="utf-8")
    return env


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Return where the list is that is visited in this process, without a repository."""
    return Root(tmp_path.resolve())


@pytest.fixture
def visit(root: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> visits.Visit:
    return visits.visitor(root, monkeypatch, capsys)
