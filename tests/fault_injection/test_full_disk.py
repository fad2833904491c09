"""A disk that is full or read-only changes nothing, or is made up for once there is room."""

from __future__ import annotations

import pytest

from tests.conftest import for_release
from tests.fault_injection.faulty import with_fault
from tests.verbs.project import Agent, Project, begin

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
