"""A worker of a run dies at every point of merging its work; whoever comes next finds it whole, and once.

The survivors take turns; with CRASH_EVERYWHERE set each of them comes to every point.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from harness_lib.attempts import merge_queue, reconcile, target_branch
from harness_lib.system.git import worktrees
from harness_lib.system.git.repository import Git
from tests.crash import contents, dying, invariants, merging
from tests.crash.dying import Point
from tests.crash.merging import (
    BESIDE,
    BESIDE_WORKER,
    BY_PERSON,
    OWN,
    RUN,
    TARGET,
    WAITING,
    WORKER,
    Merging,
    Scenario,
)
from tests.crash.world import OTHER_WORKER, TASK, Agent, inhabited

SUBJECT = "[task-001] The first"
RESOLVED = b"# Project\nedited\nedited by another\n"


def it_ended_well(scenario: Scenario, world: Merging, *, at_the_end: bool) -> None:
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
        assert OWN not in subjects_of(world, TARGET), "not completed, but merged"
        invariants.are_rescued(world, contents.MADE)
    if scenario.beside:
        _beside_has_arrived(world, at_the_end=at_the_end)
    if at_the_end:
        assert [each.path for each in worktrees.listed(world.context(RUN).git)] == [world.project]
        assert not world.worktree().parent.exists(), "a place of a dead run is left"
        assert not [ref for ref in _heads(world) if ref == WAITING] or scenario.waits


def _heads(world: Merging) -> list[str]:
    return world.git("for-each-ref", "--format=%(refname)", "refs/heads").split()


def subjects_of(world: Merging, ref: str) -> list[str]:
    return world.git("log", "--format=%s", ref).splitlines()


def _it_is_there_once(scenario: Scenario, world: Merging, ref: str) -> None:
    """Find the work on the branch, by one commit of ours and what the agent itself has committed."""
    subjects = subjects_of(world, ref)
    assert subjects.count(SUBJECT) == 1, subjects
    task = invariants.the_task(world)
    assert task.completed_commit
    merged = world.git("rev-list", ref).split()
    assert task.completed_commit in merged, "it is completed by a commit that is not on the branch"
    held = invariants.blobs(world, ref)
    readmes: set[bytes | None] = {RESOLVED} if scenario.conflicts else {contents.MADE["README.md"]}
    if scenario.beside:
        readmes.add(contents.MADE["README.md"])
    assert held["README.md"] in readmes, held["README.md"]
    for name, content in {**contents.MADE, **scenario.others, "README.md": held["README.md"]}.items():
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
    """Find in the user's checkout what its branch has, and their own files as they were."""
    invariants.only_those_of_before_are_changes(world)
    invariants.holds(world, {**contents.BEFORE, **contents.IGNORED})
    assert not world.git("diff", "HEAD", "--stat")


# An agent that does what is left to do, and resolves the one conflict there may be.
AGENT = (
    f"touch {contents.SOLUTION}; ! grep -q '<<<<' README.md || "
    "printf '# Project\\nedited\\nedited by another\\n' > README.md"
)


def started(world: Merging, agent: Agent) -> Agent:
    """Somebody else types `start` in the checkout, the run being dead."""
    agent.end()
    return _typed(world, "start")


def recovered(world: Merging, agent: Agent) -> Agent:
    """Somebody else types `recover` there."""
    agent.end()
    return _typed(world, "recover")


def _typed(world: Merging, *argv: str) -> Agent:
    survivor = world.agent(OTHER_WORKER)
    survivor.type(*argv, ends=dying.FINE)
    return survivor


def orphaned(world: Merging, agent: Agent) -> Agent:
    """Let the run live: only its worker has died."""
    ctx = world.context(RUN)
    questions = ctx.store.ask()
    session, task = ctx.own_session(questions), questions.task(TASK)
    assert task is not None
    if task.status == "in_progress":
        assert session is not None
        ctx.session = session
        reconcile.hand_back(ctx, reconcile.take_from_dead_worker(ctx, task))
    _who_waits_wakes(world)
    # As at its end.
    target_branch.deliver(ctx, TARGET)
    return agent


def _who_waits_wakes(world: Merging) -> None:
    """Let the worker that waits in the queue go on: it lives."""
    ctx = world.context(BESIDE_WORKER)
    questions = ctx.store.ask()
    session, task = ctx.own_session(questions), questions.task(BESIDE)
    if task is not None and task.intent is not None:
        assert session is not None
        ctx.session = session
        merge_queue.merge_in_turn(ctx.at(Git.open(world.worktree(BESIDE_WORKER))), task)


def next_run(world: Merging, agent: Agent) -> Agent:
    """Let the next run go on, and come to the end of the list."""
    agent.end()
    return _typed(world, "run", "--agent-command", AGENT, "--no-final-check")


Survivor = Callable[[Merging, Agent], Agent]
SURVIVORS: tuple[Survivor, ...] = (started, orphaned, next_run, recovered)


def survive(scenario: Scenario, world: Merging, template: Path, point: Point, survivor: Survivor) -> None:
    """Die at `point`, recover, and keep every promise."""
    agent = world.agent(WORKER)
    try:
        world.load(template, agent)
        with world.in_worktree():
            dying.die(world, agent, point, "finish")
        if scenario.beside and not scenario.queued:
            _another_merges(scenario, world)
        committed = _the_user_commits(scenario, world)
        agent = survivor(world, agent)
        invariants.check_always(world, torn=point.tears_the_log, started=survivor is not orphaned)
        it_ended_well(scenario, world, at_the_end=survivor is next_run)
        if committed:
            invariants.holds(world, dict(scenario.committed))
            assert BY_PERSON in subjects_of(world, TARGET)
    finally:
        agent.end()


def _the_user_commits(scenario: Scenario, world: Merging) -> bool:
    """Return whether git let them: a lock that a killed git has left lets nobody, until one of us comes."""
    names = list(scenario.committed)
    if not names:
        return False
    world.put(scenario.committed)
    world.git("add", "--", *names, check=False)
    world.git("commit", "-q", "-m", BY_PERSON, "--", *names, check=False)
    if BY_PERSON in subjects_of(world, TARGET):
        return True
    world.git("rm", "-q", "--cached", "--", *names, check=False)
    world.put(dict.fromkeys(names))
    return False


def _another_merges(scenario: Scenario, world: Merging) -> None:
    with world.agent(BESIDE_WORKER) as another, world.in_worktree(BESIDE_WORKER):
        another.type("finish", ends={0, int(scenario.conflicts)})


# -- a death at every point


EVERYTHING = bool(os.environ.get("CRASH_EVERYWHERE"))
# So that each scenario has a death or two.
THINNING = 3


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Merging]:
    # Inside the project, so that it is copied with it.
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "project" / merging.HOME))
    made = Merging(tmp_path / "project", tmp_path / "door")
    with inhabited(made):
        yield made


def _deaths(scenario: Scenario, points: list[Point]) -> list[tuple[Point, Survivor]]:
    every = scenario.every
    if EVERYTHING:
        return [(point, survivor) for point in points for survivor in SURVIVORS]
    first = merging.SCENARIOS.index(scenario)
    return [
        (point, SURVIVORS[(first + turn) % len(SURVIVORS)])
        for turn, point in enumerate(points[every // 2 :: THINNING * every])
    ]


@pytest.mark.timeout(3000 if EVERYTHING else 300)
@pytest.mark.parametrize("scenario", merging.SCENARIOS, ids=str)
def test_a_death_anywhere_in_merging_loses_nothing(tmp_path: Path, here: Merging, scenario: Scenario) -> None:
    template = tmp_path / "template"
    noted = merging.effects_of(scenario, here, template)
    deaths = _deaths(scenario, list(dying.points_of(noted)))
    dying.lose_nothing(
        {
            f"{point}, then {survivor.__name__}": partial(survive, scenario, here, template, point, survivor)
            for point, survivor in deaths
        }
    )
