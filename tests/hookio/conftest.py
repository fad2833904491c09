"""Hooks are rung as hosts ring them: the executable, a bare interpreter, a payload on standard input.

What they say is the same in this process (`hook`), which costs a tenth; `ring` starts the executable.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest

from harness_lib.hookio import entry
from harness_lib.system.install import private_env
from harness_lib.system.place.roots import Root
from tests.run_to_end import Said
from tests.verbs import project as projects
from tests.verbs.project import Agent, Project

CHECKOUT = Path(__file__).parents[2]
HOOKS = CHECKOUT / "hooks"
# As it is shown: a shell takes it, whatever is in the path.
LAUNCHER = shlex.quote(f"{CHECKOUT}/bin/harness")
ME = "5e551011-0000-4000-8000-000000000001"
OTHER = "5e551011-0000-4000-8000-000000000002"
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


class Heard(Said):
    """What a hook answered."""

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
    def told(self) -> str:
        """What the user of an agent that may stop is told; fails unless the answer has nothing else."""
        assert set(self.json) == {"systemMessage"}, self
        return str(self.json["systemMessage"])

    @property
    def context(self) -> str:
        return str(self.json["hookSpecificOutput"]["additionalContext"])


# Ring the hook of a name; what follows are fields beside the usual ones, or all of the bytes.
# By name: cwd, the words of its command line (args), and variables (env).
Ring = Callable[..., Heard]


def executed(
    bell: Path, data: bytes, cwd: Path, args: tuple[str, ...] = (), env: Mapping[str, str] | None = None
) -> Heard:
    """Run the executable as hosts do, on a bare interpreter."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", bell, *args],
        input=data,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        timeout=200,
        check=False,
    )
    return Heard(done.returncode, done.stdout.decode(), done.stderr.decode())


def rung_here(
    bell: Path, data: bytes, cwd: Path, args: tuple[str, ...] = (), env: Mapping[str, str] | None = None
) -> Heard:
    """Answer as the executable does, but in this process."""
    stdin, out, err = io.TextIOWrapper(io.BytesIO(data)), io.StringIO(), io.StringIO()
    event = EVENTS[bell.stem.partition("-")[2]]
    with ExitStack() as stack:
        stack.enter_context(projects.placed(cwd, env or {}))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        for name, value in {
            "stdin": stdin,
            "argv": [str(bell), *args],
            "path": [*sys.path],
            "dont_write_bytecode": True,
            "pycache_prefix": sys.pycache_prefix,
        }.items():
            stack.enter_context(mock.patch.object(sys, name, value))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", ResourceWarning)  # a beat that is started outlives us
        code = entry.answer(event, args)
    return Heard(code, out.getvalue(), err.getvalue())


def _ringing(tmp_path: Path, *, process: bool) -> Ring:
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
        answer = executed if process and not projects.MUTATED else rung_here
        return answer(HOOKS / f"harness-{name}.py", payload, here, args, env)

    return call


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    """Return a callable that rings hooks in the project `repo` of the test."""
    return _ringing(tmp_path, process=True)


@pytest.fixture
def hook(tmp_path: Path) -> Ring:
    """Return what `ring` does, without a process for each."""
    return _ringing(tmp_path, process=False)


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the skill, which each test leaves as it was."""
    place = tmp_path_factory.mktemp("skill")
    for name in ("hooks", "harness_lib", "schemas"):
        shutil.copytree(CHECKOUT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """Return a project with an empty exclusive list."""
    made = projects.make(tmp_path / "repo")
    yield made
    made.close()


def agent(project: Project, session_id: str = ME, cwd: Path | None = None) -> Agent:
    """Return an agent whose host gives it `session_id`, as Claude Code does."""
    env = {"HARNESS_WORKER_ID": None, "CLAUDE_CODE_SESSION_ID": session_id, "CLAUDECODE": "1"}
    return project.agent(session_id, cwd, **env)


def add(project: Project, *titles: str, check: str = "true") -> None:
    """Add a task for each title."""
    person = project.agent("person")
    for title in titles:
        person.ok("add", title, "--validate", check)


def started(project: Project, *titles: str) -> Agent:
    """Add a task for each title, or for "One", and return the agent that has started on the list."""
    add(project, *titles or ("One",))
    me = agent(project)
    me.ok("start")
    return me


def prepare(data: Path) -> None:
    """Make a private environment in `data` out of the packages that the tests run with."""
    env = private_env.environment(data, private_env.recipe())
    env.mkdir(parents=True)
    data.chmod(0o700)
    (env / private_env.PACKAGES).symlink_to(Path(jsonschema.__file__).parents[1])
    (env / private_env.READY).write_text(private_env.recipe())


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Return where a list is that needs no repository."""
    return Root(tmp_path.resolve())
