"""Agents that would never end, cost too much, or meet a limit of their provider: stopped, or waited for."""

from __future__ import annotations

import json
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness_lib.state import schema
from tests.conftest import for_release
from tests.runs.workshop import HURRIED, Workshop
from tests.system.git.gitrepo import sh

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

    said = workshop.run("--max-cost", "1", "--json", agent=f"echo '{DEAR}'; echo done > one")

    answer = json.loads(said.stdout.splitlines()[-1])
    assert (said.returncode, answer["stop"]) == (9, {"reason": "limit"})
    assert schema.reply_problems(answer) == []
    assert answer["spent"]["cost_usd"] == pytest.approx(1.5)
    sentence = "A limit of this run is reached (cost: $1.50 of $1.00). To go on, raise it:"
    assert answer["message"].splitlines()[0] == f"{sentence} harness run --help"
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


@pytest.mark.release
@pytest.mark.parametrize("how", ["cost", *for_release("time", "ctrl-c")])
def test_nobody_waits_for_a_limit_in_a_run_that_ends(workshop: Workshop, tmp_path: Path, how: str) -> None:
    workshop.add("Limited", "grep -q done f")
    seen = tmp_path / "seen"
    resets = (datetime.now(timezone.utc) + timedelta(hours=3)).isoformat()
    spent = json.dumps({"cost_usd": 0.3, "limit_resets_at": resets})
    run = workshop.start(agent=f"echo x >> {seen}; echo half > f; echo '{spent}'; exit 1")
    workshop.wait_for("the waiting", lambda: "limit, goes on at" in workshop.printed)

    if how == "ctrl-c":
        run.send_signal(signal.SIGINT)
    else:
        workshop.ok("budget", *{"cost": ("--max-cost", "0.05"), "time": ("--max-hours", "0.00001")}[how])

    assert run.wait(90) == 9, workshop.printed
    assert seen.read_text() == "x\n"
    why = "the run was stopped" if how == "ctrl-c" else "a limit of the run was reached"
    assert f"task-001 goes back: {why} while its agent waited" in workshop.printed
    task = workshop.task("task-001")
    assert (task["status"], task["attempts"]) == ("pending", 0)
    assert sh(workshop.top, "show", f"{task['handback']['rescue']}:f") == "half"
    workshop.nothing_is_left_over()
