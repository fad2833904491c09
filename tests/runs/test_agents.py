"""Agents that never end, cost too much, cannot start or end as they like: nothing is lost, all is said."""

from __future__ import annotations

import json
import os
import shlex
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness_lib.state import schema
from tests.conftest import for_release
from tests.runs.workshop import HURRIED, Workshop
from tests.system.git.gitrepo import put

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
    assert workshop.sh("show", "refs/harness/rescue/task-002/1:g") == "x"
    workshop.nothing_is_left_over()


def test_a_budget_of_the_run_ends_it_after_what_runs(workshop: Workshop) -> None:
    for name in ("one", "two", "three"):
        workshop.file_task(name)

    agent = f"echo '{DEAR}'; echo done > one"
    typed = ("--max-cost", "1", "--protect", "a/1.0", "--protect=-b", "--network", "none", "--no-precheck")
    said = workshop.run(*typed, "--json", agent=agent)

    answer = json.loads(said.stdout.splitlines()[-1])
    assert (said.returncode, answer["stop"]) == (9, {"reason": "limit"})
    assert schema.problems(answer, "reply") == []
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
    assert workshop.read("f").split() == ["half", "half", "done"]
    assert "every check runs once more" in said.stdout
    assert "run=done cost_usd=1.50" in workshop.harness("log").stdout


# -- agents that are not installed, not logged in, or cannot start: named, and it costs no attempt


def test_an_agent_that_is_not_installed_is_named_before_anything_begins(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.harness("run", "--agent", "claude", PATH="/usr/bin:/bin")

    assert said.returncode == 7
    assert "there is no 'claude' on the PATH" in said.stderr
    assert "--agent claude" not in said.stderr, "another is to be chosen in its place"
    assert workshop.state["session_count"] == 0


def test_an_agent_that_cannot_start_ends_the_run_at_no_cost(workshop: Workshop, tmp_path: Path) -> None:
    """With a report as any other run, on which a command is told once."""
    workshop.file_task("f")
    workshop.file_task("g")
    news = tmp_path / "news"

    told = ("--notify", f'echo "$HARNESS_EVENT" >> {news}')
    said = workshop.ends(7, *told, agent="no-such-agent --yes", **HURRIED)

    assert "The user must act first: the agent cannot start" in said.stderr
    assert "Then: harness run --agent-command 'no-such-agent --yes' " in said.stderr
    assert "2 tasks: 0 completed, 2 pending" in said.stderr
    assert [(task["attempts"], task.get("halt")) for task in workshop.state["tasks"]] == [(0, None)] * 2
    status = workshop("status").out
    assert "ERROR [ENV_SETUP] the run ended: the agent cannot start" in status
    assert "See its output" not in status, "it ends with the command that follows anyway"
    workshop.nothing_is_left_over()
    workshop.wait_for("the news", news.exists)
    workshop.ok("retry", "task-001")

    said = workshop.run("-j", "2", "--json", agent="no-such-agent --yes", **HURRIED)

    assert (said.returncode, json.loads(said.stdout.splitlines()[-1])["tasks"]) == (7, [])
    assert [task.get("halt") for task in workshop.state["tasks"]] == [None, None]
    assert news.read_text() == "stuck\n"


@pytest.mark.parametrize("name", ["task-002", *for_release("task-001")])
def test_an_agent_that_cannot_start_for_one_task_keeps_no_other(workshop: Workshop, name: str) -> None:
    """Neither where it is the first one, nor where no other is left."""
    workshop.file_task("f")
    workshop.file_task("g")
    agent = f'[ "$HARNESS_TASK_ID" != {name} ] || {{ echo too long; exit 1; }}; echo done | tee f g'

    said = workshop.run(agent=agent, **HURRIED)

    assert said.returncode == 9
    assert workshop.statuses()[name] == "pending"
    assert sorted(workshop.statuses().values()) == ["completed", "pending"]
    assert workshop.task(name)["attempts"] == 0
    status = workshop("status").out
    assert "the agent cannot start: the agent ended with 1: too long" in status
    assert f"harness retry {name}" in status
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


def test_why_an_agent_died_each_time_is_said_beside_what_the_check_said(workshop: Workshop) -> None:
    workshop.add("Make f", "grep -q done f", "--max-attempts", "1", do="write f half\nsay no memory\nexit 3")

    workshop.ends(9, **HURRIED)

    assert workshop.task("task-001")["error_log"] == [
        "[TEST_FAIL] The check failed with exit code 1. The agent ended with 3: no memory"
    ]
    assert "no memory" in workshop("report").out


def test_a_program_that_all_checks_lack_costs_one_agent(workshop: Workshop, tmp_path: Path) -> None:
    search = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    for number in range(4):
        workshop.add(f"Make {number}", f"my-tool f{number}", do=f"sh echo > f{number}")

    said = workshop.run(PATH=search)

    shown = said.stdout.partition("LOOK AT\n")[2].splitlines()
    assert shown[0].split("  ") == ["", "task-001 and 3 more tasks", "Command not found: my-tool."]
    assert shown[1].strip() == "harness retry task-001 task-002 task-003 task-004"
    assert shown[2].startswith("AGAIN: ")
    logs = [workshop.top / ".harness/logs" / f"task-00{number + 1}" for number in range(4)]
    assert [bool(list(place.glob("*agent*"))) for place in logs] == [True, *[False] * 3]

    put(tmp_path / "my-tool", "#!/bin/sh\ntest -f $1\n", executable=True)
    said = workshop.ends(0, PATH=search)
    assert "task-004 goes on: my-tool, which its check needs, is there now" in said.stdout
    assert {task["attempts"] for task in workshop.state["tasks"]} == {0}


def test_a_program_that_belongs_in_the_work_tree_is_left_for_an_agent_to_make(workshop: Workshop) -> None:
    """Git ignores it, so another agent's work did not bring it."""
    workshop.put(".gitignore", ".tools\n")
    workshop.commits("Ignore tools")
    workshop.add("Needs it", ".tools/test one", do="write one 1")
    made = "sh mkdir .tools ;; sh echo 'test -f two' > .tools/test ;; sh chmod +x .tools/test ;; write two 2"
    workshop.add("Makes it", ".tools/test two", do=made)

    workshop.run()

    assert [task["status"] for task in workshop.state["tasks"]] == ["pending", "completed"]


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
    completed = dict.fromkeys((any_code, daemon, again), "completed")
    assert workshop.statuses() == {**completed, idle: "failed", unjudged: "pending"}
    assert (workshop.task(idle)["attempts"], workshop.task(again)["attempts"]) == (2, 0)
    assert "Missing validation.command" in workshop.task(unjudged)["halt"]
    assert workshop.read("README.md") == "hello\n"
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

    assert workshop.read("codes").split() == ["0", "0", *["2"] * len(REFUSED)]
    answers = workshop.read("said")
    assert answers.count("End your turn") == len(REFUSED)
    assert all(f"harness {verb} is not available inside" in answers for verb in REFUSED)
    task = workshop.task(one)
    assert (task["notes"], len(task["checkpoints"])) == (["port 80 is taken"], 1)
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0]
    assert workshop.state["session_count"] == 1
    assert "has died" not in said.stdout
    brief = workshop.read(".harness/logs/task-001/1-agent-1.brief.md")
    assert "You are stopped after 90 minutes, and after 60 seconds without a word" in brief
    assert "This task may use: cost $2.00." in brief
    assert "  check (max 300 s): " in brief
    workshop.nothing_is_left_over()
