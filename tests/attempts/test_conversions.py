"""What is committed is what the check saw: an attempt cannot let git convert it on the way."""

from __future__ import annotations

import json

import pytest

from tests.conftest import for_release
from tests.verbs.project import Agent, Project, begin


def _configure(project: Project, clean: str, name: str = "odd") -> None:
    project.git("config", f"filter.{name}.clean", clean)
    project.put(".gitattributes", f"*.py filter={name}\n")


@pytest.mark.parametrize("how", ["left", "line ends", *for_release("committed", "odd name")])
def test_a_filter_that_the_attempt_configured_fails_it(project: Project, agent: Agent, how: str) -> None:
    begin(agent, "grep -q good answer.py")
    base = project.head
    if how == "line ends":
        project.git("config", "core.autocrlf", "input")
        project.put("answer.py", b"good\r\n")
    else:
        _configure(project, "sed s/good/evil/", "a=b" if how == "odd name" else "odd")
        project.put("answer.py", "good\n")
    if how == "committed":
        project.commit("Mine")

    reply = agent.fails(1, "finish")

    name = "filter.a=b.clean" if how == "odd name" else "answer.py"
    assert f"The commit would not hold what the check sees: '{name}'" in reply["message"]
    assert project.head == base
    task = project.task()
    assert (task["status"], task["halt_kind"]) == ("failed", "CHECK_CHANGED")
    assert "harness retry task-001" in task["halt"]
    assert f"waiting will not help.\n  task-001: {task['halt'][:40]}" in reply["message"]
    assert (reply["stop"], reply["next"]) == ({"reason": "waiting"}, "harness show task-001")
    if how != "odd name":
        assert project.git("show", "refs/harness/rescue/task-001/1-unconverted:answer.py") == "good"


def test_a_filter_that_hides_a_change_fails_it_too(project: Project, agent: Agent) -> None:
    begin(agent, "grep -q good tracked.txt")
    project.git("config", "filter.odd.clean", "git show HEAD:%f")
    project.put(".git/info/attributes", "*.txt filter=odd\n")
    project.put("tracked.txt", "good\n")

    assert "'tracked.txt'" in agent.fails(1, "finish")["message"]
    assert project.git("show", "refs/harness/rescue/task-001/1-unconverted:tracked.txt") == "good"


def test_filters_and_line_ends_of_the_user_convert_as_before(project: Project, agent: Agent) -> None:
    _configure(project, "tr a-z A-Z")
    project.put(".gitattributes", "*.py filter=odd\n*.txt text\n")
    project.git("config", "filter.odd.smudge", "tr A-Z a-z")
    project.git("config", "filter.odd.required", "true")
    project.commit("Settings")
    begin(agent, "grep -q good answer.py")
    # A setting of the attempt's own that converts nothing here.
    project.git("config", "filter.lfs.clean", "git-lfs clean -- %f")
    reply = agent.finishes({"answer.py": "good\n", "lines.txt": b"one\r\ntwo\r\n"})

    assert project.git("show", "HEAD:answer.py") == "GOOD"
    assert "task-001 changed git's settings for what is committed of a file: filter.lfs.clean" in json.dumps(
        reply
    )


def test_once_the_user_has_looked_the_settings_are_theirs(project: Project, agent: Agent) -> None:
    begin(agent, "grep -q good answer.py", "--max-attempts", "2")
    _configure(project, "sed s/good/GOOD/")
    agent.finishes({"answer.py": "good\n"}, code=1)

    project.agent("person").ok("retry", "task-001")
    agent.ok("claim")
    _configure(project, "sed s/good/GOOD/")
    agent.finishes({"answer.py": "good\n"})

    assert project.git("show", "HEAD:answer.py") == "GOOD"


# -- files that git was told not to look at are the attempt's like any other, and the user's are not lost


def test_a_claim_is_refused_where_the_user_has_changed_one(project: Project, agent: Agent) -> None:
    project.git("update-index", "--assume-unchanged", "tracked.txt")
    project.put("tracked.txt", "my local version\n")
    agent.ok("add", "One", "--validate", "true")

    error = agent.fails(8, "claim")["error"]

    assert "tracked.txt" in error["message"]
    assert "git update-index" in error["hint"]
    assert project.read("tracked.txt") == "my local version\n"


def test_hiding_a_protected_test_helps_no_attempt(project: Project, agent: Agent) -> None:
    for name in ("changed", "deleted"):
        project.put(f"tests/{name}.sh", "exit 1\n")
    project.commit()
    begin(agent, "sh tests/changed.sh", "--protect", "tests/**")
    project.git("update-index", "--assume-unchanged", "tests/changed.sh", "tests/deleted.sh")
    project.put("tests/changed.sh", "exit 0\n")
    (project.top / "tests/deleted.sh").unlink()

    said = agent.fails(1, "finish")["message"]
    assert ("tests/changed.sh" in said, "tests/deleted.sh" in said) == (True, True)
    assert project.read("tests/changed.sh") == project.read("tests/deleted.sh") == "exit 1\n"
    agent.works(code=1)


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_what_an_attempt_makes_of_one_is_committed(project: Project, agent: Agent, mark: str) -> None:
    project.git("update-index", mark, "tracked.txt")
    begin(agent, "grep -q two tracked.txt")
    agent.finishes({"tracked.txt": "two\n"})

    assert project.git("show", "HEAD:tracked.txt") == "two"


def test_work_outside_of_a_sparse_checkout_is_committed(project: Project, agent: Agent) -> None:
    project.commit(files={"in/a": "a\n", "out/b": "b\n", "out/c": "c\n"})
    project.git("sparse-checkout", "set", "in")
    begin(agent, "grep -q changed out/b")
    agent.finishes({"out/b": "wrong\n", "in/a": "wrong\n"}, code=1)

    assert project.read("in/a") == "a\n"
    assert not (project.top / "out/c").exists()
    assert project.git("show", f"{project.refs()[0]}:out/b") == "wrong"
    agent.works({"out/b": "changed\n"})
    assert project.git("show", "HEAD:out/b") == "changed"
    assert project.git("show", "HEAD:out/c") == "c"
    assert not (project.top / "out/c").exists()
