"""Two users of one machine: nobody's list is run, and nobody's lock followed or taken, for another."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.system import mkdir_lock
from tests.fault_injection.faulty import as_nobody
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Yield a directory that every user may enter."""
    place = Path(tempfile.mkdtemp(prefix="harness-two-users-")).resolve()
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@root_only
def test_a_list_that_is_read_only_can_be_looked_at(project: Project, agent: Agent, open_place: Path) -> None:
    place = open_place / "repo"
    shutil.copytree(project.top, place)
    place.chmod(0o755)
    # On purpose: what harness makes is for its owner alone.
    (place / "harness-tasks.json").chmod(0o644)
    before = (place / "harness-tasks.json").read_bytes()
    agent.ok("add", "x")
    agent.ok("status")
    agent.cwd = open_place

    seen = as_nobody(agent, "status", HOME=str(open_place), HARNESS_STATE_ROOT=str(place))
    changed = as_nobody(agent, "add", "x", "--json", HOME=str(open_place), HARNESS_STATE_ROOT=str(place))

    assert seen.code == 0, seen.text
    assert changed.code == 7, changed.text
    assert str(place) in changed.json["error"]["message"]
    assert (place / "harness-tasks.json").read_bytes() == before


@root_only
def test_the_doctor_names_files_that_the_user_may_not_read(
    project: Project, agent: Agent, open_place: Path
) -> None:
    """Such as those that `sudo harness init` has made in the user's own project."""
    place = open_place / "repo"
    shutil.copytree(project.top, place)
    shutil.chown(place, "nobody")
    (place / ".harness").chmod(0o700)
    (place / "harness-tasks.json").chmod(0o600)
    agent.ok("doctor")
    agent.cwd = place

    said = as_nobody(agent, "doctor", "--json", HOME=str(open_place))

    assert said.code == 1, said.text
    bad = [each["what"] for each in said.json["found"] if each["level"] == "bad"]
    assert any("harness-tasks.json cannot be read" in what for what in bad)
    assert any(str(place / ".harness") in what for what in bad)


@root_only
def test_no_list_is_made_that_would_be_passed_over(project: Project, agent: Agent, open_place: Path) -> None:
    """A directory that the user may write, and that is another's, as in many a container."""
    place = open_place / "repo"
    subprocess.run(["git", "clone", "-q", project.top, place], check=True)
    for path in (place, *place.rglob("*")):
        path.chmod(0o777)
    put(open_place / "config", "[safe]\n\tdirectory = *\n")
    env = {"HOME": str(open_place), "GIT_CONFIG_GLOBAL": str(open_place / "config")}
    agent.ok("init")
    agent.cwd = place

    said = as_nobody(agent, "init", "--json", **env)

    assert said.code == 2, said.text
    assert "belongs to another user" in said.json["error"]["message"]
    assert not (place / "harness-tasks.json").exists()
    assert as_nobody(agent, "init", **env, HARNESS_STATE_ROOT=str(place)).code == 0


@root_only
def test_no_task_is_claimed_where_git_cannot_keep_its_work(
    project: Project, agent: Agent, open_place: Path
) -> None:
    """As after `sudo git gc`: the objects are another user's."""
    place = open_place / "repo"
    agent.ok("add", "x", "--validate", "true")
    shutil.copytree(project.top, place)
    for path in (place, *place.rglob("*")):
        shutil.chown(path, "nobody")
    shutil.chown(place / ".git/objects", "root")
    agent.ok("claim")
    agent.cwd = place

    said = as_nobody(agent, "claim", "--json", HOME=str(open_place))

    assert said.code == 7, said.text
    assert f"{place / '.git' / 'objects'} is not writable from here" in said.json["error"]["message"]


@root_only
def test_a_lock_directory_of_another_user_is_left_alone_and_said(project: Project, agent: Agent) -> None:
    path = mkdir_lock.path_for(project.top)
    put(path / "pid", "1\n")
    shutil.chown(path, "nobody")

    reply = agent.ok("stop")
    reply = agent.ok("edit", "--max-sessions", "7")

    assert any(str(path) in warning for warning in reply["warnings"])
    assert (path / "pid").read_text() == "1\n"
    shutil.rmtree(path)


def test_a_link_in_the_place_of_the_lock_is_not_it(project: Project, agent: Agent, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    put(victim / "pid", "precious\n")
    path = mkdir_lock.path_for(project.top)
    path.symlink_to(victim)

    agent.ok("add", "One", "--validate", "true")

    assert (victim / "pid").read_text() == "precious\n"
    assert path.is_symlink()
    path.unlink()
