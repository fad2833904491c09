"""What a check goes by beyond its words: files that others have removed, programs, and where it runs."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, begin

RUNNER = "faketest"


def _program(place: Path, says: str) -> None:
    put(place, f"#!/bin/sh\n{says}\n", executable=True)


@pytest.fixture
def person_bin(tmp_path: Path) -> Path:
    """Give a directory that comes first on the PATH, outside of the project, as ~/.local/bin does."""
    place = tmp_path / "bin"
    place.mkdir()
    return place


def test_what_an_earlier_task_has_removed_is_no_failed_attempt(project: Project, agent: Agent) -> None:
    project.commit(files={"check.sh": "sh parts/more.sh\n", "parts/more.sh": "grep -q x f\n"})
    begin(agent, "true", "--protect", "none")
    (project.top / "parts/more.sh").unlink()
    agent.ok("finish")
    agent.ok("add", "Second", "--validate", "sh check.sh")
    error = agent.works({"f": "x\n"}, code=7)["error"]

    commit = project.task("task-001")["completed_commit"][:12]
    assert f"needs parts/more.sh, which commit {commit} of task-001 removed" in error["message"]
    assert "[task-001]" in error["message"]
    assert f"git checkout '{commit}^' -- :/parts/more.sh" in error["hint"]
    task = project.task("task-002")
    assert (task["status"], task["attempts"]) == ("in_progress", 0)

    (project.top / "sub").mkdir()
    project.git("-C", "sub", "checkout", "-q", f"{commit}^", "--", ":/parts/more.sh")
    assert agent.ok("finish")["task"]["status"] == "completed"


@pytest.mark.parametrize("said", ["commit [0-9a-f]{12} removed", "removed during this attempt"])
def test_what_others_removed_is_no_failure(project: Project, agent: Agent, said: str) -> None:
    project.commit(files={"check.sh": "true\n"})
    if "during" in said:
        begin(agent, "sh check.sh")
    project.git("rm", "-q", "check.sh")
    project.git("commit", "-q", "--author", "Ada <a@b>", "-m", "Tidy up")
    if "during" not in said:
        begin(agent, "sh check.sh")

    assert re.search(rf"{said}.* \(Ada: Tidy up\)", agent.fails(7, "finish")["error"]["message"])
    assert project.task()["attempts"] == 0


@pytest.mark.parametrize("title", ["Write check.sh", "One"])
def test_what_it_was_to_make_or_removed_is_its_failure(project: Project, agent: Agent, title: str) -> None:
    project.commit(files={"check.sh": "true\n"})
    if title != "One":
        project.git("rm", "-q", "check.sh")
        project.commit()
    agent.ok("add", title, "--validate", "sh check.sh")
    agent.ok("claim")
    (project.top / "check.sh").unlink(missing_ok=True)

    agent.fails(1, "finish")

    assert project.task()["attempts"] == 1


@pytest.mark.parametrize("check", [f"{RUNNER} -q", "sh check.sh"])
def test_a_program_of_the_check_that_is_another_file_than_at_the_claim_is_named(
    project: Project, agent: Agent, person_bin: Path, tmp_path: Path, check: str
) -> None:
    """A fake runner in ~/.local/bin hides the real one, which a script may call, too."""
    project.commit(files={"check.sh": f"{RUNNER} -q\n"})
    _program(tmp_path / "real" / RUNNER, "exit 1")
    agent.env = {**agent.env, "PATH": f"{person_bin}:{tmp_path / 'real'}:{os.environ['PATH']}"}
    begin(agent, check)
    _program(person_bin / RUNNER, "exit 0")

    (sentence,) = [each for each in agent.ok("finish")["task"]["look_at"] if RUNNER in each]

    fake, real = person_bin / RUNNER, tmp_path / "real" / RUNNER
    assert f"was checked with {RUNNER}: {fake} (at the claim: {real})" in sentence


def test_a_program_that_was_rewritten_is_named(project: Project, agent: Agent, person_bin: Path) -> None:
    """Also where the user has edited the task since: as long as its command is the same."""
    _program(person_bin / RUNNER, "exit 1")
    path = f"{person_bin}{os.pathsep}{os.environ['PATH']}"
    agent.env = {**agent.env, "PATH": path}
    begin(agent, RUNNER)
    _program(person_bin / RUNNER, "exit 0")
    project.agent("person").ok("edit", "task-001", "--timeout", "9", PATH=path)

    sentences = agent.ok("finish")["task"]["look_at"]

    assert any("with other content than at the claim" in each for each in sentences)


def test_a_check_that_writes_into_the_tree_judges_as_any_other(project: Project, agent: Agent) -> None:
    project.commit(files={"tests/run.sh": "echo ran >> trace; echo ran >> tracked.txt; grep -q done f\n"})
    begin(agent, "sh tests/run.sh", "--protect", "auto")
    project.put("f", "done\n")
    project.put("tests/run.sh", "echo ran >> trace; echo ran >> tracked.txt; grep done f\n")

    task = agent.ok("finish")["task"]

    assert task["status"] == "completed"
    assert project.git("show", "HEAD:tracked.txt") == "one"
    assert project.read("trace")
    assert "trace" not in project.in_commit()


def test_in_a_monorepo_what_judges_is_where_the_check_runs(project: Project, agent: Agent) -> None:
    project.commit(files={"web/tests/a.sh": "grep -q done f\n", "api/tests/a.sh": "true\n"})
    begin(agent, "sh tests/a.sh", "--cwd", "web", "--protect", "auto")
    project.put("web/tests/a.sh", "true\n")

    assert "'web/tests/a.sh'" in agent.fails(1, "finish")["message"]

    project.git("checkout", "-q", "--", "web/tests/a.sh")
    project.put("web/f", "done\n")
    assert agent.ok("finish")["task"]["status"] == "completed"


def test_a_claim_of_an_earlier_version_is_finished_as_before(project: Project, agent: Agent) -> None:
    """Its gate names no programs, and its task has none of the fields about judgements."""
    begin(agent, "grep -q done f")
    gate = project.task()["gate"]
    del gate["programs"]
    project.edit_task(gate=gate)
    shutil.rmtree(project.top / ".harness/gates")
    task = agent.finishes({"f": "done\n"})["task"]

    assert (task["status"], task.get("look_at"), task.get("outcome")) == ("completed", None, None)
    agent.final_check()
    assert agent.ok("check")["exit"] == 0


# -- by its command, and not by what the attempt has put into the environment


ORDERS = {"PYTEST_ADDOPTS": "--collect-only", "PYTEST_PLUGINS": "cheat", "PYTHONOPTIMIZE": "1"}


def test_orders_for_the_runner_do_not_reach_it(project: Project, agent: Agent) -> None:
    begin(agent, "env | grep -E '^(PYTEST_ADDOPTS|PYTEST_PLUGINS|PYTHONOPTIMIZE)='")

    reply = agent.fails(1, "finish", **ORDERS)

    assert all(name in reply["message"] for name in ORDERS)
    assert project.task()["attempts"] == 1


def test_programs_and_modules_of_the_work_tree_are_not_found_by_name(project: Project, agent: Agent) -> None:
    begin(agent, 'python3 -c "import sys; sys.exit(1)"')
    project.put("bin/python3", "#!/bin/sh\nexit 0\n", executable=True)
    project.put("lib/sitecustomize.py", "import os\nos._exit(0)\n")
    path = f"{project.top}/bin:{os.environ['PATH']}"

    reply = agent.fails(1, "finish", PATH=path, PYTHONPATH=f"{project.top}/lib:{os.environ['PYTHONPATH']}")

    assert "PATH, PYTHONPATH" in reply["message"]
    agent.ok("add", "Two", "--validate", "only-here")
    agent.ok("claim", "task-002")
    project.put("bin/only-here", "#!/bin/sh\n", executable=True)
    said = agent.fails(7, "finish", PATH=path)["error"]["message"]
    assert "only-here (not looked for in the work tree)" in said


@pytest.mark.parametrize("place", [".venv/bin", "vendor/bin", ".direnv/ruby/bin"])
def test_a_virtual_environment_in_the_project_is(project: Project, agent: Agent, place: str) -> None:
    project.commit(files={".gitignore": ".venv\nvendor\n.direnv\n"})
    project.put(".venv/pyvenv.cfg", "")
    project.put(f"{place}/my-runner", "#!/bin/sh\nexit 0\n", executable=True)
    begin(agent, "my-runner")
    agent.ok("finish", PATH=f"{project.top}/{place}:{os.environ['PATH']}")
