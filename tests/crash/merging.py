"""A run at the end of a worker: what others have merged, what is in the way, and who waits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness_lib.attempts import claim, outcome, worker_worktrees
from harness_lib.core.context import Context
from harness_lib.rules import transitions
from harness_lib.system.git import snapshot
from harness_lib.system.git.repository import Git
from tests.crash import contents, dying
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
            agent.type("start", ends={0})
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
            agent.type("add", "Beside", "--validate", check, ends={0})
            self._take(BESIDE_WORKER)
        with self.in_worktree(BESIDE_WORKER):
            self.put(made)

    def _take(self, worker: str) -> None:
        ctx = self.context(worker)
        place = self.worktree(worker)
        place.parent.mkdir(parents=True, exist_ok=True)
        ctx.git.run("worktree", "add", "--quiet", "--detach", str(place), self.base)
        git = Git.open(place)
        session = ctx.own_session(ctx.store.ask())
        assert session is not None
        ctx.session = session
        assert claim.take(ctx.at(git)).task is not None

    def others_merge(self, files: Mapping[str, bytes]) -> None:
        """Let another worker have merged `files` meanwhile."""
        self.put(files)
        self.git("add", "--", *files)
        self.git("commit", "-q", "-m", "Of another worker")


BY_PERSON = "The user's"
OF_BESIDE = {"beside.txt": b"made beside it\n"}
OF_ANOTHER = {"of-another.txt": b"made by another\n"}
IN_THE_WAY = {**contents.MADE, "notes.txt": b"the attempt's notes\n"}
CLASHING = {"README.md": b"# Project\nedited by another\n"}


def _goes_over(world: Merging) -> None:
    """Let what another has merged wait, though nothing is in its way any more."""
    world.git("update-ref", WAITING, "HEAD")
    world.git("reset", "-q", "--hard", world.base)


def _queued(world: Merging) -> None:
    """Let the second worker's work wait behind: who is in front merges both at once."""
    ctx = world.context(BESIDE_WORKER)
    beside = ctx.at(Git.open(world.worktree(BESIDE_WORKER)))
    tree = snapshot.capture(beside.git, beside.excluded_paths)
    with ctx.store.transaction() as tx:
        task = tx.task(BESIDE)
        assert task is not None
        oid = outcome.commit_object(beside, world.base, task, tree)
        tx.replace(transitions.begin_merge(task, now=tx.now, commit=oid))


@dataclass(frozen=True)
class Scenario:
    """What stands when the check is about to be asked, and what is true when all is over.

    `made`: what the attempt has made; `others`: what another worker has merged meanwhile.
    `beside`: what a second worker makes, which comes to its end between the death and the recovery, or, with
    `_queued`, has come there before; `then`: what happens after all that.
    `conflicts`: it cannot arrive without another agent; `waits`: not before the user has made way.
    `committed`: the user commits these, in their checkout as the death has left it.
    """

    name: str
    every: int
    made: Mapping[str, bytes | None] = field(default_factory=lambda: contents.MADE)
    others: Mapping[str, bytes] = field(default_factory=dict)
    beside: Mapping[str, bytes] = field(default_factory=dict)
    then: Callable[[Merging], None] | None = None
    conflicts: bool = False
    waits: bool = False
    committed: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def queued(self) -> bool:
        return self.then is _queued

    def prepare(self, world: Merging) -> None:
        world.begin(self.made)
        if self.others:
            world.others_merge(self.others)
        if self.beside:
            world.begin_beside(self.beside)
        if self.then is not None:
            self.then(world)

    def __str__(self) -> str:
        return self.name


SCENARIOS = (
    Scenario("nothing in between", every=19),
    Scenario("the user commits after it", every=16, committed={"mine": b"the user's\n"}),
    Scenario("on top of others", every=22, others=OF_ANOTHER),
    Scenario("conflict", every=24, others=CLASHING, conflicts=True),
    Scenario("the user's file in the way", every=24, made=IN_THE_WAY, waits=True),
    Scenario("what waits goes over", every=24, others=OF_ANOTHER, then=_goes_over),
    Scenario("another one merges first", every=19, beside=OF_BESIDE),
    Scenario("another one waits behind", every=24, beside=OF_BESIDE, then=_queued),
    Scenario("another one merges aside first", every=24, made=IN_THE_WAY, beside=OF_BESIDE, waits=True),
    Scenario("another one clashes first", every=19, beside=CLASHING, conflicts=True),
)


def effects_of(scenario: Scenario, world: Merging, template: Path) -> list[dying.Note]:
    """Let the worker come to its end once, and return the effects in their order."""
    scenario.prepare(world)
    world.lasting = world.facts()
    world.save(template)
    with world.agent(WORKER) as agent, world.in_worktree():
        world.load(template, agent)
        code = int(scenario.conflicts and not scenario.beside)
        return agent.type("finish", noting=True, ends={code}).noted
