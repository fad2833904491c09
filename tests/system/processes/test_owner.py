"""The session belongs to who typed the command; and nobody is called dead without proof."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import harness_lib
from harness_lib.system.processes import owner, process

WHO = (
    "import json, os; from harness_lib.system.processes import owner;"
    "print(json.dumps(owner.current(os.environ)._asdict()))"
)
NO_PROCESS = 2**22 + 1


def ask(*command: str, **env: str) -> dict[str, object]:
    done = subprocess.run(
        [*command, sys.executable, "-c", WHO], env={**os.environ, **env}, capture_output=True, check=True
    )
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def ourselves() -> process.Process:
    us = process.find(os.getpid())
    assert us is not None
    return us


def test_the_process_that_runs_us_owns_the_session() -> None:
    answer = ask()

    assert (answer["pid"], answer["pid_started"]) == (os.getpid(), ourselves().started)
    assert answer["boot_id"] == process.boot_id()
    assert answer["host"] == os.uname().nodename


@pytest.mark.parametrize(
    "launcher",
    [["sh", "-c", '"$@"; exit $?', "sh"], ["env", "A=b"], ["timeout", "60"], ["nice"], ["nohup"]],
    ids=lambda launcher: launcher[0],
)
def test_shells_and_wrappers_own_nothing(launcher: list[str]) -> None:
    """They end with the command they run; the session must not."""
    assert ask(*launcher, *launcher)["pid"] == os.getpid()


def test_claude_names_its_own_process() -> None:
    assert ask(CLAUDE_PID=str(os.getppid()))["pid"] == os.getppid()


@pytest.mark.parametrize("text", ["", "0", "-1", "x", str(NO_PROCESS), "9" * 40, "²"])
def test_a_claude_pid_that_names_nobody_is_passed_over(text: str) -> None:
    assert ask(CLAUDE_PID=text)["pid"] == os.getpid()


@pytest.mark.parametrize("key", ["CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "GEMINI_SESSION_ID"])
def test_the_hosts_session_names_the_worker(key: str) -> None:
    answer = ask(**{key: "0fa2-1"})

    assert (answer["worker"], answer["agent_session_id"]) == ("0fa2-1", "0fa2-1")


def test_the_worker_id_a_person_chose_wins_and_is_one_clean_line() -> None:
    answer = ask(HARNESS_WORKER_ID="  night\n\x1bshift 1 " + "x" * 300, CODEX_SESSION_ID="id")

    assert answer["worker"] == ("nightshift 1 " + "x" * 300)[: owner.MAX_NAME]
    assert answer["agent_session_id"] == "id"


def test_a_worker_without_a_name_is_the_same_at_every_command() -> None:
    assert ask()["worker"] == ask()["worker"]
    assert ask()["agent_session_id"] is None


def test_life_of_a_living_process() -> None:
    us = ourselves()

    assert owner.life(os.uname().nodename, process.boot_id(), us.pid, us.started) == "alive"


def test_proof_of_death() -> None:
    host, boot, us = os.uname().nodename, process.boot_id(), ourselves()

    assert owner.life(host, boot, NO_PROCESS, us.started) == "dead"
    assert owner.life(host, boot, us.pid, "1") == "dead"
    assert owner.life(host, "another-boot" + boot[12:], us.pid, us.started) == "dead"


def test_no_proof_no_death() -> None:
    host, boot, us = os.uname().nodename, process.boot_id(), ourselves()
    other_namespace = boot.partition("/")[0] + "/pid:[1]"

    assert owner.life("elsewhere", boot, NO_PROCESS, "1") == "unknown"
    assert owner.life("", boot, NO_PROCESS, "1") == "unknown"
    assert owner.life(host, "", NO_PROCESS, "1") == "unknown"
    assert owner.life(host, other_namespace, NO_PROCESS, "1") == "unknown"
    assert owner.life(host, boot, 0, "1") == "unknown"
    assert owner.life(host, boot, us.pid, "") == "unknown"


@pytest.mark.parametrize(
    ("key", "agent"),
    [
        ("CLAUDECODE", "claude"),
        ("CODEX_SESSION_ID", "codex"),
        ("CODEX_THREAD_ID", "codex"),
        ("GEMINI_CLI", "gemini"),
        ("GEMINI_SESSION_ID", "gemini"),
        ("COPILOT_PROJECT_DIR", "copilot"),
        ("COPILOT_CLI", "copilot"),
        ("OPENCODE", "opencode"),
    ],
)
def test_known_agents_are_recognised(key: str, agent: str) -> None:
    assert owner.in_agent({key: "1"}) == agent
    assert owner.in_agent({key: ""}) is None


def test_it_needs_the_standard_library_alone() -> None:
    """Hooks run it under an isolated interpreter without site-packages."""
    checkout = Path(harness_lib.__file__).parents[1]
    modules = "processes.owner, place.roots, processes.process, files.atomic, files.append_log"
    imports = ", ".join(f"harness_lib.system.{module}" for module in modules.split(", "))
    program = f"import sys; sys.path.insert(0, {str(checkout)!r}); import {imports}"

    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
