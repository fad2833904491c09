"""The session belongs to who typed the command, and nobody is called dead without proof."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.system.place import own_files
from harness_lib.system.processes import owner, process
from tests.conftest import CHECKOUT
from tests.run_to_end import run_to_end

WHO = (
    "import json, os; from harness_lib.system.processes import owner;"
    "print(json.dumps(owner.current(os.environ)._asdict()))"
)
NO_PROCESS = 2**22 + 1


def ask(*command: str, **env: str) -> dict[str, object]:
    done = run_to_end([*command, sys.executable, "-c", WHO], env={**os.environ, **env}, check=True)
    return dict(json.loads(done.stdout))


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


@pytest.mark.parametrize(
    ("name", "command"),
    [("pre-commit", "commit -q --allow-empty -m x"), ("post-checkout", "checkout -q -b side")],
)
def test_whatever_a_hook_of_git_runs_owns_nothing_nor_does_the_git_that_runs_it(
    repo: Path, name: str, command: str
) -> None:
    asks = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WHO!r}], stdout=sys.stderr)"
    hook = repo / ".git/hooks" / name
    hook.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, '-c', asks])}\n")
    hook.chmod(0o755)
    told = subprocess.run(["git", *command.split()], cwd=repo, capture_output=True, check=True).stderr

    assert json.loads(told)["pid"] == os.getpid()


def test_claude_names_its_own_process() -> None:
    claude = subprocess.Popen(["sleep", "600"])
    answer = ask(CLAUDE_PID=str(claude.pid))
    claude.kill()
    claude.wait()

    assert answer["pid"] == claude.pid


@pytest.mark.parametrize("text", ["", "0", "-1", "x", str(NO_PROCESS), "9" * 40, "²"])
def test_a_claude_pid_that_names_nobody_is_passed_over(text: str) -> None:
    assert owner.current({"CLAUDE_PID": text}) == owner.current({})


@pytest.mark.parametrize("key", ["CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "GEMINI_SESSION_ID"])
def test_the_hosts_session_names_the_worker(key: str) -> None:
    answer = owner.current({key: "0fa2-1"})

    assert (answer.worker, answer.agent_session_id) == ("0fa2-1", "0fa2-1")


def test_the_worker_id_the_user_chose_wins_and_is_one_clean_line() -> None:
    chosen = "  night\n\x1bshift 1 " + "x" * 300
    answer = owner.current({"HARNESS_WORKER_ID": chosen, "CODEX_SESSION_ID": "id"})

    assert answer.worker == ("nightshift 1 " + "x" * 300)[: owner.MAX_NAME]
    assert answer.agent_session_id == "id"


def test_a_worker_without_a_name_is_the_same_at_every_command() -> None:
    assert ask()["worker"] == ask()["worker"]
    assert ask()["agent_session_id"] is None


@pytest.mark.parametrize("session", ["", "a-session"])
def test_where_no_process_may_be_seen_none_owns_the_session(tmp_path: Path, session: str) -> None:
    """The sandboxes of agents on macOS start no `ps`, as that is set-user-ID, and hide the id of the boot."""
    for name in ("ps", "sysctl"):
        (tmp_path / name).write_text("no program")
    blind = f"from harness_lib.system.processes import process; process.has_proc = lambda: False; {WHO}"
    env = {**os.environ, "PATH": str(tmp_path), "CODEX_SESSION_ID": session}

    said = [subprocess.check_output([sys.executable, "-c", blind], env=env, text=True) for _ in range(2)]

    answer = json.loads(said[0])
    assert said[1] == said[0]
    assert (answer["pid"], answer["boot_id"]) == (0, "")
    assert answer["worker"] == session or not session


def test_no_proof_no_death() -> None:
    host, boot, us = os.uname().nodename, process.boot_id(), ourselves()
    other_namespace = boot.partition("/")[0] + "/pid:[1]"
    said: dict[str, list[tuple[str, str, int, str]]] = {
        "alive": [(host, boot, us.pid, us.started)],
        "dead": [
            (host, boot, NO_PROCESS, us.started),
            (host, boot, us.pid, "1"),
            (host, "another-boot" + boot[12:], us.pid, us.started),
        ],
        "unknown": [
            ("elsewhere", boot, NO_PROCESS, "1"),
            ("", boot, NO_PROCESS, "1"),
            (host, "", NO_PROCESS, "1"),
            (host, other_namespace, NO_PROCESS, "1"),
            (host, boot, 0, "1"),
            (host, boot, us.pid, ""),
        ],
    }
    for life, records in said.items():
        for record in records:
            assert owner.life(*record) == life, record


def test_it_needs_the_standard_library_alone() -> None:
    """Hooks run it under an isolated interpreter without site-packages."""
    modules = ("processes.owner", "place.roots", "processes.process", "fs", "flock")
    imports = ", ".join(f"harness_lib.system.{module}" for module in modules)
    program = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); import {imports}"

    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)


# -- whether the agent of a session may still be there


NOW = 2_000_000_000.0
ME, HERE = "an-agent", process.boot_id()


def _record(*, boot_id: str = HERE, host: str = "", pid: int = 0, ago: float = 60.0) -> owner.Record:
    return owner.Record(
        host=host or os.uname().nodename,
        boot_id=boot_id,
        pid=pid,
        pid_started="",
        agent_session_id=ME,
        started=NOW - ago,
    )


@pytest.mark.parametrize(
    ("record", "lives"),
    [
        pytest.param(_record(ago=29 * 60), True, id="a sandbox, silent for less than half an hour"),
        pytest.param(_record(ago=31 * 60), False, id="a sandbox, silent for longer"),
        pytest.param(_record(boot_id="", ago=31 * 60), False, id="a sandbox that hides the boot"),
        pytest.param(_record(boot_id="before/pid:[1]"), False, id="a sandbox before the last boot"),
        pytest.param(_record(host="far-away", ago=23 * 3600), True, id="another machine"),
        pytest.param(_record(host="far-away", ago=25 * 3600), False, id="another machine, for a day"),
    ],
)
def test_silence_decides_only_where_no_process_can_be_seen(
    tmp_path: Path, record: owner.Record, lives: bool
) -> None:
    assert owner.may_live(str(tmp_path), record, "", NOW) is lives


def test_a_sign_counts_from_the_moment_it_was_given(tmp_path: Path) -> None:
    owner.show_alive(str(tmp_path), ME)
    sign = own_files.note_path(str(tmp_path), "seen", ME)
    os.utime(sign, (NOW - 60, NOW - 60))

    assert owner.may_live(str(tmp_path), _record(ago=9 * 3600), "", NOW)


def test_a_sign_that_cannot_be_given_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / ".harness").write_text("in the way")

    owner.show_alive(str(tmp_path), ME)
