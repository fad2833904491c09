"""With `.` or another relative entry on the PATH a clone's own `git` and `python3` would be found first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.system.processes import environment
from tests.conftest import for_release
from tests.hookio.conftest import CHECKOUT, ME, add, agent, prepare
from tests.hookio.hooks_json import commands
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put
from tests.verbs.project import Project, make

RELATIVE = (".", "", "tools", "./tools", "..")


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Project, dict[str, str]]:
    """Return a project with programs of its own, and the environment of somebody who has it on the PATH."""
    project = make(tmp_path / "repo")
    add(project, "One")
    agent(project).ok("start")
    for place in (project.top, project.top / "tools", tmp_path):
        place.mkdir(exist_ok=True)
        for name in ("git", "python3", "python3.14", "sh", "uv", "pip", "env", "readlink", "claude", "codex"):
            put(place / name, f"#!/bin/sh\necho $0 >> {tmp_path}/PWNED\nexit 1\n", executable=True)
    data = tmp_path / "home-of-harness"
    prepare(data)
    return project, {
        **os.environ,
        "HARNESS_HOME": str(data),
        "HARNESS_STATE_ROOT": str(project.top),
        "PATH": os.pathsep.join([*RELATIVE, os.environ["PATH"]]),
    }


def _run(
    project: Project, env: dict[str, str], *argv: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program of ours, which runs none of the project's."""
    done = run_to_end(argv, cwd=project.top, env=env, stdin=stdin)
    project.close()
    pwned = project.top.parent / "PWNED"
    assert not pwned.exists(), pwned.read_text()
    return done


@pytest.mark.parametrize(
    "verb",
    [
        ("doctor",),
        ("run", "--max-tasks", "1"),
        *for_release(
            (("validate", "--all"),),
            (("status",),),
            (("start",),),
            (("add", "Two"),),
            (("trust",),),
            (("hooks", "status"),),
        ),
    ],
    ids=" ".join,
)
def test_no_verb_runs_what_a_project_has(trap: tuple[Project, dict[str, str]], verb: tuple[str, ...]) -> None:
    project, env = trap

    done = _run(project, env, str(CHECKOUT / "bin/harness"), *verb)

    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 5, 7, 8), done


@pytest.mark.parametrize("verb", ["status", *for_release("start", "doctor")])
def test_nor_does_the_command_of_a_package(trap: tuple[Project, dict[str, str]], verb: str) -> None:
    """No launcher has looked at the PATH before it."""
    project, env = trap
    code = "import sys; from harness_lib.cli.main import entry; entry()"

    done = _run(project, env, sys.executable, "-c", code, verb)

    assert done.returncode in (0, 5), done


@pytest.mark.parametrize("event", ["Stop", "PreToolUse", *for_release("SessionStart", "PostToolUse")])
def test_no_hook_does(trap: tuple[Project, dict[str, str]], event: str) -> None:
    project, env = trap
    data = json.dumps(
        {"session_id": ME, "hook_event_name": event, "tool_input": {"file_path": "harness-tasks.json"}}
    )
    inherited = {**env, "CLAUDE_PLUGIN_ROOT": str(CHECKOUT)}
    del inherited["HARNESS_STATE_ROOT"]

    done = _run(project, inherited, "/bin/sh", "-c", commands()[event], stdin=data)

    assert done.returncode == 0
    # Found from where the host has started it: the payload does not say where that was.
    if event != "PostToolUse":
        assert json.loads(done.stdout)


def test_what_is_left_of_the_path_is_still_a_path() -> None:
    assert environment.absolute("/a:.::b:/c d:../e") == "/a:/c d"
    assert environment.absolute(".:") == "/bin:/usr/bin"
    env: dict[str, str] = {}
    environment.settle_path(env)
    assert env == {}


def test_the_launcher_finds_its_python_beside_relative_entries(trap: tuple[Project, dict[str, str]]) -> None:
    project, env = trap
    only = project.top.parent / "only"
    only.mkdir()
    (only / "python3").symlink_to(sys.executable)
    git = shutil.which("git")
    assert git
    (only / "git").symlink_to(git)

    done = _run(
        project, {**env, "PATH": f"tools:{only}:."}, "/bin/sh", str(CHECKOUT / "bin/harness"), "status"
    )

    assert done.returncode == 0, done.stderr
