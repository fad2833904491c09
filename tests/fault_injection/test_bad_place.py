"""A place that is gone, full, another user's or taken away meanwhile is named, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.system import mkdir_lock
from tests.conftest import for_release
from tests.fault_injection import faulty
from tests.fault_injection.faulty import as_nobody, in_python, with_fault
from tests.runs.conftest import make_workshop, workshop
from tests.runs.workshop import COMMAND, Workshop
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, Said, begin


@pytest.mark.parametrize(
    "name", ["dollar$(touch evil)", *for_release("with spaces", "new\nline", "tüte", "quo'te\"s", "-rf")]
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
    agent.ok("trust", "--yes", HARNESS_TRUST="1")
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


def test_a_working_directory_that_is_gone(project: Project, one: Agent) -> None:
    gone = project.top / "gone"
    gone.mkdir()
    one.cwd = gone
    start = "from harness_lib.cli.main import main; sys.exit(main(['claim']))"

    said = in_python(one, f"import os, sys; os.rmdir(os.getcwd()); {start}")

    assert said.code == 7, said.text
    assert "no longer exists" in said.err


@pytest.mark.parametrize("name", ["harness-tasks.json", ".harness"])
def test_something_else_in_the_place_of_ours_is_env_setup(project: Project, one: Agent, name: str) -> None:
    place = project.top / name
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    if name == ".harness":
        place.write_text("a file of mine\n", encoding="utf-8")
    else:
        place.mkdir()
        (place / "mine.txt").write_text("mine\n", encoding="utf-8")

    error = one.fails(7, "claim")["error"]

    assert name in error["message"]
    assert place.exists()
    assert name == ".harness" or (place / "mine.txt").exists()


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_a_log_that_is_no_file_costs_only_the_log(project: Project, one: Agent, kind: str) -> None:
    log = project.top / "harness-progress.txt"
    log.unlink()
    log.mkdir() if kind == "directory" else os.mkfifo(log)

    reply = one.ok("claim")

    assert project.task()["status"] == "in_progress"
    assert any("log" in warning for warning in reply["warnings"])
    log.rmdir() if kind == "directory" else log.unlink()


ROOT_FILES = r"/repo/(\.harness|harness-|\.harness-)"
STATE = r"/repo/\.harness-tasks\.json\."


@pytest.mark.parametrize("number", ["ENOSPC", *for_release("EROFS", "EACCES")])
@pytest.mark.parametrize(
    "verb", ["add x", "finish", "stop", *for_release("start", "checkpoint task-001 1/2 x", "release")]
)
def test_where_nothing_is_written_all_stays(project: Project, agent: Agent, number: str, verb: str) -> None:
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
@pytest.mark.parametrize("after", [1, *for_release(2)])
def test_a_full_disk_is_made_up_for(project: Project, agent: Agent, after: int, passes: bool) -> None:
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
    "generations": ("generations/|harness/lists/", "checkpoint task-001 1/2 x"),
    "copy": ("harness/lists/", "checkpoint task-001 1/2 x"),
    "summary": (r"summary\.json", "checkpoint task-001 1/2 x"),
    "enable flag": ("harness-active", "add Two --validate true"),
}


@pytest.mark.parametrize(("path", "verb"), FOR_CONVENIENCE.values(), ids=FOR_CONVENIENCE.keys())
def test_what_is_for_convenience_only_warns(project: Project, agent: Agent, path: str, verb: str) -> None:
    begin(agent)
    (project.top / ".harness-active").unlink()
    before = project.state

    said = with_fault(agent, "ENOSPC", path, *verb.split(), "--json")

    assert said.code == 0, said.text
    assert project.state != before
    assert any("could not be written" in warning for warning in said.json["warnings"])


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
def test_a_lock_directory_of_another_user_is_left_alone_and_said(project: Project, agent: Agent) -> None:
    path = mkdir_lock.path_for(project.top)
    path.mkdir()
    (path / "pid").write_text("1\n", encoding="utf-8")
    shutil.chown(path, "nobody")

    reply = agent.ok("stop")
    reply = agent.ok("edit", "--max-sessions", "7")

    assert any(str(path) in warning for warning in reply["warnings"])
    assert (path / "pid").read_text(encoding="utf-8") == "1\n"
    shutil.rmtree(path)


def test_a_link_in_the_place_of_the_lock_is_not_it(project: Project, agent: Agent, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "pid").write_text("precious\n", encoding="utf-8")
    path = mkdir_lock.path_for(project.top)
    path.symlink_to(victim)

    agent.ok("add", "One", "--validate", "true")

    assert (victim / "pid").read_text(encoding="utf-8") == "precious\n"
    assert path.is_symlink()
    path.unlink()


__all__ = ["make_workshop", "workshop"]


VANISHING = "import sys; from tests.fault_injection import vanishing; sys.exit(vanishing.main(sys.argv[1:]))"


def _vanishing(top: Path, moments: Path, *argv: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.fault_injection.vanishing",
        str(top / ".harness"),
        str(moments),
        *argv,
    ]


def _type(agent: Agent, moments: Path, *argv: str) -> Said:
    arguments = _vanishing(agent.cwd, moments, "harness", *argv, "--json")[3:]
    return faulty.forked_as(agent, VANISHING, *arguments)


def test_no_verb_fails_because_the_directory_goes(project: Project, agent: Agent, tmp_path: Path) -> None:
    moments = tmp_path / "moments"
    for code, *argv in (
        (0, "add", "One", "--validate", "echo looked; test -f one"),
        (0, "start"),
        (0, "claim"),
        (0, "checkpoint", "task-001", "1/2", "half"),
        (0, "validate", "task-001"),
        (1, "finish"),
        (0, "claim"),
        (0, "finish"),
        (0, "status"),
        (0, "show", "task-001"),
        (0, "stop"),
    ):
        if argv[0] == "validate" or (code, *argv) == (0, "finish"):
            project.put("one", "made\n")
        said = _type(agent, moments, *map(str, argv))
        assert said.code == code, (argv, said.text)
        assert not [warning for warning in said.json["warnings"] if "written" in warning], (argv, said.text)
        if code == 1:
            assert "looked" in said.json["message"]
        if argv[0] == "validate":
            (project.top / "one").unlink()

    assert project.task()["status"] == "completed"
    assert project.task()["attempts"] == 1
    _were(moments, "open /state.lock", "os.mkdir /logs", "open /logs/task-001/1.log", "os.mkdir /generations")


@pytest.mark.release
def test_no_attempt_ends_or_counts_because_the_directory_goes(workshop: Workshop, tmp_path: Path) -> None:
    moments = tmp_path / "moments"
    workshop.add("Says", "echo looked; grep -q done a", do="write a half\nthen write a done")
    workshop.file_task("b")

    done = subprocess.run(
        _vanishing(workshop.top, moments, "harness", "run", "-j", "2", "--agent-command", COMMAND),
        cwd=workshop.top,
        env=workshop.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert [(task["status"], task["attempts"]) for task in workshop.state["tasks"]] == [
        ("completed", 1),
        ("completed", 0),
    ]
    assert "goes back" not in said
    assert "could not" not in said
    workshop.all_is_well()
    _were(moments, "open /logs/task-001/1-agent-1.log", "open /logs/task-001/1.log", "start sh")


def _were(moments: Path, *expected: str) -> None:
    """Fail if these are not among the moments: then nothing has been tried."""
    names = moments.read_text(encoding="utf-8").splitlines()
    missing = [name for name in expected if name not in names]
    assert not missing, "\n".join(names)
