"""What a clone leads to: links and a PATH into it open and run nothing; nobody else reads what we keep."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_lib.attempts import worker_worktrees
from harness_lib.core.context import Context
from harness_lib.system.install import private_env
from harness_lib.system.place import session_notes
from harness_lib.system.processes import environment
from tests.conftest import for_release
from tests.hookio.conftest import CHECKOUT, EVENTS, ME, Ring, add, agent, site_packages
from tests.hookio.hooks_json import commands
from tests.verbs.project import Project, make

LIST: dict[str, Any] = {
    "session_config": {"concurrency_mode": "exclusive"},
    "tasks": [
        {"id": "task-001", "status": "pending", "validation": {"command": "true"}, "halt": "$(id)"},
        {"id": "task-002", "status": "in_progress", "claimed_by": "agent"},
    ],
}
FILES = (
    "harness-tasks.json",
    "harness-tasks.json.bak",
    "harness-progress.txt",
    ".harness-active",
    "harness-init.sh",
    "harness.toml",
    ".harness/summary.json",
    ".harness/state.lock",
    ".harness/budget.json",
    ".harness/.gitignore",
)
DIRECTORIES = (
    ".harness",
    ".harness/generations",
    ".harness/logs",
    ".harness/logs/task-001",
    ".harness/stops",
    ".harness/beats",
    ".harness/ended",
)
VERBS = (
    ("init",),
    ("init", "--init-script", "--gitignore"),
    ("add", "One", "--validate", "true"),
    ("import", "plan.md"),
    ("export", "--tick", "plan.md"),
    ("edit", "task-001", "--title", "Another"),
    ("retry", "task-001"),
    ("accept", "task-001"),
    ("return", "task-001", "no"),
    ("remove", "task-001"),
    ("show", "task-001"),
    ("start",),
    ("claim",),
    ("checkpoint", "task-001", "1/2", "half"),
    ("note", "task-001", "hello"),
    ("validate", "--all"),
    ("finish",),
    ("fail", "task-001", "--category", "TASK_EXEC", "--message", "no"),
    ("release", "task-001"),
    ("recover",),
    ("beat",),
    ("status",),
    ("log",),
    ("graph",),
    ("show", "task-001"),
    ("check",),
    ("check", "--repair"),
    ("trust",),
    ("rescue", "list"),
    ("pause",),
    ("budget",),
    ("run", "--agent-command", "true"),
    ("stop",),
)
SOME = (
    ("init",),
    ("add", "One", "--validate", "true"),
    ("status",),
    ("start",),
    ("run", "--agent-command", "true"),
)


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Project]:
    """Return a project as a clone brings it: with a list and an enable flag, and nobody's trust."""
    project = make(tmp_path / "repo", bare=True)
    project.put("harness-tasks.json", json.dumps(LIST))
    project.put(".harness-active", "")
    project.put("plan.md", "- [ ] More\n")
    yield project
    project.close()


def _lead_out(project: Project, name: str, victim: Path) -> None:
    """Let `name` in the project be a link to `victim`, which gets the content that it has."""
    place = project.top / name
    if place.is_dir():
        shutil.copytree(place, victim)
        shutil.rmtree(place)
    elif name in DIRECTORIES:
        victim.mkdir(parents=True)
    else:
        victim.parent.mkdir(parents=True)
        victim.write_bytes(place.read_bytes() if place.exists() else b"precious\n")
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)


def _content(place: Path) -> dict[str, bytes | None]:
    paths = [place, *place.rglob("*")] if place.is_dir() else [place]
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


@pytest.mark.parametrize("name", [*FILES, *DIRECTORIES])
def test_none_of_our_files_is_opened_by_link(clone: Project, ring: Ring, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "outside" / "victim"
    _lead_out(clone, name, victim)
    before, agent = _content(victim.parent), clone.agent("agent")

    for verb in VERBS if name in ("harness-tasks.json", ".harness") else SOME:
        said = agent.fails(8, *verb)
        assert said["error"]["kind"] == "REFUSED", verb
        assert str(clone.top / name) in said["error"]["message"], verb
        assert "symbolic link" in said["error"]["message"], verb
    # No hook opens the output of checks.
    for event in EVENTS if name != ".harness/logs/task-001" else ():
        assert ring(event, {"tool_name": "Edit", "tool_input": {"file_path": "harness-tasks.json"}}).silent

    assert _content(victim.parent) == before
    assert (clone.top / name).is_symlink()


@pytest.mark.parametrize("name", ["harness-tasks.json", "harness-progress.txt", ".harness", ".gitignore"])
def test_a_link_to_nothing_is_none_of_our_files_either(clone: Project, tmp_path: Path, name: str) -> None:
    """What is made through it would be made outside."""
    (clone.top / name).unlink(missing_ok=True)
    (clone.top / name).symlink_to(tmp_path / "not-there")

    assert "symbolic link" in clone.agent("agent").fails(8, "init", "--gitignore")["error"]["message"]

    assert not (tmp_path / "not-there").exists()


def test_the_output_of_a_check_goes_to_no_file_that_a_link_names(clone: Project, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n", encoding="utf-8")
    logs = clone.top / ".harness/logs/task-001"
    logs.mkdir(parents=True)
    for number in range(1, 4):
        for kind in ("", "-validate", "-cleanup"):
            (logs / f"{number}{kind}.log").symlink_to(victim)
    (logs / "validate.log").symlink_to(victim)
    clone.edit(tasks=LIST["tasks"][:1])
    clone.agent("person").ok("trust", "--yes", HARNESS_TRUST="1")
    agent = clone.agent("agent")

    for verb in ("start", "validate", "claim", "finish", "status", "show"):
        agent(verb, *(["task-001"] if verb not in ("start", "status") else []))

    assert victim.read_text(encoding="utf-8") == "precious\n"


# -- with `.` or another relative entry on the PATH a clone's own `git` and `python3` would be found first


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
            (place / name).write_text(f"#!/bin/sh\necho $0 >> {tmp_path}/PWNED\nexit 1\n", encoding="utf-8")
            (place / name).chmod(0o755)
    data = tmp_path / "home-of-harness"
    env = private_env.environment(data, private_env.recipe())
    env.mkdir(parents=True)
    data.chmod(0o700)
    (env / private_env.PACKAGES).symlink_to(site_packages())
    (env / private_env.READY).write_text(private_env.recipe(), encoding="utf-8")
    return project, {
        **os.environ,
        "HARNESS_HOME": str(data),
        "HARNESS_STATE_ROOT": str(project.top),
        "PATH": os.pathsep.join([*RELATIVE, os.environ["PATH"]]),
    }


def _run(
    project: Project, env: dict[str, str], *argv: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        argv, cwd=project.top, env=env, input=stdin, capture_output=True, text=True, check=False, timeout=200
    )
    project.close()
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

    assert not (project.top.parent / "PWNED").exists(), (project.top.parent / "PWNED").read_text()
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 5, 7, 8), done


@pytest.mark.parametrize("verb", ["status", *for_release("start", "doctor")])
def test_nor_does_the_command_of_a_package(trap: tuple[Project, dict[str, str]], verb: str) -> None:
    """No launcher has looked at the PATH before it."""
    project, env = trap
    code = "import sys; from harness_lib.cli.main import entry; entry()"

    done = _run(project, env, sys.executable, "-c", code, verb)

    assert not (project.top.parent / "PWNED").exists(), (project.top.parent / "PWNED").read_text()
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

    assert not (project.top.parent / "PWNED").exists()
    assert done.returncode == 0
    # Found from where the host has started it: the payload does not say where that was.
    if event != "PostToolUse":
        assert json.loads(done.stdout)


def test_what_is_left_of_the_path_is_still_a_path() -> None:
    assert environment.absolute("/a:.::b:/c d:../e") == "/a:/c d"
    assert environment.absolute(".:") == "/bin:/usr/bin"
    env: dict[str, str] = {}
    environment.drop_relative(env)
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
    assert not (project.top.parent / "PWNED").exists()


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

    assert "s3cret" in (top / ".harness/logs/task-001/1.log").read_text(encoding="utf-8")
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

    assert _open_to_others(home / "data" / "harness") == []


@pytest.mark.usefixtures("open_to_all")
def test_what_a_hook_makes_anew_is_private_too(tmp_path: Path) -> None:
    """`.harness/` may be deleted at any time, and a hook may be the first to need it."""
    session_notes.write(session_notes.path(str(tmp_path), "stops", "a session"), b"{}")

    assert _open_to_others(tmp_path / ".harness") == []


def test_a_umask_that_takes_the_owners_rights_leaves_the_list_usable(tmp_path: Path) -> None:
    project = make(tmp_path / "repo")
    typed = 'umask 777; exec "$0" -m harness_lib "$@"'
    for words in (("add", "One", "--validate", "true"), ("claim",)):
        subprocess.run(["sh", "-c", typed, sys.executable, *words], cwd=project.top, check=True)

    private = [path for path in (project.top / ".harness").rglob("*") if path.is_dir()]
    made = [project.top / name for name in OURS if (project.top / name).exists()]
    made += [path for path in (project.top / ".harness").rglob("*") if path.is_file()]
    project.close()
    assert all(path.stat().st_mode & 0o600 == 0o600 for path in made)
    assert all(path.stat().st_mode & 0o700 == 0o700 for path in private)
