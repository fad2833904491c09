"""Files that git was told not to look at are the attempt's like any other, and the user's are not lost."""

from __future__ import annotations

import pytest

from tests.verbs.project import Agent, Project, begin


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
