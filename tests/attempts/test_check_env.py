"""A check is judged by its command, not by what the attempt has put into the environment."""

from __future__ import annotations

import os

import pytest

from tests.verbs.project import Agent, Project, begin

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
