"""Full disks, missing rights, vanishing directories, wrong clocks, and other users."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.system import seedlock
from tests.ops.conftest import Make
from tests.ops.project import Agent, Project
from tests.weather.faulty import as_nobody, in_python, with_fault

ROOT_FILES = r"/repo/(\.harness|harness-|\.harness-)"
STATE = r"/repo/\.harness-tasks\.json\."

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def begin(agent: Agent, check: str = "test -f done") -> None:
    agent.ok("add", "One", "--validate", check)
    agent.ok("claim")


# -- full, or read-only


@pytest.mark.parametrize("number", ["ENOSPC", "EROFS", "EACCES"])
@pytest.mark.parametrize("verb", ["add x", "start", "checkpoint task-001 1/2 x", "finish", "release", "stop"])
def test_where_nothing_can_be_written_nothing_changes(
    project: Project, agent: Agent, number: str, verb: str
) -> None:
    """Exit 7 that names the place; the list, the log and the user's files are as before."""
    begin(agent)
    if verb == "start":
        agent.ok("stop")
    project.put("done", "work\n")
    before = project.file.read_bytes(), project.log, project.files, project.head

    said = with_fault(agent, number, ROOT_FILES, *verb.split(), "--json")

    assert said.code == 7, said.text
    assert str(project.top) in said.json["error"]["message"]
    assert said.json["error"]["hint"]
    assert (project.file.read_bytes(), project.log, project.files, project.head) == before
    assert not list(project.top.glob(".harness-tasks.json.*"))


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("after", [1, 2])
def test_a_disk_that_fills_in_the_middle_of_finish_is_made_up_for(
    project: Project, agent: Agent, after: int, passes: bool
) -> None:
    """Whichever write of the list fails: typed again with room on the disk, it comes to the same end."""
    begin(agent, "test -f done" if passes else "false")
    project.put("done", "work\n")
    base = project.head

    said = with_fault(agent, "ENOSPC", STATE, "finish", "--json", after=after)
    assert said.code == 7, said.text
    agent("finish")

    task = project.task()
    assert task["status"] == ("completed" if passes else "failed")
    assert task["attempts"] == (0 if passes else 1)
    assert task.get("intent") is None
    if passes:
        assert project.git("log", "--format=%H %P") == f"{project.head} {base}\n{base}"
        assert project.git("show", "HEAD:done") == "work"
    else:
        assert project.head == base
        assert project.git("show", "refs/harness/rescue/task-001/1:done") == "work"
    assert project.git("status", "--porcelain") == ""


FOR_CONVENIENCE = {
    "log": (r"progress\.txt", "checkpoint task-001 1/2 x"),
    "generations": ("generations/", "checkpoint task-001 1/2 x"),
    "summary": (r"summary\.json", "checkpoint task-001 1/2 x"),
    "marker": ("harness-active", "add Two --validate true"),
}


@pytest.mark.parametrize(("what", "verb"), FOR_CONVENIENCE.values(), ids=FOR_CONVENIENCE.keys())
def test_what_is_only_for_convenience_may_fail_with_a_warning(
    project: Project, agent: Agent, what: str, verb: str
) -> None:
    begin(agent)
    (project.top / ".harness-active").unlink()
    before = project.state

    said = with_fault(agent, "ENOSPC", what, *verb.split(), "--json")

    assert said.code == 0, said.text
    assert project.state != before
    assert any("could not be written" in warning for warning in said.json["warnings"])


# -- places


@pytest.mark.parametrize(
    "name", ["with spaces", "tüte", "quo'te\"s", "dollar$(touch evil)", "new\nline", "-rf"]
)
def test_a_state_root_on_any_path(make_project: Make, name: str) -> None:
    project = make_project(name)
    agent = project.agent()
    agent.ok("add", "One", "--validate", "test -f done", "--cleanup", "true")
    agent.ok("claim")
    agent.ok("checkpoint", "task-001", "1/2", "x")
    agent.fails(1, "finish")
    agent.ok("claim")
    project.put("done")

    agent.ok("finish")

    assert sorted(project.files) == ["done", "tracked.txt"]
    assert project.git("status", "--porcelain") == ""


def test_a_state_root_that_vanishes_while_the_check_runs(make_project: Make, tmp_path: Path) -> None:
    """The list lies elsewhere; what is lost is the list, never the work."""
    project, lists = make_project(bare=True), make_project("lists")
    agent = project.agent(HARNESS_STATE_ROOT=str(lists.top))
    agent.ok("add", "One", "--validate", f"rm -rf {lists.top}")
    agent.ok("trust", "--yes")
    agent.ok("claim")
    project.put("work.txt", "work\n")
    head = project.head

    said = agent("finish", "--json")

    assert said.code in (4, 7), said.text
    assert str(tmp_path) in said.json["error"]["message"]
    assert project.read("work.txt") == "work\n"
    assert project.head == head


@pytest.mark.parametrize("verb", ["status", "start", "add x", "claim"])
def test_a_pinned_root_that_is_no_directory(project: Project, agent: Agent, verb: str) -> None:
    file = project.put("file")
    for place in (str(file), str(project.top / "nowhere")):
        error = agent.fails(7, *verb.split(), HARNESS_STATE_ROOT=place)["error"]

        assert place in error["message"]


def test_no_list_anywhere_is_a_wrong_command_with_the_way_to_one(make_project: Make) -> None:
    agent = make_project(bare=True).agent()

    for verb in (("status",), ("start",), ("claim",), ("add", "x"), ("stop",)):
        assert "harness init" in agent.fails(2, *verb)["error"]["hint"]


def test_a_working_directory_that_is_gone(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    gone = project.top / "gone"
    gone.mkdir()
    agent.cwd = gone
    start = "from harness_lib.cli.main import main; sys.exit(main(['claim']))"

    said = in_python(agent, f"import os, sys; os.rmdir(os.getcwd()); {start}")

    assert said.code == 7, said.text
    assert "no longer exists" in said.err


@pytest.mark.parametrize("name", ["harness-tasks.json", ".harness"])
def test_something_else_in_the_place_of_a_file_of_ours_is_env_setup(
    project: Project, agent: Agent, name: str
) -> None:
    agent.ok("add", "One", "--validate", "true")
    place = project.top / name
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    if name == ".harness":
        place.write_text("a file of mine\n", encoding="utf-8")
    else:
        place.mkdir()
        (place / "mine.txt").write_text("mine\n", encoding="utf-8")

    error = agent.fails(7, "claim")["error"]

    assert name in error["message"]
    assert place.exists()
    assert name == ".harness" or (place / "mine.txt").exists()


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_a_log_that_is_no_file_costs_only_the_log(project: Project, agent: Agent, kind: str) -> None:
    agent.ok("add", "One", "--validate", "true")
    log = project.top / "harness-progress.txt"
    log.unlink()
    log.mkdir() if kind == "directory" else os.mkfifo(log)

    reply = agent.ok("claim")

    assert project.task()["status"] == "in_progress"
    assert any("log" in warning for warning in reply["warnings"])
    log.rmdir() if kind == "directory" else log.unlink()


def test_a_list_that_is_a_link_stays_one(project: Project, agent: Agent, tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    project.file.rename(real)
    project.file.symlink_to(real)

    agent.ok("add", "One", "--validate", "true")

    assert project.file.is_symlink()
    assert json.loads(real.read_text(encoding="utf-8"))["tasks"][0]["title"] == "One"


def test_a_private_list_stays_private(project: Project, agent: Agent) -> None:
    project.file.chmod(0o600)

    agent.ok("add", "One", "--validate", "true")

    for path in (project.file, project.top / "harness-tasks.json.bak"):
        assert path.stat().st_mode & 0o777 == 0o600


# -- clocks


def test_a_clock_that_goes_backwards_breaks_nothing(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    agent = project.agent()
    begin(agent)
    agent.ok("add", "Two", "--validate", "false")
    project.clock.pass_(days=-400)

    agent.ok("checkpoint", "task-001", "1/2", "back in time")
    project.put("done")
    agent.ok("finish")
    agent.ok("claim")
    agent.fails(1, "finish")
    project.clock.pass_(days=-400)
    agent.ok("claim")
    agent.die()
    agent.wake()
    agent.ok("start")

    assert [task["status"] for task in project.state["tasks"]] == ["completed", "failed"]
    assert project.task("task-002")["attempts"] == 2


def test_a_stamp_from_the_far_future_is_only_a_stamp(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    agent, other = project.agent(), project.agent("other", project.top)
    begin(agent)
    project.edit_task(lease_expires_at="9999-12-31T23:59:59Z", claimed_at="9999-12-31T23:59:59Z")

    other.fails(9, "claim")
    agent.ok("checkpoint", "task-001", "1/2", "x")
    project.put("done")
    agent.ok("finish")


# -- two users of one machine


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Yield a directory that every user may enter."""
    place = Path(tempfile.mkdtemp(prefix="harness-two-users-")).resolve()
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@root_only
def test_a_list_of_another_user_is_passed_over(project: Project, agent: Agent, open_place: Path) -> None:
    task = {"id": "a", "status": "pending", "validation": {"command": "touch ran"}}
    (open_place / "harness-tasks.json").write_text(json.dumps({"tasks": [task]}), encoding="utf-8")
    theirs = open_place / "theirs"
    theirs.mkdir()
    shutil.chown(theirs, "nobody")
    agent.ok("status")
    agent.cwd = theirs

    said = as_nobody(agent, "status", "--json", HOME=str(theirs))

    assert said.code == 2, said.text
    assert "harness init" in said.json["error"]["hint"]
    assert project.top.exists()


@root_only
def test_a_list_that_may_only_be_read_can_be_looked_at_and_not_changed(
    project: Project, agent: Agent, open_place: Path
) -> None:
    place = open_place / "repo"
    shutil.copytree(project.top, place)
    before = (place / "harness-tasks.json").read_bytes()
    agent.ok("add", "x")
    agent.cwd = open_place

    seen = as_nobody(agent, "status", HOME=str(open_place), HARNESS_STATE_ROOT=str(place))
    changed = as_nobody(agent, "add", "x", "--json", HOME=str(open_place), HARNESS_STATE_ROOT=str(place))

    assert seen.code == 0, seen.text
    assert changed.code == 7, changed.text
    assert str(place) in changed.json["error"]["message"]
    assert (place / "harness-tasks.json").read_bytes() == before


@root_only
def test_a_lock_directory_of_another_user_is_left_alone_and_said(project: Project, agent: Agent) -> None:
    path = seedlock.path_for(project.top)
    path.mkdir()
    (path / "pid").write_text("1\n", encoding="utf-8")
    shutil.chown(path, "nobody")

    reply = agent.ok("stop")
    reply = agent.ok("edit", "--max-sessions", "7")

    assert any(str(path) in warning for warning in reply["warnings"])
    assert (path / "pid").read_text(encoding="utf-8") == "1\n"
    shutil.rmtree(path)


def test_a_link_in_the_place_of_the_lock_is_not_followed(
    project: Project, agent: Agent, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "pid").write_text("precious\n", encoding="utf-8")
    path = seedlock.path_for(project.top)
    path.symlink_to(victim)

    agent.ok("add", "One", "--validate", "true")

    assert (victim / "pid").read_text(encoding="utf-8") == "precious\n"
    assert path.is_symlink()
    path.unlink()
