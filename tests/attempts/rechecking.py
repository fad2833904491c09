"""Completed tasks, and a re-check of them as a run makes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from harness_lib.attempts import recheck
from harness_lib.core.context import Context
from tests.verbs.project import Agent, Project


def context(project: Project, home: Path) -> Context:
    return Context(env={**os.environ, "HARNESS_HOME": str(home)}, cwd=project.top)


def done(project: Project, agent: Agent, check: str, *files: str) -> None:
    """Let the agent finish a task with this check, for which it makes `files`."""
    # No session stays open for a final check: the tests make their own.
    agent.ok("edit", "--no-final-check")
    agent.ok("add", "One", "--validate", check)
    agent.ok("claim")
    for name in files:
        project.put(name)
    agent.ok("finish")


def found(ctx: Context, *, in_place: bool = True) -> Sequence[recheck.Found]:
    """Run the checks that are due on what is committed."""
    commit = ctx.git.head()
    assert commit is not None
    tasks = recheck.due(ctx, commit)
    with recheck.clean_checkout(ctx, ctx.root.path.parent / "clean", commit) as clean:
        return list(recheck.run(clean, commit, tasks, [ctx.git] if in_place else []))


def break_one(project: Project, agent: Agent, ctx: Context) -> str:
    """Let task-001 be done, its work be lost by hand, and a re-check find that; return the commit."""
    done(project, agent, "test -f a", "a")
    project.git("rm", "-q", "a")
    commit = project.commit("by hand")
    found(ctx)
    return commit
