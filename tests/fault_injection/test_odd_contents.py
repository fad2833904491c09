"""Submodules and files of ours that are tracked: worked with; tests/system/git has all that is put back."""

from __future__ import annotations

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import put, sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin


def test_a_new_commit_in_a_submodule_is_work(project: Project, agent: Agent, make_project: Make) -> None:
    library = make_project("library", bare=True)
    sh(project.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.top), "lib")
    project.commit("With a submodule")
    begin(agent, "true")
    put(project.top / "lib" / "new.txt", "new\n")
    sh(project.top / "lib", "add", "-A")
    sh(project.top / "lib", "commit", "-qm", "In the library")

    agent.ok("finish")

    assert project.git("rev-parse", "HEAD:lib") == sh(project.top / "lib", "rev-parse", "HEAD")


@pytest.mark.parametrize(
    "name", ["harness-tasks.json", *for_release("harness-progress.txt", ".harness-active")]
)
@pytest.mark.parametrize("passes", [False, *for_release(True)])
def test_a_tracked_file_of_ours_survives(project: Project, agent: Agent, name: str, passes: bool) -> None:
    agent.ok("add", "One", "--validate", "test -f done" if passes else "false")
    project.git("add", "-f", name)
    project.commit_only("Somebody tracks it")
    committed = project.git("show", f"HEAD:{name}")
    agent.ok("claim")
    project.put("done")

    agent("finish")

    assert project.task()["status"] == ("completed" if passes else "failed")
    assert len(project.log) >= 4
    assert project.git("show", f"HEAD:{name}") == committed
    assert project.git("diff", "--cached", "--name-only") == ""
