"""A worker of an unattended run ends its attempt in a work tree of the run's, and dies at any point of it.

What it has made is to arrive on `main`, which a person has checked out in the project, with files of theirs
in it that nobody may touch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness_lib.attempts import claim, merge_queue, reconcile, target_branch, worktree_slots
from harness_lib.attempts import commit as committing
from harness_lib.core import sessions
from harness_lib.core.context import Context
from harness_lib.rules import transitions
from harness_lib.system.git import snapshot, worktrees
from harness_lib.system.git.repository import Git
from tests.crash import dying, invariants
from tests.crash import world as rich
from tests.crash.driver import DIED
from tests.crash.dying import Point
from tests.crash.world import TASK, Agent, World

RUN = "run-1"
WORKER = "run-1#1"
BESIDE_WORKER = "run-1#2"
BESIDE = "task-003"
TARGET = "refs/heads/main"
WAITING = "refs/heads/harness/main"
HOME = "ignored/home"
OWN = "task-001: a commit of its own"
SUBJECT = "[task-001] The first"
BY_PERSON = "A person's"
OF_BESIDE = {"beside.txt": b"made beside it\n"}
IN_THE_WAY = {**rich.MADE, "notes.txt": b"the attempt's notes\n"}
CLASHING = {"README.md": b"# Project\nedited by another\n"}
RESOLVED = b"# Project\nedited\nedited by another\n"
# An agent that does what is left to do, and resolves the one conflict there may be.
AGENT = (
    f"touch {rich.SOLUTION}; ! grep -q '<<<<' README.md || "
    "printf '# Project\\nedited\\nedited by another\\n' > README.md"
)


@dataclass
class Merging(World):
    """The project, and in it, where git does not look, all that runs keep for themselves."""

    @property
    def is_shared(self) -> bool:
        """Return False: the linked work tree is a slot of the one session that has this list."""
        return False

    def slot(self, worker: str = WORKER) -> Path:
        name = worktree_slots.home(self.context(RUN)).name
        return Path(os.environ["HARNESS_HOME"], "worktrees", name, RUN, worker.partition("#")[2])

    def context(self, worker: str) -> Context:
        """Return what the run (or its worker) sees, from this process."""
        env = {**os.environ, "HARNESS_WORKER_ID": worker}
        return Context(env=env, cwd=self.project, target=TARGET)

    @contextmanager
    def in_slot(self, worker: str = WORKER) -> Iterator[None]:
        self.tree = self.slot(worker)
        try:
            yield
        finally:
            self.tree = self.project

    def begin(self, made: Mapping[str, bytes | None] = rich.MADE) -> None:
        """Let a worker of a run claim the first task, and its agent do all it does."""
        self.make_project(rich.PASSES)
        with self.agent(RUN) as agent:
            answer = agent.type("start")
            assert answer.code == 0, answer
            self._take(WORKER)
        with self.in_slot():
            self.put(rich.COMMITTED)
            self.git("add", "--", *rich.COMMITTED)
            self.git("commit", "-q", "-m", OWN)
            self.put({name: content for name, content in made.items() if name not in rich.COMMITTED})
            self.git("add", "--", "staged.txt")
            self.path("src/run.sh").chmod(0o755)

    def begin_beside(self, made: Mapping[str, bytes]) -> None:
        """Let a second worker claim a task of its own, and its agent make the files `made`."""
        with self.agent(RUN) as agent:
            check = " && ".join(f"test -f {name}" for name in made)
            answer = agent.type("add", "Beside", "--validate", check)
            assert answer.code == 0, answer
            self._take(BESIDE_WORKER)
        with self.in_slot(BESIDE_WORKER):
            self.put(made)

    def _take(self, worker: str) -> None:
        ctx = self.context(worker)
        git = worktrees.add(ctx.git, self.slot(worker), self.base)
        session = sessions.mine(ctx.store.ask(), ctx)
        assert session is not None
        assert claim.take(ctx.at(git), session).task is not None

    def others_merge(self, files: Mapping[str, bytes]) -> None:
        """Let another worker have merged `files` meanwhile."""
        self.put(files)
        self.git("add", "--", *files)
        self.git("commit", "-q", "-m", "Of another worker")


# -- scenarios ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """What stands when the check is about to be asked, and what `main` holds when all is over.

    `conflicts`: it cannot arrive without another agent; `waits`: not before a person has made way.
    `beside`: a second worker comes to the end of its own task between the death and the recovery;
    `queued`: it has come there before, and waits to be merged.
    `committed`: a person commits these, in their checkout as the death has left it.
    """

    name: str
    prepare: Callable[[Merging], None]
    others: Mapping[str, bytes]
    every: int
    conflicts: bool = False
    waits: bool = False
    beside: bool = False
    queued: bool = False
    committed: Mapping[str, bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def _forward(world: Merging) -> None:
    world.begin()


def _on_top(world: Merging) -> None:
    world.begin()
    world.others_merge({"of-another.txt": b"made by another\n"})


def _conflict(world: Merging) -> None:
    world.begin()
    world.others_merge(CLASHING)


def _in_the_way(world: Merging) -> None:
    world.begin(IN_THE_WAY)


def _goes_over(world: Merging) -> None:
    """Let what another has merged wait, though nothing is in its way any more."""
    world.begin()
    world.others_merge({"of-another.txt": b"made by another\n"})
    world.git("update-ref", WAITING, "HEAD")
    world.git("reset", "-q", "--hard", world.base)


def _beside(world: Merging) -> None:
    world.begin()
    world.begin_beside(OF_BESIDE)


def _queued(world: Merging) -> None:
    """Let the second worker's work wait behind: who is in front merges both at once."""
    _beside(world)
    ctx = world.context(BESIDE_WORKER)
    there = ctx.at(Git.open(world.slot(BESIDE_WORKER)))
    tree = snapshot.capture(there.git, there.keep_out)
    with ctx.store.transaction() as tx:
        task = tx.task(BESIDE)
        assert task is not None
        oid = committing.commit_object(there, world.base, task, tree)
        tx.replace(transitions.begin_merge(task, now=tx.now, commit=oid))


def _aside(world: Merging) -> None:
    world.begin(IN_THE_WAY)
    world.begin_beside(OF_BESIDE)


def _clash(world: Merging) -> None:
    world.begin()
    world.begin_beside(CLASHING)


SCENARIOS = (
    Scenario("nothing in between", _forward, {}, every=19),
    Scenario("a person commits after it", _forward, {}, every=16, committed={"mine": b"a person's\n"}),
    Scenario("on top of others", _on_top, {"of-another.txt": b"made by another\n"}, every=22),
    Scenario("conflict", _conflict, {}, every=24, conflicts=True),
    Scenario("a person's file in the way", _in_the_way, {}, every=24, waits=True),
    Scenario("what waits goes over", _goes_over, {"of-another.txt": b"made by another\n"}, every=24),
    Scenario("another one merges first", _beside, {}, every=19, beside=True),
    Scenario("another one waits behind", _queued, {}, every=24, beside=True, queued=True),
    Scenario("another one merges aside first", _aside, {}, every=24, waits=True, beside=True),
    Scenario("another one clashes first", _clash, {}, every=19, conflicts=True, beside=True),
)


def effects_of(scenario: Scenario, world: Merging, template: Path) -> list[dying.Note]:
    """Let the worker come to its end once, and return the effects in their order."""
    scenario.prepare(world)
    world.lasting = world.facts()
    world.save(template)
    with world.agent(WORKER) as agent, world.in_slot():
        world.load(template, agent)
        answer = agent.type("finish", noting=True)
    assert answer.code == (1 if scenario.conflicts and not scenario.beside else 0), answer
    return answer.noted


# -- survivors ----------------------------------------------------------------------------------------------


def started(world: Merging, agent: Agent) -> Agent:
    """Somebody else types `start` in the checkout, the run being dead."""
    agent.end()
    return _typed(world, "start")


def recovered(world: Merging, agent: Agent) -> Agent:
    """Somebody else types `recover` there."""
    agent.end()
    return _typed(world, "recover")


def _typed(world: Merging, *argv: str) -> Agent:
    survivor = world.agent(rich.OTHER_WORKER)
    answer = survivor.type(*argv)
    assert answer.code in dying.FINE, f"{argv[0]} ended with {answer.code}: {answer.out}{answer.err}"
    return survivor


def bereaved(world: Merging, agent: Agent) -> Agent:
    """Let the run live: only its worker has died."""
    ctx = world.context(RUN)
    questions = ctx.store.ask()
    session, task = sessions.mine(questions, ctx), questions.task(TASK)
    assert task is not None
    if task.status == "in_progress":
        assert session is not None
        reconcile.hand_back(ctx, session, reconcile.take_from_dead_worker(ctx, task))
    _who_waits_wakes(world)
    # As at its end.
    target_branch.deliver(ctx, TARGET)
    return agent


def _who_waits_wakes(world: Merging) -> None:
    """Let the worker that waits in the queue go on: it lives."""
    ctx = world.context(BESIDE_WORKER)
    questions = ctx.store.ask()
    session, task = sessions.mine(questions, ctx), questions.task(BESIDE)
    if task is not None and task.intent is not None:
        assert session is not None
        merge_queue.merge_in_turn(ctx.at(Git.open(world.slot(BESIDE_WORKER))), session, task)


def next_run(world: Merging, agent: Agent) -> Agent:
    """Let the next run go on, and come to the end of the list."""
    agent.end()
    return _typed(world, "run", "--agent-command", AGENT, "--no-final-check")


Survivor = Callable[[Merging, Agent], Agent]
SURVIVORS: tuple[Survivor, ...] = (started, bereaved, next_run, recovered)


def survive(scenario: Scenario, world: Merging, template: Path, point: Point, survivor: Survivor) -> None:
    """Die at `point`, recover, and keep every promise."""
    agent = world.agent(WORKER)
    try:
        world.load(template, agent)
        with world.in_slot():
            answer = agent.type("finish", die_at=(point.name, point.number, point.how))
        died = answer.code == (dying.KILLED if point.how == "killed" else DIED)
        assert died, f"it did not die there, but ended with {answer.code}: {answer.out}{answer.err}"
        world.let_time_pass()
        if scenario.beside and not scenario.queued:
            _another_merges(scenario, world)
        committed = _a_person_commits(scenario, world)
        torn = point.how == "half" and point.name.endswith("harness-progress.txt")
        agent = survivor(world, agent)
        invariants.check_always(world, torn=torn, started=survivor is not bereaved)
        _it_ended_well(scenario, world, at_the_end=survivor is next_run)
        if committed:
            invariants.holds(world, dict(scenario.committed))
            assert BY_PERSON in _subjects(world, TARGET)
    finally:
        agent.end()


def _a_person_commits(scenario: Scenario, world: Merging) -> bool:
    """Return whether git let them: a lock that a killed git has left lets nobody, until one of us comes."""
    names = list(scenario.committed)
    if not names:
        return False
    world.put(scenario.committed)
    world.git("add", "--", *names, check=False)
    world.git("commit", "-q", "-m", BY_PERSON, "--", *names, check=False)
    if BY_PERSON in _subjects(world, TARGET):
        return True
    world.git("rm", "-q", "--cached", "--", *names, check=False)
    world.put(dict.fromkeys(names))
    return False


def _another_merges(scenario: Scenario, world: Merging) -> None:
    with world.agent(BESIDE_WORKER) as another, world.in_slot(BESIDE_WORKER):
        answer = another.type("finish")
        assert answer.code in {0, int(scenario.conflicts)}, (
            f"the other one ended with {answer.code}: {answer.out}{answer.err}"
        )


# -- promises -----------------------------------------------------------------------------------------------


def _it_ended_well(scenario: Scenario, world: Merging, *, at_the_end: bool) -> None:
    task = invariants.the_task(world)
    _checkout_is_as_committed(world)
    if task.status == "completed":
        alone = scenario.conflicts and not scenario.beside
        assert at_the_end or not alone, "completed, though it conflicts"
        waits = scenario.waits or (not at_the_end and WAITING in _heads(world))
        _it_is_there_once(scenario, world, WAITING if waits else TARGET)
    else:
        assert not at_the_end, f"{TASK} is {task.status}: {task.error_log}"
        assert task.status in {"pending", "failed"}, task
        assert task.attempts == (task.status == "failed"), task
        assert OWN not in _subjects(world, TARGET), "not completed, but merged"
        _it_is_rescued(world)
    if scenario.beside:
        _beside_has_arrived(world, at_the_end=at_the_end)
    if at_the_end:
        assert [each.path for each in worktrees.listed(world.context(RUN).git)] == [world.project]
        assert not world.slot().parent.exists(), "a place of a dead run is left"
        assert not [ref for ref in _heads(world) if ref == WAITING] or scenario.waits


def _heads(world: Merging) -> list[str]:
    return world.git("for-each-ref", "--format=%(refname)", "refs/heads").split()


def _subjects(world: Merging, ref: str) -> list[str]:
    return world.git("log", "--format=%s", ref).splitlines()


def _it_is_there_once(scenario: Scenario, world: Merging, ref: str) -> None:
    """Find the work on the branch, by one commit of ours and what the agent itself has committed."""
    subjects = _subjects(world, ref)
    assert subjects.count(SUBJECT) == 1, subjects
    task = invariants.the_task(world)
    assert task.completed_commit
    merged = world.git("rev-list", ref).split()
    assert task.completed_commit in merged, "it is completed by a commit that is not on the branch"
    held = invariants.blobs(world, ref)
    readmes: set[bytes | None] = {RESOLVED} if scenario.conflicts else {rich.MADE["README.md"]}
    if scenario.beside:
        readmes.add(rich.MADE["README.md"])
    assert held["README.md"] in readmes, held["README.md"]
    for name, content in {**rich.MADE, **scenario.others, "README.md": held["README.md"]}.items():
        assert held.get(name) == content, f"{name!r} holds {held.get(name)!r} on {ref}"
    if not scenario.conflicts:
        assert subjects.count(OWN) == 1, subjects


def _beside_has_arrived(world: Merging, *, at_the_end: bool) -> None:
    """Find the work of both on one branch; who clashed with the other goes back, for nothing."""
    ours = WAITING if WAITING in _heads(world) else TARGET
    assert not world.git("rev-list", f"{ours}..{TARGET}"), f"{TARGET} and {ours} have parted"
    both = [invariants.the_task(world), invariants.state_of(world).find(BESIDE)]
    done = [task for task in both if task and task.status == "completed"]
    assert len(done) == 2 or (done and not at_the_end), both
    for task in done:
        assert task.completed_commit in world.git("rev-list", ours).split(), f"{task.id} is not there"


def _checkout_is_as_committed(world: Merging) -> None:
    """Find in the person's checkout what its branch has, and their own files as they were."""
    status = world.git("status", "--porcelain", "-z", "--untracked-files=all").split("\0")
    assert sorted(filter(None, status)) == sorted(f"?? {name}" for name in rich.BEFORE), status
    invariants.holds(world, {**rich.BEFORE, **rich.IGNORED})
    assert not world.git("diff", "HEAD", "--stat")


def _it_is_rescued(world: Merging) -> None:
    refs = world.git("for-each-ref", "--format=%(objectname)", invariants.RESCUE).split()
    held = [invariants.blobs(world, commit) for commit in refs]
    for name, content in rich.MADE.items():
        assert any(tree.get(name) == content for tree in held), f"{name!r} is not rescued"
