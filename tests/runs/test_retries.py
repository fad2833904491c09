"""Whether another agent goes on with an attempt, and how long it waits before it does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness_lib import timestamps
from harness_lib.agents import registry
from harness_lib.agents.adapter import Adapter, Report, Trouble
from harness_lib.agents.command import adapter
from harness_lib.attempts.check import Known
from harness_lib.core.context import Context
from harness_lib.errors import AwayError
from harness_lib.rules.events import Away, Claimed, Event, Idle, News, Notice, Stepped
from harness_lib.rules.run_state import Spent
from harness_lib.runs import agent_attempt, agent_process, waiting
from harness_lib.runs.agent_attempt import Tries
from harness_lib.runs.agent_process import AgentExit, How
from harness_lib.runs.options import AgentOptions, Rules
from harness_lib.runs.waiting import HeldBackError, StuckError
from harness_lib.system.processes.runner import Finished
from harness_lib.task import Task
from tests.state.clock import Sleeper
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin

NOW = datetime.now(timezone.utc)


class Still(Sleeper):
    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.slept)


@dataclass
class Port:
    """A worker whose run starts no further agent after `most` questions whether it does."""

    config: AgentOptions
    most: int = 10**6
    told: list[News] = field(default_factory=list)
    adapter: Adapter = field(default_factory=lambda: adapter("true"))
    known: Known = field(default_factory=dict)
    has_worked: bool = False

    def tell(self, news: News) -> None:
        self.told.append(news)

    def rules(self) -> Rules:
        return Rules()

    def held_back(self) -> str:
        self.most -= 1
        return "a limit of the run was reached" if self.most < 0 else ""


@dataclass
class Attempt:
    """An attempt in the checkout of a project, and the agents that end in it."""

    ctx: Context
    clock: Still
    task: Task
    port: Port
    tries: Tries = field(default_factory=Tries)
    actions: int = 0

    def ends(self, how: How, trouble: Trouble | None = None, seconds: float = 1.0) -> bool:
        """Let an agent end; return whether another one goes on."""
        report = Report(trouble=trouble, actions=self.actions)
        agent_exit = AgentExit(how, "it said so", report, seconds, Path("log"), code=1)
        return agent_attempt.goes_on(self.ctx, self.task, self.port, agent_exit, self.tries)


@pytest.fixture
def project(make_project: Make) -> Project:
    return make_project(mode="concurrent")


@pytest.fixture
def attempt(project: Project, agent: Agent) -> Attempt:
    begin(agent)
    clock = Still()
    ctx = Context(env={"HARNESS_WORKER_ID": agent.name}, cwd=project.top, clock=clock)
    task = ctx.store.ask().task("task-001")
    assert task is not None
    return Attempt(ctx, clock, task, Port(config=None))  # type: ignore[arg-type] # nobody asks for it


@pytest.mark.parametrize(
    ("resets", "seconds"),
    [
        (NOW + timedelta(hours=3), 3 * 3600 + agent_attempt.AFTER_RESET_SECONDS),
        (NOW - timedelta(hours=1), agent_attempt.AFTER_RESET_SECONDS),
        (None, agent_attempt.UNKNOWN_LIMIT_SECONDS),
    ],
)
def test_a_usage_limit_is_waited_out_to_its_reset(
    project: Project, attempt: Attempt, resets: datetime | None, seconds: float
) -> None:
    assert attempt.ends("limit", Trouble("limit", "usage limit reached", resets))
    assert attempt.clock.slept == pytest.approx(seconds)
    # The claim is kept alive meanwhile.
    assert timestamps.parse(project.task()["lease_expires_at"]) > attempt.clock.now()
    until = (NOW + timedelta(seconds=seconds)).timestamp()
    assert attempt.port.told == [Stepped("limit", until, "it said so")]


def test_trouble_of_the_providers_is_tried_again_after_growing_pauses(attempt: Attempt) -> None:
    """Longer ones where the provider has said how long it takes."""
    resets: list[datetime | None] = [NOW + timedelta(seconds=60), *[None] * (len(agent_attempt.PAUSES) - 1)]
    slept = []
    for moment in resets:
        before = attempt.clock.slept
        assert attempt.ends("transient", Trouble("transient", "529 overloaded", moment))
        slept.append(round(attempt.clock.slept - before))
    assert slept == [65, 15, 45, 120, 300, 600, 600, 600]
    with pytest.raises(StuckError) as stuck:
        attempt.ends("transient", Trouble("transient", "529 overloaded"))
    assert (stuck.value.everywhere, stuck.value.kind) == (True, "ENV_SETUP")


def test_a_limit_of_the_run_ends_the_waiting(attempt: Attempt) -> None:
    attempt.port.most = 7
    with pytest.raises(HeldBackError, match="a limit of the run was reached while its agent waited"):
        attempt.ends("limit", Trouble("limit", "usage limit reached", NOW + timedelta(hours=3)))
    assert attempt.clock.slept == pytest.approx(7 * agent_attempt.SLICE_SECONDS)


def _spends(_: Project, attempt: Attempt) -> float:
    attempt.tries.spent = Spent(cost=0.1)
    return 1.0


def _commits(project: Project, _: Attempt) -> float:
    project.commit(files={"made": "x\n"})
    return 1.0


def _lives(_: Project, attempt: Attempt) -> float:
    attempt.port.adapter = adapter("true")
    return agent_attempt.AT_ONCE_SECONDS


def _acts(_: Project, attempt: Attempt) -> float:
    attempt.actions = 1
    return 1.0


@pytest.mark.parametrize("sign", [None, _spends, _commits, _lives, _acts])
def test_an_agent_that_ends_again_and_again_and_has_done_nothing_cannot_start(
    project: Project, attempt: Attempt, sign: Callable[[Project, Attempt], float] | None
) -> None:
    """One that has done something could, or a command that lived on. One that has worked may be updated."""
    attempt.port.adapter, attempt.port.has_worked = registry.named("claude"), sign is None
    assert [attempt.ends("crashed"), attempt.ends("ended")] == [True, True]
    assert attempt.clock.slept == pytest.approx(3 if sign else sum(agent_attempt.UPDATE_SECONDS))
    if sign is not None:
        assert not attempt.ends("crashed", seconds=sign(project, attempt))
        return
    with pytest.raises(StuckError, match="cannot start: the agent ended and did nothing: it prin") as stuck:
        attempt.ends("ended", seconds=60.0)
    assert stuck.value.halts_as == "UNSTARTED"


@pytest.mark.parametrize("how", ["ended", "silent", "circling", "over", "long"])
def test_no_other_agent_follows_one_that_was_stopped_or_has_ended(attempt: Attempt, how: How) -> None:
    assert not attempt.ends(how)
    assert (attempt.clock.slept, attempt.port.told) == (0.0, [])


def test_the_last_words_of_an_agent_are_lines_with_words() -> None:
    traceback = "Traceback:\n    open(x)\n    ^^^^^^^\nOSError: no\n    at main (x.js:1:2)\n"

    assert agent_process._last_words(traceback, 2) == "    open(x) / OSError: no"
    assert agent_process._last_words(traceback, 1) == "OSError: no"
    assert agent_process._last_words('a\n{"b": 1}', 2) == ""


OVER = Trouble("limit", "usage limit reached")


@pytest.mark.parametrize(
    ("code", "trouble", "over", "how"),
    [
        (0, None, "cost: $2 of $1", "ended"),
        (1, None, "cost: $2 of $1", "over"),
        (0, Trouble("transient", "529 overloaded"), None, "ended"),
        (1, Trouble("transient", "529 overloaded"), None, "transient"),
        (0, OVER, None, "limit"),
    ],
)
def test_an_agent_that_ends_well_has_got_over_what_passes(
    code: int, trouble: Trouble | None, over: str | None, how: How
) -> None:
    """Or over the limit of its task; a usage limit is one whatever it ends with."""
    finished = Finished(code, timed_out=False, too_loud=False, seconds=1.0, tail="")

    assert agent_process._how(finished, Report(trouble=trouble), 2, over)[0] == how


@pytest.mark.parametrize(
    ("actions", "changes", "is_stuck"),
    [
        pytest.param(agent_process.LONGEST_CIRCLE, False, True, id="in turn"),
        pytest.param(agent_process.LONGEST_CIRCLE + 1, False, False, id="too many to be a circle"),
        pytest.param(1, True, False, id="something has changed in the work tree"),
    ],
)
def test_an_agent_that_repeats_itself_and_changes_nothing_is_stuck(
    project: Project, attempt: Attempt, actions: int, *, changes: bool, is_stuck: bool
) -> None:
    listener = agent_process.Listener(attempt.ctx, attempt.port.adapter, Rules(), Spent())
    for turn in range(2):
        assert listener.poll()
        (project.top / "made").write_text(f"{turn if changes else 0}\n")
        for number in range(agent_process.CIRCLES):
            listener._take(json.dumps({"action": f"look {number % actions}"}))
        assert (listener.poll(), turn) == (not (is_stuck and turn), turn)


# -- what a run waits for: half an hour, and one worker tells it for all


def test_what_is_away_is_waited_for_half_an_hour(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    wait = waiting.Waiting(attempt.ctx, told.append)
    monkeypatch.setattr(waiting, "LEAST_BYTES", 2**80)
    assert not wait.is_for_room(attempt.ctx, attempt.ctx.root.path), "it has not begun to wait"

    for seconds in (1800.0, 1.0):
        wait.after(AwayError("It is gone"))
        assert wait.is_for_room(attempt.ctx, attempt.ctx.root.path)
        attempt.clock.sleep(seconds)

    with pytest.raises(AwayError, match="gone"):
        wait.after(AwayError("It is gone"))
    with pytest.raises(OSError, match="No space left on device"):
        wait.is_for_room(attempt.ctx, attempt.ctx.root.path)
    assert told == ["It is gone. The run waits up to half an hour."]
    wait.over()
    wait.after(AwayError("It is gone again"))
    assert len(told) == 2


def test_what_workers_wait_for_is_said_again_once_none_has_waited() -> None:
    waits = waiting.Waits()

    def is_shown(number: int, news: News) -> bool:
        shown = waits.shown(Event(number, 0.0, news))
        assert shown is None or shown.news in (news, Notice("warning", "gone"))
        return shown is not None

    away, works = Away("gone"), Claimed("task-001", "Do it", 1)
    said = [is_shown(1, away), is_shown(2, away), is_shown(1, Idle("waiting")), is_shown(2, works)]
    assert said == [True, False, True, True]
    assert [is_shown(2, away), is_shown(1, works), is_shown(2, works)] == [False, True, True]
    assert is_shown(2, away), "nobody waits any more"
