"""On any path it works; a place that is gone, or taken by something else, is named and left as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.fault_injection import faulty
from tests.fault_injection.faulty import in_python
from tests.run_to_end import Said
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project


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
    agent.trusts()
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
        place.write_text("a file of mine\n")
    else:
        place.mkdir()
        (place / "mine.txt").write_text("mine\n")

    error = one.fails(7, "claim")["error"]

    assert name in error["message"]
    assert place.exists()
    assert name == ".harness" or (place / "mine.txt").exists()


# -- `.harness/` may be deleted at any time, also between our making it and our writing there


VANISHING = "import sys; from tests.fault_injection import vanishing; sys.exit(vanishing.main(sys.argv[1:]))"


def _type(agent: Agent, moments: Path, *argv: str) -> Said:
    return faulty.forked_as(agent, VANISHING, str(agent.cwd / ".harness"), str(moments), *argv, "--json")


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


def _were(moments: Path, *expected: str) -> None:
    """Fail if these are not among the moments: then nothing has been tried."""
    names = moments.read_text().splitlines()
    missing = [name for name in expected if name not in names]
    assert not missing, "\n".join(names)
