"""Agents that never end, cost too much, cannot start or end as they like: nothing is lost, all is said."""

from __future__ import annotations

import json
import shlex
import sys
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
from harness_lib.rules.events import News, Stepped
from harness_lib.rules.run_state import Spent
from harness_lib.runs import agent_process, agent_retries
from harness_lib.runs.agent_process import AgentExit, How, Rules
from harness_lib.runs.agent_retries import Tries
from harness_lib.runs.worker_port import AgentOptions, HeldBackError, StuckError
from harness_lib.state import schema
from harness_lib.system.clock import Clock
from harness_lib.task import Task
from tests.runs.workshop import HURRIED, Workshop
from tests.system.git.gitrepo import sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin

DEAR = json.dumps({"cost_usd": 1.5})
LIMIT = "[TASK_EXEC] the limit of one task is reached (cost: $1.50 of $1.00)"


def _case(*words: str) -> str:
    """Return an agent that does the first of `words` for the first task, and so on."""
    cases = "".join(f"task-{number:03d}) {line} ;; " for number, line in enumerate(words, 1))
    return f'case "$HARNESS_TASK_ID" in {cases} esac'


def test_an_agent_that_would_never_end_is_stopped_and_its_work_kept(workshop: Workshop) -> None:
    """They print for ever, are silent, repeat themselves, cost too much, or stop themselves at that.

    Work that passes its check counts, although its agent does not come to an end.
    """
    stopped = {
        "Loud": ("yes", "[TIMEOUT] the agent printed without end"),
        "Quiet": ("echo x > g; sleep 600", "[TIMEOUT] the agent printed nothing"),
        "Round": (
            'while :; do echo \'{"action": "ls"}\'; sleep 0.02; done',
            "[TIMEOUT] the agent repeats itself",
        ),
        "Dear": (f"echo '{DEAR}'; sleep 600", LIMIT),
        "Itself": (f"echo '{DEAR}'; exit 1", LIMIT),
    }
    for title in stopped:
        workshop.add(title, "test -f f", "--max-attempts", "1")
    workshop.add("Done", "grep -q done h", "--max-attempts", "1")
    agent = _case(*(line for line, _ in stopped.values()), "echo done > h; sleep 600")

    said = workshop.ends(
        9,
        *("-j", "2", "--silence", "0.5", "--task-cost", "1"),
        agent=agent,
        HARNESS_LOG_LIMIT_BYTES="1000000",
        **HURRIED,
    )

    *failed, done = workshop.state["tasks"]
    assert (done["status"], done["attempts"]) == ("completed", 0)
    for task, (_, blame) in zip(failed, stopped.values(), strict=True):
        assert blame in task["error_log"][0], task["title"]
    assert "pauses" not in said.stdout
    assert sh(workshop.top, "show", "refs/harness/rescue/task-002/1:g") == "x"
    workshop.nothing_is_left_over()


def test_a_budget_of_the_run_ends_it_after_what_runs(workshop: Workshop) -> None:
    for name in ("one", "two", "three"):
        workshop.file_task(name)

    agent = f"echo '{DEAR}'; echo done > one"
    typed = ("--max-cost", "1", "--protect", "a/1.0", "--protect=-b", "--network", "none", "--no-precheck")
    said = workshop.run(*typed, "--json", agent=agent)

    answer = json.loads(said.stdout.splitlines()[-1])
    assert (said.returncode, answer["stop"]) == (9, {"reason": "limit"})
    assert schema.reply_problems(answer) == []
    assert answer["spent"]["cost_usd"] == pytest.approx(1.5)
    sentence = "A limit of this run is reached (cost: $1.50 of $1.00). To go on, raise it:"
    assert answer["message"].splitlines()[0] == f"{sentence} harness run --help"
    again = shlex.split(answer["next"])
    assert again[:4] == ["harness", "run", "--agent-command", agent], "with all that was typed"
    assert sorted(again[4:]) == sorted([*typed, "--final-check", "none"])
    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending", "task-003": "pending"}


def test_what_is_the_providers_is_waited_out_and_costs_no_attempt(workshop: Workshop, tmp_path: Path) -> None:
    """A limit that is over soon, then trouble; a limit of the run that its last task reaches ends nothing."""
    workshop.add("Limited", "grep -q done f")
    moment = datetime.now(timezone.utc) + timedelta(seconds=5)
    said_first = [{"limit_resets_at": moment.isoformat()}, {"transient": "529 overloaded"}]
    seen = tmp_path / "seen"
    seen.write_text("".join(f"{json.dumps(each)}\n" for each in said_first))
    agent = (
        f"if [ -s {seen} ]; then echo half >> f; head -1 {seen}; sed -i 1d {seen}; exit 1; fi; "
        f"echo done >> f; echo '{DEAR}'"
    )

    said = workshop.ends(0, "--max-cost", "1", "--final-check", "all", agent=agent, **HURRIED)

    assert said.stdout.count("pauses, goes on at") == len(said_first)
    assert "529 overloaded" in said.stdout
    assert workshop.task("task-001")["attempts"] == 0
    assert (workshop.top / "f").read_text().split() == ["half", "half", "done"]
    assert "every check runs once more" in said.stdout
    assert "run=done cost_usd=1.50" in workshop.harness("log").stdout


# -- agents that are not installed, not logged in, or cannot start: named, and it costs no attempt


def test_an_agent_that_is_not_installed_is_named_before_anything_begins(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.harness("run", "--agent", "claude", PATH="/usr/bin:/bin")

    assert said.returncode == 7
    assert "there is no 'claude' on the PATH" in said.stderr
    assert workshop.state["session_count"] == 0


def test_an_agent_that_cannot_start_ends_the_run_at_no_cost(workshop: Workshop, tmp_path: Path) -> None:
    """With a report as any other run, on which a command is told once."""
    workshop.file_task("f")
    workshop.file_task("g")
    news = tmp_path / "news"

    told = ("--notify", f'echo "$HARNESS_EVENT" >> {news}')
    said = workshop.ends(7, *told, agent="no-such-agent --yes", **HURRIED)

    assert "The user must act first. the agent cannot start" in said.stderr
    assert "Then: harness run --agent-command 'no-such-agent --yes' " in said.stderr
    assert "2 tasks: 0 completed, 2 pending" in said.stderr
    assert [(task["attempts"], task.get("halt")) for task in workshop.state["tasks"]] == [(0, None)] * 2
    assert "ERROR [ENV_SETUP] the run ended: the agent cannot start" in workshop("status").out
    workshop.nothing_is_left_over()
    workshop.wait_for("the news", news.exists)
    workshop.ok("retry", "task-001")

    said = workshop.run("-j", "2", "--json", agent="no-such-agent --yes", **HURRIED)

    assert (said.returncode, json.loads(said.stdout.splitlines()[-1])["tasks"]) == (7, [])
    assert [task.get("halt") for task in workshop.state["tasks"]] == [None, None]
    assert news.read_text() == "stuck\n"


@pytest.mark.release
def test_an_agent_that_cannot_start_for_one_task_does_not_keep_the_others(workshop: Workshop) -> None:
    workshop.add("Too long", "test -f f")
    workshop.file_task("g")
    agent = '[ "$HARNESS_TASK_ID" = task-002 ] || { echo too long; exit 1; }; echo done > g'

    said = workshop.run(agent=agent, **HURRIED)

    assert said.returncode == 9
    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed"}
    assert workshop.task("task-001")["attempts"] == 0
    status = workshop("status").out
    assert "the agent cannot start: the agent ended with 1: too long" in status
    assert "harness retry task-001" in status
    workshop.nothing_is_left_over()


def test_an_agent_that_is_not_logged_in_ends_the_run_and_is_named(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.run(agent=f"echo '{json.dumps({'login': 'no key'})}'; exit 1")

    assert said.returncode == 7
    assert "no key" in said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    workshop.nothing_is_left_over()
    later = workshop.ok("status")
    assert later["next"] == "harness run"
    (act,) = later["halts"]
    assert act.startswith("the last run ended: ")
    assert "no key" in act
    assert act.endswith("; then: harness run")
    workshop.ok("start")
    workshop.ok("stop", "--session", str(workshop.state["sessions"][0]["number"]))
    later = workshop.ok("status")
    assert (later["next"], later["halts"]) == ("harness start", [])


# -- agents that do nothing or end as they like, and tasks that nothing judges: said plainly, nothing lost


@pytest.mark.release
def test_agents_end_as_they_like_and_the_check_decides(workshop: Workshop, tmp_path: Path) -> None:
    log = tmp_path / "log"
    any_code = workshop.add("Any code", "grep -q done f", do=f"sh echo x >> {log}\nwrite f done\nexit 3")
    daemon = workshop.add("Daemon", "grep -q done g", do="sh setsid sleep 600 & \nwrite g done")
    idle = workshop.add("Something", "test -f h", "--max-attempts", "2")
    unjudged = str(workshop.ok("add", "No check")["task"]["id"])
    # What a check leaves is taken back before the next agent.
    again = workshop.add(
        "Two lives",
        "touch trace; echo spoilt > README.md; grep -q done i",
        do="write i half\nonce exit 3\nsh test ! -f trace\nwrite i done",
    )

    workshop.ends(9, **HURRIED)

    assert log.read_text() == "x\n"
    assert workshop.statuses() == {
        any_code: "completed",
        daemon: "completed",
        idle: "failed",
        unjudged: "pending",
        again: "completed",
    }
    assert (workshop.task(idle)["attempts"], workshop.task(again)["attempts"]) == (2, 0)
    assert "Missing validation.command" in workshop.task(unjudged)["halt"]
    assert (workshop.top / "README.md").read_text() == "hello\n"
    workshop.nothing_is_left_over()


# -- what an agent under a run may type: a note for later tasks, a checkpoint; to end its task is not for it


HARNESS = f"{shlex.quote(sys.executable)} -m harness_lib"
REFUSED = ("finish", "start", "stop", "run")


def test_an_agent_may_tell_the_next_one_something_and_cannot_end_its_task(workshop: Workshop) -> None:
    """The run is none the worse for its trying; and its brief says what ends it."""
    words = ('note task-001 "port 80 is taken"', "checkpoint task-001 1/2 half", *REFUSED)
    typed = " ".join(f"{HARNESS} {each} >> said 2>&1; echo $? >> codes;" for each in words)
    one = workshop.add("One", "grep -q done f", "--cwd", ".", do=f"sh {typed}\nwrite f done")
    heard = 'grep -q "task-001: port 80 is taken" "$HARNESS_BRIEF_FILE" && touch heard'
    workshop.add("Two", "test -f heard", "--depends-on", one, do=f"sh {heard}")

    said = workshop.ends(0, "--longest", "90", "--silence", "1", "--task-cost", "2", "--max-cost", "5")

    assert (workshop.top / "codes").read_text().split() == ["0", "0", *["2"] * len(REFUSED)]
    answers = (workshop.top / "said").read_text()
    assert answers.count("End your turn") == len(REFUSED)
    assert all(f"harness {verb} is not available inside" in answers for verb in REFUSED)
    task = workshop.task(one)
    assert (task["notes"], len(task["checkpoints"])) == (["port 80 is taken"], 1)
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0]
    assert workshop.state["session_count"] == 1
    assert "has died" not in said.stdout
    brief = (workshop.top / ".harness/logs/task-001/1-agent-1.brief.md").read_text()
    assert "You are stopped after 90 minutes, and after 60 seconds without a word" in brief
    assert "This task may use: cost $2.00." in brief
    assert "  check (max 300 s): " in brief
    workshop.nothing_is_left_over()


# -- whether another agent goes on with an attempt, and how long it waits before it does


NOW = datetime.now(timezone.utc)


@dataclass
class Still(Clock):
    """Nobody sleeps: time passes when somebody would."""

    slept: float = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.slept)

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


@dataclass
class Port:
    """A worker whose run starts no further agent after `most` questions whether it does."""

    config: AgentOptions
    most: int = 10**6
    told: list[News] = field(default_factory=list)
    adapter: Adapter = field(default_factory=lambda: adapter("true"))
    known: Known = field(default_factory=dict)

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

    def ends(self, how: How, trouble: Trouble | None = None, seconds: float = 1.0) -> bool:
        """Let an agent end; return whether another one goes on."""
        report = Report(trouble=trouble)
        agent_exit = AgentExit(how, "it said so", report, seconds, Path("log"), code=1)
        return agent_retries.goes_on(self.ctx, self.task, self.port, agent_exit, self.tries)


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
        (NOW + timedelta(hours=3), 3 * 3600 + agent_retries.AFTER_RESET_SECONDS),
        (NOW - timedelta(hours=1), agent_retries.AFTER_RESET_SECONDS),
        (None, agent_retries.UNKNOWN_LIMIT_SECONDS),
    ],
)
def test_a_usage_limit_is_waited_out_to_its_reset(
    project: Project, attempt: Attempt, resets: datetime | None, seconds: float
) -> None:
    assert attempt.ends("limit", Trouble("limit", "usage limit reached", resets))
    assert attempt.clock.slept == pytest.approx(seconds)
    # The claim is kept alive meanwhile.
    assert timestamps.parse(project.task()["lease_expires_at"]) > attempt.clock.now()
    (told,) = attempt.port.told
    assert told == Stepped("limit", (NOW + timedelta(seconds=seconds)).timestamp(), "it said so")


def test_trouble_of_the_providers_is_tried_again_after_growing_pauses(attempt: Attempt) -> None:
    """Longer ones where the provider has said how long it takes."""
    resets: list[datetime | None] = [NOW + timedelta(seconds=60), *[None] * (len(agent_retries.PAUSES) - 1)]
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
    assert attempt.clock.slept == pytest.approx(7 * agent_retries.SLICE_SECONDS)


def _spends(_: Project, attempt: Attempt) -> float:
    attempt.tries.spent = Spent(cost=0.1)
    return 1.0


def _commits(project: Project, _: Attempt) -> float:
    project.commit(files={"made": "x\n"})
    return 1.0


def _lives(_: Project, __: Attempt) -> float:
    return agent_retries.AT_ONCE_SECONDS


@pytest.mark.parametrize("sign", [None, _spends, _commits, _lives])
def test_an_agent_that_ends_at_once_and_again_and_has_done_nothing_cannot_start(
    project: Project, attempt: Attempt, sign: Callable[[Project, Attempt], float] | None
) -> None:
    """One that has done something could start, and has failed."""
    attempt.port.adapter = registry.named("claude")
    assert [attempt.ends("crashed") for _ in range(agent_retries.CRASHES)] == [True, True]
    assert attempt.clock.slept == pytest.approx(3)
    if sign is not None:
        assert not attempt.ends("crashed", seconds=sign(project, attempt))
        return
    with pytest.raises(StuckError, match="the agent cannot start: it said so") as stuck:
        attempt.ends("crashed")
    assert stuck.value.unstarted


@pytest.mark.parametrize("how", ["ended", "silent", "circling", "over", "long"])
def test_no_other_agent_follows_one_that_was_stopped_or_has_ended(attempt: Attempt, how: How) -> None:
    assert not attempt.ends(how)
    assert (attempt.clock.slept, attempt.port.told) == (0.0, [])


def test_the_last_words_of_an_agent_are_lines_with_words() -> None:
    traceback = "Traceback:\n    open(x)\n    ^^^^^^^\nOSError: no\n"

    assert agent_process._last_words(traceback, 2) == "    open(x) / OSError: no"
    assert agent_process._last_words(traceback, 1) == "OSError: no"
    assert agent_process._last_words('a\n{"b": 1}', 2) == ""
