"""Who changes what judges the attempt is named, and has failed where the task protects it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_lib.attempts import baseline, check_inputs
from harness_lib.core.context import Context
from harness_lib.system.git import snapshot
from harness_lib.task import Gate, Task
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, begin

PYTEST = "pytest -q tests/test_a.py"
FAILING = "def test_a():\n    assert False\n"
PASSING = "def test_a():\n    pass\n"
# Each lets the failing test above pass, or be passed over.
CHEATS = {
    "conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n\n\n"
    "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "pyproject.toml": '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "--collect-only"\n',
    "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n",
    "pytest.py": "",
    "tests/test_a.py": PASSING,
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


def test_any_other_task_says_what_shows_the_whole_of_the_change(project: Project, agent: Agent) -> None:
    _begin(project, agent)
    base = project.head
    project.commit(files={"tests/test_a.py": CHEATS["tests/test_a.py"]})
    (said,) = agent.finishes({"src/a.py": "x\n"})["warnings"]

    span = f"{base[:12]}..{project.head[:12]}"
    changed = "task-001 changed a file that its check depends on: tests/test_a.py (1 line)"
    assert said == f"{changed} (git log --patch {span})"
    assert project.task()["look_at"] == [said]
    assert project.grep("WARN", "[task-001]", "tests/test_a.py")
    for verb in ("status", "show task-001"):
        assert f"look at: {said}" in agent(*verb.split()).out


def test_what_is_let_go_by_name_may_change(project: Project, agent: Agent) -> None:
    _begin(project, agent, "--protect", "auto", "--protect", "!tests/*.py")
    agent.finishes({"tests/test_a.py": CHEATS["tests/test_a.py"]})


def test_work_that_touches_no_judge_is_not_mentioned(project: Project, agent: Agent) -> None:
    _begin(project, agent, "--protect", "auto")
    project.put("pyproject.toml", '[project]\nname = "x"\ndependencies = ["more"]\n')
    project.put("tests/test_new.py", FAILING)
    project.put("src/a.py")
    reply = agent.ok("finish")
    assert ("gate" in reply["message"], reply["warnings"]) == (False, [])
    assert "touched" not in project.task()


def test_a_test_that_the_attempt_writes_is_its_work_and_named_where_it_is_all_of_it(agent: Agent) -> None:
    begin(agent, PYTEST, "--protect", "docs/**")
    (warning,) = agent.finishes({"tests/test_a.py": "def test_a():\n    pass\n"})["warnings"]
    assert "added only files that its check depends on: tests/test_a.py" in warning


def test_an_uncommitted_test_counts_as_it_was_at_the_claim(project: Project, agent: Agent) -> None:
    project.put("tests/test_a.py", FAILING)
    begin(agent, PYTEST, "--protect", "docs/**")
    project.put("tests/test_a.py", PASSING)
    assert "tests/test_a.py" in agent.fails(1, "finish")["message"]

    agent.ok("claim")
    assert project.read("tests/test_a.py") == FAILING
    assert "touched" not in agent.finishes({"src/a.py": "x\n"})["task"]


def test_what_git_ignores_counts_as_it_was_at_the_claim(project: Project, agent: Agent) -> None:
    """Whoever attempts a task also says what git ignores."""
    project.commit(files={".gitignore": "local/\n", "look.sh": "test -f done\n"})
    project.put("local/check.sh", "test -f done\n")
    command = "sh local/check.sh && sh look.sh && pytest"
    begin(agent, command, "--protect", "docs/**", "--max-attempts", "9")
    for name in ("local/check.sh", "pytest.ini"):
        old = project.read(name) if (project.top / name).exists() else None
        project.put(".git/info/exclude", f"{name}\n")
        project.put(name, "true\n")

        assert name in agent.fails(1, "finish")["message"]
        assert project.task()["touched"] == [name]
        project.put(name, old) if old else (project.top / name).unlink()
        agent.ok("claim")
    project.git("rm", "-q", "--cached", "look.sh")
    project.put(".gitignore", "local/\nlook.sh\n")
    project.put("look.sh", "true\n")
    assert "look.sh" in agent.fails(1, "finish")["message"]

    agent.ok("claim")
    assert "touched" not in agent.finishes({"src/a.py": "x\n", "done": ""})["task"]


def test_a_change_is_noticed_where_git_has_pruned_what_was_there(project: Project, agent: Agent) -> None:
    project.commit(files={"tests/look.sh": "false\n", "tests/other": "false\n", "more/other": "false\n"})
    begin(agent, "sh tests/look.sh", "--protect", "tests/look*")
    project.put("tests/look.sh", "true\n")
    project.git("prune", "--expire=now")
    assert "changed its own gate: protected" in str(agent.fails(1, "finish"))


def test_a_protecting_task_fails_whoever_lets_git_prune_its_base(project: Project, agent: Agent) -> None:
    project.commit(files={"look.sh": "false\n"})
    begin(agent, "sh look.sh", "--protect", "docs/**")
    project.put("look.sh", "true\n")
    project.git("checkout", "-q", "--orphan", "new")
    project.git("commit", "-qam", "anew")
    project.git("branch", "-qM", "main")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "-q", "--prune=now")
    assert check_inputs.GONE in agent.fails(1, "finish")["message"]


def test_pruning_alone_is_no_change(project: Project, agent: Agent) -> None:
    project.commit(files={"look.sh": "test -f done\n"})
    begin(agent, "sh look.sh", "--protect", "look*")
    project.put("done", "")
    project.git("prune", "--expire=now")
    agent.ok("finish")


def _held(project: Project, agent: Agent) -> tuple[Context, Task, Gate]:
    ctx = Context(env={**os.environ, "HARNESS_WORKER_ID": agent.name}, cwd=project.top)
    task = ctx.store.ask().task("task-001")
    assert task is not None
    assert task.gate is not None
    return ctx, task, task.gate


def test_what_a_run_protects_is_named_where_it_was_changed(project: Project, agent: Agent) -> None:
    begin(agent)
    ctx, task, gate = _held(project, agent)
    globs = ("tracked.txt",)
    kept = snapshot.glob_tree(ctx.git, globs, None, ctx.excluded_paths)
    task = task._replace(gate=gate._replace(protect=globs, kept=kept))
    baseline.keep(ctx, task)
    assert baseline.touched(ctx, task) == ()

    project.put("tracked.txt", "two\n")

    assert baseline.touched(ctx, task) == globs


def test_a_gate_made_again_misses_no_protection_that_was_taken_out(project: Project, agent: Agent) -> None:
    """The user edits a check; somebody takes what protects it out of the list."""
    project.commit(files={"tests/look.sh": "true\n"})
    begin(agent, "sh tests/look.sh", "--protect", "tests/**")
    ctx, task, gate = _held(project, agent)
    assert gate.protected
    assert gate.programs

    bare = task._replace(gate=gate._replace(protected=None, programs=()))
    assert baseline.regate(ctx, bare).gate == gate
    bare = task._replace(validation=task.validation._replace(protect=()))
    assert baseline.touched(ctx, bare) == ("protected",)
