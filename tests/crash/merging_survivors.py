"""Who comes after a worker that died while merging: the death, what others do meanwhile, the recovery."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness_lib.attempts import merge_queue, reconcile, target_branch
from harness_lib.core import sessions
from harness_lib.system.git.repository import Git
from tests.crash import contents, dying, invariants
from tests.crash.driver import DIED
from tests.crash.dying import Point
from tests.crash.merging import BESIDE, BESIDE_WORKER, RUN, TARGET, WORKER, Merging
from tests.crash.merging_promises import it_ended_well, subjects_of
from tests.crash.merging_scenarios import BY_PERSON, Scenario
from tests.crash.world import OTHER_WORKER, TASK, Agent

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
    answer = survivor.type(*argv)
    assert answer.code in dying.FINE, f"{argv[0]} ended with {answer.code}: {answer.out}{answer.err}"
    return survivor


def orphaned(world: Merging, agent: Agent) -> Agent:
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
        merge_queue.merge_in_turn(ctx.at(Git.open(world.worktree(BESIDE_WORKER))), session, task)


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
            answer = agent.type("finish", die_at=(point.name, point.number, point.how))
        died = answer.code == (dying.KILLED if point.how == "killed" else DIED)
        assert died, f"it did not die there, but ended with {answer.code}: {answer.out}{answer.err}"
        world.let_time_pass()
        if scenario.beside and not scenario.queued:
            _another_merges(scenario, world)
        committed = _the_user_commits(scenario, world)
        torn = point.how == "half" and point.name.endswith("harness-progress.txt")
        agent = survivor(world, agent)
        invariants.check_always(world, torn=torn, started=survivor is not orphaned)
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
        answer = another.type("finish")
        assert answer.code in {0, int(scenario.conflicts)}, (
            f"the other one ended with {answer.code}: {answer.out}{answer.err}"
        )
