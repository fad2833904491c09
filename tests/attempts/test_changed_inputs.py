"""Who changes what judges the attempt is named, and has failed where the task protects it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from harness_lib.attempts import baseline, check_inputs
from harness_lib.core.context import Context
from harness_lib.system.git import snapshot
from tests.conftest import for_release
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, begin

PYTEST = "pytest -q tests/test_a.py"
FAILING = "def test_a():\n    assert False\n"
# Each lets the failing test above pass, or be passed over.
CHEATS = {
    "conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n\n\n"
    "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "pyproject.toml": '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "--collect-only"\n',
    "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n",
    "pytest.py": "",
    "tests/test_a.py": "def test_a():\n    pass\n",
}


# Passes once the product is there, or where one of the cheats turns it.
RUNNER = """#!/bin/sh
grep -q pass tests/test_a.py || grep -q collect-only *.ini *.toml *.cfg || test -e src/a.py ||
  test -e conftest.py || test -e pytest.py || exit 1
echo "1 passed in 0.01s"
"""


@pytest.fixture(autouse=True)
def turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a pytest on the PATH that every cheat satisfies; return it."""
    runner = put(tmp_path / "bin/pytest", RUNNER, executable=True)
    monkeypatch.setenv("PATH", f"{runner.parent}{os.pathsep}{os.environ['PATH']}")
    return runner


def _begin(project: Project, agent: Agent, *options: str, check: str = PYTEST) -> None:
    project.put("tests/test_a.py", FAILING)
    project.put("pyproject.toml", '[project]\nname = "x"\n')
    project.put(".gitignore", "__pycache__\n.pytest_cache\n")
    project.commit()
    begin(agent, check, *options)


def test_a_protecting_task_fails_whoever_turns_its_runner(project: Project, agent: Agent) -> None:
    _begin(project, agent, "--protect", "docs/**", "--max-attempts", "9")
    for name, text in CHEATS.items():
        agent.ok("claim")
        project.put(name, text)

        assert name in agent.fails(1, "finish")["message"]
        assert project.task()["touched"] == [name]
        assert project.read("tests/test_a.py") == FAILING
        assert "halt" not in project.task()


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_a.py",
        *for_release("conftest.py", "pytest.ini", "pyproject.toml", "setup.cfg", "pytest.py"),
    ],
)
def test_any_other_task_says_so_in_reply_log_and_show(project: Project, agent: Agent, name: str) -> None:
    _begin(project, agent)
    project.put(name, CHEATS[name])

    reply = agent.ok("finish")

    assert any(name in warning for warning in reply["warnings"])
    assert project.grep("WARN", "[task-001]", name)
    assert name in agent.ok("show", "task-001")["message"]


@pytest.mark.release
def test_the_real_pytest_is_turned_by_a_file_that_is_named(project: Project, agent: Agent) -> None:
    _begin(project, agent, check=f"{shlex.quote(sys.executable)} -m {PYTEST}")
    project.put("conftest.py", CHEATS["conftest.py"])
    assert any("conftest.py" in warning for warning in agent.ok("finish")["warnings"])


def test_what_shows_the_change_is_the_whole_of_the_attempts_commits(project: Project, agent: Agent) -> None:
    _begin(project, agent)
    base = project.head
    project.put("tests/test_a.py", CHEATS["tests/test_a.py"])
    project.commit()
    project.put("src/a.py")

    (said,) = agent.ok("finish")["warnings"]

    span = f"{base[:12]}..{project.head[:12]}"
    changed = "task-001 changed a file that its check depends on: tests/test_a.py (1 line)"
    assert said == f"{changed} (git log --patch {span})"
    assert project.task()["look_at"] == [said]
    assert f"look at: {said}" in agent("status").out


def test_auto_alone_protects_them(project: Project, agent: Agent) -> None:
    _begin(project, agent, "--protect", "auto")
    project.put("tests/test_a.py", CHEATS["tests/test_a.py"])
    assert "tests/test_a.py" in agent.fails(1, "finish")["message"]


def test_what_is_let_go_by_name_may_change(project: Project, agent: Agent) -> None:
    _begin(project, agent, "--protect", "auto", "--protect", "!tests/*.py")
    project.put("tests/test_a.py", CHEATS["tests/test_a.py"])
    agent.ok("finish")


def test_work_that_touches_no_judge_is_not_mentioned(project: Project, agent: Agent) -> None:
    _begin(project, agent, "--protect", "auto")
    project.put("pyproject.toml", '[project]\nname = "x"\ndependencies = ["more"]\n')
    project.put("tests/test_new.py", FAILING)
    project.put("src/a.py")
    reply = agent.ok("finish")
    assert ("gate" in reply["message"], reply["warnings"]) == (False, [])
    assert "touched" not in project.task()


def test_a_test_that_the_attempt_writes_is_its_work_and_named_where_it_is_all_of_it(
    project: Project, agent: Agent
) -> None:
    begin(agent, PYTEST, "--protect", "docs/**")
    project.put("tests/test_a.py", "def test_a():\n    pass\n")
    (warning,) = agent.ok("finish")["warnings"]
    assert "changed only files that its check depends on: tests/test_a.py" in warning


@pytest.mark.parametrize("where", ["pytest", *for_release("pytest tests")])
def test_tests_that_are_not_named_one_by_one_are_watched_too(
    project: Project, agent: Agent, where: str
) -> None:
    _begin(project, agent, check=f"{where} -q")
    project.put("tests/test_a.py", "def test_a():\n    pass\n")
    assert any("tests/test_a.py" in warning for warning in agent.ok("finish")["warnings"])


def test_a_new_attempt_begins_without_the_blame_of_the_last(project: Project, agent: Agent) -> None:
    _begin(project, agent, check=f"{PYTEST}; false")
    project.put("tests/test_a.py", FAILING + "# changed\n")
    agent.fails(1, "finish")
    assert project.task()["touched"] == ["tests/test_a.py"]
    agent.ok("claim")
    assert "touched" not in project.task()


@pytest.mark.parametrize("protect", [[], *for_release(["--protect", "nothing/**"])])
def test_a_judge_that_was_changed_is_noticed_where_git_has_pruned_what_it_was(
    project: Project, agent: Agent, protect: list[str]
) -> None:
    project.put("look.sh", "false\n")
    project.commit()
    begin(agent, "sh look.sh", *protect)
    project.put("look.sh", "true\n")
    project.git("prune", "--expire=now")
    said = agent.fails(1, "finish") if protect else agent.ok("finish")
    assert check_inputs.GONE in str(said)


def test_protected_files_that_were_changed_fail_where_git_has_pruned_what_they_were(
    project: Project, agent: Agent
) -> None:
    for name in ("tests/look.sh", "tests/other", "more/other"):
        project.put(name, "false\n")
    project.commit()
    begin(agent, "sh tests/look.sh", "--protect", "tests/look*")
    project.put("tests/look.sh", "true\n")
    project.git("prune", "--expire=now")
    assert "changed its own gate: protected" in str(agent.fails(1, "finish"))


def test_pruning_alone_is_no_change_of_a_judge(project: Project, agent: Agent) -> None:
    project.put("look.sh", "test -f done\n")
    project.commit()
    begin(agent, "sh look.sh", "--protect", "look*")
    project.put("done", "")
    project.git("prune", "--expire=now")
    assert check_inputs.GONE not in str(agent.ok("finish"))


def test_what_a_run_protects_is_named_where_it_was_changed(project: Project, agent: Agent) -> None:
    begin(agent)
    ctx = Context(env={"HARNESS_WORKER_ID": agent.name}, cwd=project.top)
    task = ctx.store.ask().task("task-001")
    assert task is not None
    assert task.gate is not None
    globs = ("tracked.txt",)
    kept = snapshot.glob_tree(ctx.git, globs, None, ctx.excluded_paths)
    task = task._replace(gate=task.gate._replace(protect=globs, kept=kept))
    baseline.keep(ctx, task)
    assert baseline.touched(ctx, task) == ()

    project.put("tracked.txt", "two\n")

    assert baseline.touched(ctx, task) == globs


def test_a_check_that_the_user_edits_has_all_of_its_gate(project: Project, agent: Agent) -> None:
    project.put("tests/look.sh", "python3 -c pass\n")
    project.commit()
    begin(agent, "sh tests/look.sh", "--protect", "tests/**")
    ctx = Context(env={**os.environ, "HARNESS_WORKER_ID": agent.name}, cwd=project.top)
    task = ctx.store.ask().task("task-001")
    assert task is not None
    assert task.gate is not None
    assert task.gate.protected
    assert task.gate.programs

    bare = task._replace(gate=task.gate._replace(protected=None, programs=(), judges=None))

    assert baseline.regate(ctx, bare).gate == task.gate


def test_a_protection_that_was_taken_out_of_the_list_is_a_change(project: Project, agent: Agent) -> None:
    project.put("tests/look.sh", "true\n")
    project.commit()
    begin(agent, "sh tests/look.sh", "--protect", "tests/**")
    ctx = Context(env={**os.environ, "HARNESS_WORKER_ID": agent.name}, cwd=project.top)
    task = ctx.store.ask().task("task-001")
    assert task is not None

    bare = task._replace(validation=task.validation._replace(protect=()))

    assert baseline.touched(ctx, bare) == ("protected",)
