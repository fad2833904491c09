"""What an attempt leaves beside its commits, and links that lead out of the repository, are named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.system.git.gitrepo import commit_all, put, sh
from tests.verbs.project import Agent, Project, begin


@pytest.fixture
def claimed(project: Project) -> Agent:
    """Return an agent that has claimed a task in a repository with things of the user's own."""
    for setting in ("alias.mine", "filter.lfs.clean", "core.fsmonitor"):
        project.git("config", setting, "old")
    project.put(".git/hooks/pre-push", "#!/bin/sh\n")
    project.git("tag", "theirs")
    agent = project.agent()
    begin(agent, "test -f f")
    return agent


def _left(said: dict[str, Any]) -> str:
    """Return the one warning about what is left in the repository."""
    (line,) = [each for each in said["warnings"] if "left in this repository" in each]
    return str(line)


def test_what_an_attempt_leaves_is_named_with_what_takes_it_out(claimed: Agent) -> None:
    top = claimed.cwd
    sh(top, "config", "core.hooksPath", ".husky")
    sh(top, "config", "alias.mine", "new")
    put(top / ".git/hooks/pre-commit", "#!/bin/sh\n")
    sh(top, "tag", "v2")
    sh(top, "branch", "side")
    put(top / "f", "x\n")

    line = _left(claimed.ok("finish"))

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


def test_each_setting_that_runs_a_program_is_named(claimed: Agent) -> None:
    """Also that of this work tree alone; one that runs nothing is not."""
    top = claimed.cwd
    sh(top, "config", "core.pager", "less")
    sh(top, "config", "pager.log", "false")
    sh(top, "config", "user.name", "x")
    sh(top, "config", "submodule.x.update", "rebase")
    names = ["core.sshcommand", "sequence.editor", "pager.diff", "include.path", "includeif.gitdir:/.path"]
    names += ["diff.external", "diff.x.textconv", "diff.x y.command", "merge.x.driver", "credential.helper"]
    names += [
        "gpg.program",
        "gpg.ssh.program",
        "mergetool.x.cmd",
        "remote.o.uploadpack",
        "submodule.y.update",
    ]
    for name in names:
        sh(top, "config", name, "!x")
    sh(top, "config", "extensions.worktreeConfig", "true")
    sh(top, "config", "--worktree", "core.editor", "vi")
    put(top / "f", "x\n")

    line = _left(claimed.ok("finish"))

    for name in (*names, "core.pager"):
        assert f"{name} (git config --unset-all " in line, name
    assert "core.editor (git config --worktree --unset-all core.editor)" in line
    for own in ("pager.log", "user.name", "submodule.x"):
        assert own not in line


def test_one_of_several_values_is_named_with_what_shows_all(agent: Agent) -> None:
    """Git does not set one of them again, and the last is not always the new one."""
    top = agent.cwd
    sh(top, "config", "include.path", "mine")
    begin(agent)
    settings = top / ".git/config"
    put(settings, settings.read_text().replace("\tpath = mine", "\tpath = new\n\tpath = mine"))
    put(top / "done", "x\n")

    line = _left(agent.ok("finish"))

    assert "include.path (git config --get-all include.path)" in line


def test_work_that_an_attempt_has_stashed_is_named(claimed: Agent) -> None:
    """Its check fails without it, and the next attempt would not know of it."""
    top = claimed.cwd
    put(top / "f", "x\n")
    sh(top, "stash", "-q", "--include-untracked")
    stash = sh(top, "rev-parse", "stash")

    line = _left(claimed.fails(1, "finish"))

    assert line.endswith(f"a stash (git stash show -p {stash[:12]})")
    claimed.ok("claim")
    sh(top, "stash", "drop", "-q")
    assert "left in this repository" not in str(claimed.fails(1, "finish"))


def test_an_attempt_that_leaves_nothing_is_not_spoken_of(claimed: Agent) -> None:
    sh(claimed.cwd, "commit", "-q", "--allow-empty", "-m", "its own")

    assert "left in this repository" not in str(claimed.finishes({"f": "x\n"}))


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


def test_a_repository_that_an_attempt_makes_inside_is_to_be_looked_at(project: Project, agent: Agent) -> None:
    """In a run such work goes back; one that `.gitmodules` names is as it should be."""
    begin(agent, "test -f nested/file")
    for name in ("nested", "known"):
        project.git("init", "-q", name)
        project.put(f"{name}/file", "x\n")
        commit_all(project.top / name, "Its own")
    project.put(".gitmodules", '[submodule "known"]\n\tpath = known\n\turl = https://example.invalid/\n')

    agent.ok("finish")

    (said,) = project.task()["look_at"]
    assert said.startswith(
        "task-001: 'nested' is a repository of its own, and the commit has none of its files"
    )
