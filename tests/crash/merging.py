"""A worker of an unattended run ends its attempt in a work tree of the run's, and dies at any point of it.

What it has made is to arrive on `main`, which the user has checked out in the project, with files of theirs
in it that nobody may touch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_lib.attempts import claim, worker_worktrees
from harness_lib.core import sessions
from harness_lib.core.context import Context
from harness_lib.system.git import worktrees
from tests.crash import contents
from tests.crash.world import World

RUN = "run-1"
WORKER = "run-1#1"
BESIDE_WORKER = "run-1#2"
BESIDE = "task-003"
TARGET = "refs/heads/main"
WAITING = "refs/heads/harness/main"
HOME = "ignored/home"
OWN = "task-001: a commit of its own"


@dataclass
class Merging(World):
    """The project, and in it, where git does not look, all that runs keep for themselves."""

    @property
    def is_shared(self) -> bool:
        """Return False: the linked work tree belongs to the one session that has this list."""
        return False

    def worktree(self, worker: str = WORKER) -> Path:
        name = worker_worktrees.home(self.context(RUN)).name
        return Path(os.environ["HARNESS_HOME"], "worktrees", name, RUN, worker.partition("#")[2])

    def context(self, worker: str) -> Context:
        """Return what the run (or its worker) sees, from this process."""
        env = {**os.environ, "HARNESS_WORKER_ID": worker}
        return Context(env=env, cwd=self.project, target=TARGET)

    @contextmanager
    def in_worktree(self, worker: str = WORKER) -> Iterator[None]:
        self.tree = self.worktree(worker)
        try:
            yield
        finally:
            self.tree = self.project

    def begin(self, made: Mapping[str, bytes | None] = contents.MADE) -> None:
        """Let a worker of a run claim the first task, and its agent do all it does."""
        self.make_project(contents.PASSES)
        with self.agent(RUN) as agent:
            answer = agent.type("start")
            assert answer.code == 0, answer
            self._take(WORKER)
        with self.in_worktree():
            self.put(contents.COMMITTED)
            self.git("add", "--", *contents.COMMITTED)
            self.git("commit", "-q", "-m", OWN)
            self.put({name: content for name, content in made.items() if name not in contents.COMMITTED})
            self.git("add", "--", "staged.txt")
            self.path("src/run.sh").chmod(0o755)

    def begin_beside(self, made: Mapping[str, bytes]) -> None:
        """Let a second worker claim a task of its own, and its agent make the files `made`."""
        with self.agent(RUN) as agent:
            check = " && ".join(f"test -f {name}" for name in made)
            answer = agent.type("add", "Beside", "--validate", check)
            assert answer.code == 0, answer
            self._take(BESIDE_WORKER)
        with self.in_worktree(BESIDE_WORKER):
            self.put(made)

    def _take(self, worker: str) -> None:
        ctx = self.context(worker)
        git = worktrees.add(ctx.git, self.worktree(worker), self.base)
        session = sessions.mine(ctx.store.ask(), ctx)
        assert session is not None
        assert claim.take(ctx.at(git), session).task is not None

    def others_merge(self, files: Mapping[str, bytes]) -> None:
        """Let another worker have merged `files` meanwhile."""
        self.put(files)
        self.git("add", "--", *files)
        self.git("commit", "-q", "-m", "Of another worker")
