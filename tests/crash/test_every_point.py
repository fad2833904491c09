"""The verbs that change something, in the situations in which a death costs most."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crash import contents, dying, invariants, world
from tests.crash.contents import FAILS, PASSES
from tests.crash.driver import DIED
from tests.crash.dying import Point, Scenario, Survivor
from tests.crash.world import TASK, World

JUDGE = "tests/judge.sh"
JUDGED = f"echo checked >> touched-by-check.txt; sh {JUDGE}"


def _idle(_world: World) -> None:
    """Leave the list as it was made: no session, nothing claimed."""


def _paused(world: World) -> None:
    world.path(".harness-active").unlink()


def _started(world: World) -> None:
    with world.agent() as agent:
        answer = agent.type("start")
        assert answer.code == 0, answer


def _attempted(world: World) -> None:
    world.claim()
    world.attempt()


def _held_out(world: World) -> None:
    """Leave an attempt whose own check passes, and a held-out one does not."""
    with world.agent() as agent:
        answer = agent.type("edit", "task-001", "--hidden", f"test -f {contents.SOLUTION}")
        assert answer.code == 0, answer
    _attempted(world)


def _held_out_and_right(world: World) -> None:
    """Leave an attempt that passes a held-out check, which leaves a trace when it runs."""
    with world.agent() as agent:
        answer = agent.type("edit", "task-001", "--hidden", f"touch {_trace(world)}")
        assert answer.code == 0, answer
    _attempted(world)


def _trace(world: World) -> Path:
    return world.project / ".git" / "held-out-has-run"


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


def _dies(world: World, verb: str, name: str, number: int = 1) -> None:
    """Let the verb be killed a first time, so that its recovery can be killed, too."""
    _attempted(world)
    template = world.project.with_name("before-first-death")
    world.save(template)
    with world.agent() as agent:
        world.load(template, agent)
        answer = agent.type(verb, die_at=(name, number, "before"))
        assert answer.code == DIED, answer


def _rollback_begun(world: World) -> None:
    _dies(world, "finish", "run git update-ref refs/harness/rescue/task-001/1 OID")


def _half_back(world: World) -> None:
    _dies(world, "finish", "os.rename .git/harness-scratch-RANDOM/files/staged.txt -> staged.txt")


def _commit_begun(world: World) -> None:
    _dies(world, "finish", "run git update-ref -m harness: commit HEAD OID OID")


def _half_committed(world: World) -> None:
    _dies(world, "finish", "run git reset --no-quiet OID -- :/")


def _judged_twice(world: World) -> None:
    """Let an attempt pass its check only because it has changed the judge."""
    world.put({JUDGE: b"test -f solved\n"})
    world.git("add", JUDGE)
    world.git("commit", "-q", "-m", "A judge")
    _with_a_judge(world)


def _with_a_judge(world: World) -> None:
    """Let an attempt write a judge that never fails, whether the base had one or not."""
    with world.agent() as agent:
        answer = agent.type("edit", TASK, "--protect", "auto")
        assert answer.code == 0, answer
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


# -- kill it anywhere, lose nothing: a verb dies at every point of its work, and whoever comes next recovers
#
# Each point is died at once, and the survivors take turns: an agent of the same name, one of another name,
# and
# the agent itself, if only its command was killed.
# With CRASH_EVERYWHERE set, every survivor comes to every point.


EVERYTHING = bool(os.environ.get("CRASH_EVERYWHERE"))
# A scenario is cut in parts, so that several processes can share it.
PARTS = 3 if EVERYTHING else 1
TO_THE_END = 5
# `bin/test` is to take less than eight minutes on two cores.
THINNING = 20


def _deaths(scenario: Scenario, points: list[Point], part: int) -> list[tuple[int, Point, Survivor]]:
    """Return number, point and survivor of the deaths of one part."""
    numbered = list(enumerate(points))
    if EVERYTHING:
        return [(n, point, survivor) for n, point in numbered[part::PARTS] for survivor in dying.SURVIVORS]
    # Another one begins in each scenario, as some have few deaths.
    first, step = SCENARIOS.index(scenario), THINNING * scenario.every
    return [
        (turn, point, dying.SURVIVORS[turn % len(dying.SURVIVORS)])
        for turn, (_, point) in enumerate(numbered[first % step :: step], first)
    ]


@pytest.mark.timeout(900 if EVERYTHING else 400)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_death_at_any_point_loses_nothing(tmp_path: Path, scenario: Scenario, part: int) -> None:
    with world.opened(tmp_path) as here:
        template = tmp_path / "template"
        dying.make(scenario, here, template)
        noted = dying.effects_of(scenario, here, template)
        points = list(dying.points_of(noted))
        deaths = _deaths(scenario, points, part)
        _are_those_that_matter(scenario, noted)
        broken = [
            broken
            for number, point, survivor in deaths
            if (
                broken := dying.failure(
                    scenario, here, template, point, survivor, to_the_end=number % TO_THE_END == 0
                )
            )
        ]
    assert not broken, f"{len(broken)} of {len(deaths)} deaths lost something:\n\n" + "\n".join(broken)


# What must be among the effects, or nothing has been tested.
ESSENTIAL = {
    "finish that passes": (
        "-> harness-tasks.json",
        "git update-ref -m harness: commit HEAD",
        "git read-tree",
    ),
    "finish that fails": (
        "refs/harness/rescue/",
        "os.remove own-commit.txt",
        "-> deleted.txt",
        "-> notes.txt",
    ),
    "claim": ("refs/harness/before/OID", "-> harness-tasks.json"),
    "start": ("os.mkdir LOCKDIR", "open .harness-active", "write harness-progress.txt"),
}


def _are_those_that_matter(scenario: Scenario, noted: list[dying.Note]) -> None:
    """Find deaths before each kind of effect, in the middle of writes, and of git that holds its locks."""
    names = [str(note["name"]) for note in noted]
    essential = ESSENTIAL.get(scenario.name, ())
    missing = [effect for effect in essential if not any(effect in each for each in names)]
    assert not missing, "\n".join(names)
    ways = {point.how for point in dying.points_of(noted)}
    assert ways == {"before", "half", "killed", "locked", "ended"} or "finish" not in scenario.name, ways


SEED = 20250701
KILLS = 75 if os.environ.get("CRASH_EVERYWHERE") else 3
RACED = {scenario.name: scenario for scenario in SCENARIOS if scenario.name.startswith("finish")}

FINISH = "print('begin', flush=True); from harness_lib.cli.main import entry; entry()"


def _finish(here: World, kill_after: float | None) -> tuple[bool, float]:
    """Type a real `finish`, kill it after so many seconds; return whether it was killed, and its time."""
    process = subprocess.Popen(
        [sys.executable, "-c", FINISH, "finish"],
        cwd=here.project,
        env={**os.environ, "HARNESS_WORKER_ID": world.WORKER},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begin\n"
    begun = time.monotonic()
    if kill_after is not None:
        time.sleep(kill_after)
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL, time.monotonic() - begun


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    # What is held out dies at chosen points in test_every_point.py.
    [pytest.param(name, marks=[pytest.mark.release] if "held out" in name else []) for name in RACED],
)
def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path, name: str) -> None:
    scenario = RACED[name]
    chance = random.Random(f"{SEED} {name}")
    with world.opened(tmp_path) as here:
        template = tmp_path / "template"
        dying.make(scenario, here, template)
        with here.agent() as agent:
            here.load(template, agent)
            _, whole = _finish(here, None)
        # One in each part of its time: it may take less of it than when that was measured.
        delays = [(number + chance.random()) / KILLS * whole for number in range(KILLS)]
        killed = [_one(scenario, here, template, delay, number) for number, delay in enumerate(delays)]
    # Some are over before they are killed; that all are would mean that nothing was tested.
    assert any(killed)


def _one(scenario: Scenario, here: World, template: Path, delay: float, number: int) -> bool:
    agent = here.agent()
    try:
        here.load(template, agent)
        killed, _ = _finish(here, delay)
        here.let_time_pass()
        survivor = dying.SURVIVORS[number % len(dying.SURVIVORS)]
        agent = survivor(scenario, here, agent)
        invariants.check_always(here, torn=False, started=survivor is not dying.living_agent)
        scenario.expect(here)
    except AssertionError as error:
        error.args = (f"kill {number} after {delay:.4f} s: {error}",)
        raise
    finally:
        agent.end()
    return killed
