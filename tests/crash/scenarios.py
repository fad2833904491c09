"""The verbs that change something, in the situations in which a death costs most."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.crash import contents, invariants
from tests.crash.contents import FAILS, PASSES
from tests.crash.driver import DIED
from tests.crash.dying import Scenario
from tests.crash.world import TASK, World

JUDGE = "tests/judge.sh"
JUDGED = f"echo checked >> touched-by-check.txt; sh {JUDGE}"


def _idle(_world: World) -> None:
    """Leave the list as it was made: no session, nothing claimed."""


def _paused(world: World) -> None:
    world.path(".harness-active").unlink()


def _started(world: World) -> None:
    world.typed("start")


def _attempted(world: World) -> None:
    world.claim()
    world.attempt()


def _held_out(world: World) -> None:
    """Leave an attempt whose own check passes, and a held-out one does not."""
    world.typed("edit", TASK, "--hidden", f"test -f {contents.SOLUTION}")
    _attempted(world)


def _held_out_and_right(world: World) -> None:
    """Leave an attempt that passes a held-out check, which leaves a trace when it runs."""
    world.typed("edit", TASK, "--hidden", f"touch {_trace(world)}")
    _attempted(world)


def _trace(world: World) -> Path:
    return world.project / ".git/held-out-has-run"


def _completed_by_both(world: World) -> None:
    """Not completed before the held-out check has run."""
    invariants.completed(world)
    assert _trace(world).exists()


def _shared(world: World) -> None:
    """Beside others that may share the list: in concurrent mode, in a work tree of its own."""
    world.share()
    _started(world)


def _shared_attempt(world: World) -> None:
    world.share()
    _attempted(world)


def _dies(world: World, before: str) -> None:
    """Let a `finish` be killed a first time, before that effect, so that its recovery can be killed, too."""
    _attempted(world)
    template = world.project.with_name("before-first-death")
    world.save(template)
    with world.agent() as agent:
        world.load(template, agent)
        agent.type("finish", die_at=(before, 1, "before"), ends={DIED})


_rollback_begun = partial(_dies, before="run git update-ref refs/harness/rescue/task-001/1 OID")
_half_back = partial(_dies, before="os.rename .git/harness-scratch-RANDOM/files/staged.txt -> staged.txt")
_commit_begun = partial(_dies, before="run git update-ref -m harness: commit HEAD OID OID")
_half_committed = partial(_dies, before="run git reset --no-quiet OID -- :/")


def _judged_twice(world: World) -> None:
    """Let an attempt pass its check only because it has changed the judge."""
    world.put({JUDGE: b"test -f solved\n"})
    world.git("add", JUDGE)
    world.git("commit", "-q", "-m", "A judge")
    _with_a_judge(world)


def _with_a_judge(world: World) -> None:
    """Let an attempt write a judge that never fails, whether the base had one or not."""
    world.typed("edit", TASK, "--protect", "auto")
    world.base = world.git("rev-parse", "HEAD").strip()
    world.lasting = world.facts()
    _attempted(world)
    world.put({JUDGE: b"true\n"})


def _waits_for_user(world: World) -> None:
    """Never completed: it goes back to its agent once, and then the user is asked."""
    task = invariants.the_task(world)
    assert (task.status, task.attempts) == ("in_progress", 0), task
    assert task.halt_kind == ("JUDGES" if task.halt else None), task
    assert set(task.sent_back) <= {"judges"}, task
    assert not task.halt or task.sent_back, "the user is asked before the agent was told"
    _stands_uncommitted(world)


def _named_if_it_is_completed(world: World) -> None:
    """Not completed without the trial of its new test on the base, and the word about it.

    Killed once the list says that it was sent back, it is completed by the next one who hands it in.
    """
    task = invariants.the_task(world)
    if task.status == "completed":
        assert any("adds tests that pass without its work" in each for each in task.look_at), task
        return
    assert (task.status, task.attempts) == ("in_progress", 0), task
    _stands_uncommitted(world)


def _stands_uncommitted(world: World) -> None:
    assert world.git("rev-list", f"{world.base}..HEAD").split() == world.own_commits
    invariants.holds(world, {JUDGE: b"true\n"})


def _released_or_goes_on(world: World) -> None:
    if invariants.the_task(world).status == "pending":
        invariants.rolled_back(world, status="pending", attempts=0)
    else:
        invariants.goes_on(world)


def _failed_or_goes_on(world: World) -> None:
    """Died before its verdict was written, nobody has handed it in."""
    if invariants.the_task(world).status == "in_progress":
        invariants.goes_on(world)
    else:
        invariants.rolled_back(world)


def _nothing_lost(world: World) -> None:
    """No attempt had begun to change anything: it is open, held, or failed without progress."""
    task = invariants.the_task(world)
    assert task.status in {"pending", "in_progress", "failed"}, task
    assert task.attempts == (task.status == "failed"), task
    assert len(task.error_log) == task.attempts, task
    assert world.git("rev-parse", "HEAD").strip() == world.base
    invariants.holds(world, {**contents.TRACKED, **contents.BEFORE, **contents.IGNORED})


SCENARIOS = (
    Scenario("finish that passes", "finish", PASSES, _attempted, invariants.completed),
    Scenario("finish that fails", "finish", FAILS, _attempted, _failed_or_goes_on),
    Scenario(
        "finish that fails what is held out",
        "finish",
        f"{PASSES} || test -f {contents.SOLUTION}",
        _held_out,
        _failed_or_goes_on,
        every=3,
    ),
    Scenario(
        "finish that passes what is held out",
        "finish",
        PASSES,
        _held_out_and_right,
        _completed_by_both,
        every=6,
    ),
    Scenario("release", "release", FAILS, _attempted, _released_or_goes_on, every=4),
    Scenario("claim", "claim", FAILS, _started, _nothing_lost),
    Scenario("claim that opens a session", "claim", FAILS, _idle, _nothing_lost, lives=False, every=2),
    Scenario("start", "start", FAILS, _paused, _nothing_lost, lives=False),
    Scenario("recovery that passes", "start", PASSES, _attempted, invariants.completed, lives=False, every=2),
    Scenario("recovery that goes on", "start", FAILS, _attempted, invariants.goes_on, lives=False, every=4),
    Scenario(
        "shared: a finish that passes", "finish", PASSES, _shared_attempt, invariants.completed, every=8
    ),
    Scenario("shared: a finish that fails", "finish", FAILS, _shared_attempt, _failed_or_goes_on, every=10),
    Scenario("shared: a claim", "claim", FAILS, _shared, _nothing_lost, every=6),
    Scenario("judged twice", "finish", JUDGED, _judged_twice, _waits_for_user, every=2, held=True),
    Scenario(
        "tried without its work",
        "finish",
        JUDGED,
        _with_a_judge,
        _named_if_it_is_completed,
        every=2,
        held=True,
    ),
    # The second death in a row; the first one is part of what was prepared.
    Scenario("rollback again", "recover", FAILS, _rollback_begun, invariants.rolled_back, every=4),
    Scenario("rest of a rollback", "start", FAILS, _half_back, invariants.rolled_back, lives=False, every=5),
    Scenario("commit again", "recover", PASSES, _commit_begun, invariants.completed, every=3),
    Scenario(
        "rest of a commit", "start", PASSES, _half_committed, invariants.completed, lives=False, every=3
    ),
)
