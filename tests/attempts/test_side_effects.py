"""What an attempt leaves beside its commits, links that lead out, and conversions of git on the way."""

from __future__ import annotations

import json

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import put, sh
from tests.verbs.project import Agent, Project, begin


@pytest.fixture
def claimed(project: Project) -> Agent:
    """Return an agent that has claimed a task in a repository with things of the user's own."""
    for setting in ("alias.mine", "filter.lfs.clean", "core.fsmonitor"):
        sh(project.top, "config", setting, "old")
    put(project.top / ".git" / "hooks" / "pre-push", "#!/bin/sh\n")
    sh(project.top, "tag", "theirs")
    agent = project.agent()
    agent.ok("init")
    agent.ok("add", "One", "--validate", "test -f f")
    agent.ok("start")
    agent.ok("claim")
    return agent


def test_what_an_attempt_leaves_is_named_with_what_takes_it_out(claimed: Agent) -> None:
    top = claimed.cwd
    sh(top, "config", "core.hooksPath", ".husky")
    sh(top, "config", "alias.mine", "new")
    put(top / ".git" / "hooks" / "pre-commit", "#!/bin/sh\n")
    sh(top, "tag", "v2")
    sh(top, "branch", "side")
    put(top / "f", "x\n")

    said = claimed.ok("finish")

    (line,) = [each for each in said["warnings"] if "left in this repository" in each]
    for command in (
        "git config alias.mine old",
        "git config --unset-all core.hookspath",
        f"rm {top}/.git/hooks/pre-commit",
        "git branch -d side",
        "git tag -d v2",
    ):
        assert f"({command})" in line
    for own in ("lfs", "fsmonitor", "pre-push", "theirs"):
        assert own not in line
    assert sh(top, "config", "core.hooksPath") == ".husky"


def test_an_attempt_that_leaves_nothing_is_not_spoken_of(claimed: Agent) -> None:
    put(claimed.cwd / "f", "x\n")
    sh(claimed.cwd, "commit", "-q", "--allow-empty", "-m", "its own")

    said = claimed.ok("finish")

    assert "left in this repository" not in str(said)


LINKS = {
    "data": "/etc",
    "deep/up": "../../beside",
    "parent": "..",
    "hooks": ".git/hooks",
    "deep/own": "../tracked.txt",
    "near": "./deep/../tracked.txt",
}


def test_a_link_that_leads_out_of_the_repository_is_to_be_looked_at(project: Project, agent: Agent) -> None:
    (project.top / "old").symlink_to("/usr")
    project.commit("A link of before")
    begin(agent, "true")
    (project.top / "deep").mkdir()
    for name, target in LINKS.items():
        (project.top / name).symlink_to(target)

    agent.ok("finish")

    said = [line.partition(" (git show ")[0] for line in project.task()["look_at"]]
    leads = "leads out of the repository, to"
    assert said == [
        f"task-001: the link 'data' {leads} '/etc'",
        f"task-001: the link 'deep/up' {leads} '../../beside'",
        f"task-001: the link 'hooks' {leads} '.git/hooks'",
        f"task-001: the link 'parent' {leads} '..'",
    ]
    assert set(LINKS) < set(project.in_commit())


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
