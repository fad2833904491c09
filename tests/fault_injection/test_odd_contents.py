"""Whatever is in a repository, from submodules to stashes and any name: worked with, and nothing lost."""

from __future__ import annotations

import os
import shutil
import stat

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import NASTY, put, sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin


def test_submodules_are_left_alone(project: Project, agent: Agent, make_project: Make) -> None:
    library = make_project("library", bare=True)
    sh(project.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.top), "lib")
    project.commit("With a submodule")
    begin(agent, "false")
    put(project.top / "lib" / "work.txt", "in the submodule\n")
    put(project.top / "lib" / "tracked.txt", "changed in the submodule\n")
    agent.finishes({"work.txt": "x\n"}, code=1)

    assert (project.top / "lib" / "work.txt").read_text(encoding="utf-8") == "in the submodule\n"
    assert (project.top / "lib" / "tracked.txt").read_text(encoding="utf-8") == "changed in the submodule\n"
    assert not (project.top / "work.txt").exists()


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


def test_a_repository_inside_the_work_tree_survives(project: Project, agent: Agent) -> None:
    """An agent that clones something into the project: a clean would refuse too, and so do we."""
    begin(agent, "false")
    sh(project.top, "init", "-q", "nested")
    put(project.top / "nested" / "precious.txt", "precious\n")
    sh(project.top / "nested", "add", "-A")
    sh(project.top / "nested", "commit", "-qm", "x")
    put(project.top / "nested" / "loose.txt", "loose\n")

    agent.fails(1, "finish")

    assert (project.top / "nested" / "precious.txt").exists()
    assert (project.top / "nested" / "loose.txt").exists()


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


def test_what_git_ignores_is_never_touched(project: Project, agent: Agent) -> None:
    project.commit(files={".gitignore": "*.log\nbuild/\n"})
    project.put("old.log", "old\n")
    project.put("build/old.o", "old\n")
    begin(agent, "false")
    agent.finishes({"old.log": "appended\n", "build/new.o": "new\n", ".gitignore": ""}, code=1)

    assert project.read("old.log") == "appended\n"
    assert project.read("build/old.o") == "old\n"
    assert project.read("build/new.o") == "new\n"
    assert project.read(".gitignore") == "*.log\nbuild/\n"


def test_any_name_is_rescued_removed_and_given_back(project: Project, agent: Agent) -> None:
    for number, name in enumerate(NASTY):
        project.put(f"mine/{name}", f"mine {number}\n")
    begin(agent, "false")
    for number, name in enumerate(NASTY):
        project.put(f"mine/{name}", f"spoilt {number}\n")
        project.put(f"made/{name}", f"made {number}\n")

    reply = agent.fails(1, "finish")

    mine = {f"mine/{name}": ("file", f"mine {number}\n".encode()) for number, name in enumerate(NASTY)}
    assert project.files == {"tracked.txt": ("file", b"one\n"), **mine}
    for number, name in enumerate(NASTY):
        for folder, was in (("made", "made"), ("mine", "spoilt")):
            kept = project.git("show", f"{reply['rescue']}:{folder}/{name}")
            assert kept == f"{was} {number}", ascii(name)


def test_untracked_files_that_the_attempt_deleted_come_back(project: Project, agent: Agent) -> None:
    project.put("mine/secret.txt", "secret\n").chmod(0o600)
    (project.top / "mine/link").symlink_to("/nowhere")
    tool = project.put("mine/tool", "#!/bin/sh\n")
    tool.chmod(0o755)
    begin(agent, "false")
    before = project.files
    shutil.rmtree(project.top / "mine")

    agent.fails(1, "finish")

    assert project.files == before
    assert stat.S_IMODE((project.top / "mine/secret.txt").stat().st_mode) == 0o600
    assert os.access(tool, os.X_OK)


def test_a_directory_in_the_place_of_a_file_and_the_other_way_round(project: Project, agent: Agent) -> None:
    project.commit(files={"dir/inner.txt": "inner\n"})
    project.put("mine.txt", "mine\n")
    before = project.files
    begin(agent, "false")
    for name in ("tracked.txt", "mine.txt"):
        (project.top / name).unlink()
        project.put(f"{name}/file", "x\n")
    shutil.rmtree(project.top / "dir")
    agent.finishes({"dir": "a file\n"}, code=1)

    assert project.files == before


def test_line_end_conversion_does_not_make_everything_look_changed(project: Project, agent: Agent) -> None:
    project.commit(files={".gitattributes": "* text=auto eol=crlf\n", "text.txt": b"one\r\ntwo\r\n"})
    begin(agent, "false")
    agent.finishes({"text.txt": b"changed\r\n"}, code=1)

    assert (project.top / "text.txt").read_bytes() == b"one\r\ntwo\r\n"
    agent.ok("claim")


def test_a_stash_of_the_user_is_not_touched(project: Project, agent: Agent) -> None:
    project.put("tracked.txt", "stashed\n")
    project.git("stash")
    begin(agent, "false")
    agent.finishes({"work.txt": "x\n"}, code=1)

    assert len(project.git("stash", "list").splitlines()) == 1
