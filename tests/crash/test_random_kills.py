"""A real `harness finish`, killed with all its children at moments that nobody chose, loses nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crash import dying, invariants, world
from tests.crash.dying import Scenario
from tests.crash.scenarios import SCENARIOS
from tests.crash.world import World

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
