"""The session belongs to who typed the command; what is said about processes is true of real ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness_lib
from harness_lib.system.place import session_notes
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


def test_it_needs_the_standard_library_alone() -> None:
    """Hooks run it under an isolated interpreter without site-packages."""
    checkout = Path(harness_lib.__file__).parents[1]
    modules = "processes.owner, place.roots, processes.process, files.atomic, flock"
    imports = ", ".join(f"harness_lib.system.{module}" for module in modules.split(", "))
    program = f"import sys; sys.path.insert(0, {str(checkout)!r}); import {imports}"

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
    sign = session_notes.path(str(tmp_path), "seen", ME)
    os.utime(sign, (NOW - 60, NOW - 60))

    assert owner.may_live(str(tmp_path), _record(ago=9 * 3600), "", NOW)


def test_a_sign_that_cannot_be_given_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / ".harness").write_text("in the way", encoding="utf-8")

    owner.show_alive(str(tmp_path), ME)


# -- what is said about processes is true of real ones


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "60"])
    yield child
    child.kill()
    child.wait()


def zombie() -> subprocess.Popen[bytes]:
    child = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as stream:
        stream.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child


def test_look_tells_who_started_it(sleeper: subprocess.Popen[bytes]) -> None:
    started = process.find(sleeper.pid)

    assert started is not None
    assert (started.pid, started.parent, Path(started.name).name) == (sleeper.pid, os.getpid(), "sleep")


def test_start_is_the_same_at_every_look(sleeper: subprocess.Popen[bytes]) -> None:
    assert process.find(sleeper.pid) == process.find(sleeper.pid)


def test_a_name_may_hold_brackets_and_spaces(tmp_path: Path) -> None:
    program = tmp_path / "a) (b c"
    shutil.copy(shutil.which("sleep") or "", program)
    child = subprocess.Popen([program, "60"])
    try:
        named = process.find(child.pid)
    finally:
        child.kill()
        child.wait()

    assert named is not None
    assert Path(named.name).name == "a) (b c"
    assert named.parent == os.getpid()


def test_a_zombie_is_gone() -> None:
    child = zombie()
    try:
        assert process.find(child.pid) is None
        assert not process.alive(child.pid)
        assert child.pid in process.children(os.getpid())
    finally:
        child.wait()


def test_a_stopped_process_lives(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.send_signal(signal.SIGSTOP)

    assert process.alive(sleeper.pid)


@pytest.mark.parametrize("pid", [NO_PROCESS, 10**30, 0, -1])
def test_what_no_process_has_is_dead(pid: int) -> None:
    assert not process.alive(pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_process_we_may_not_signal_is_alive(sleeper: subprocess.Popen[bytes]) -> None:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setuid(65534)
            status = 0 if process.alive(sleeper.pid) else 1
        finally:
            os._exit(status)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_ancestors_begin_with_our_parent() -> None:
    line = list(process.ancestors())

    assert line[0].pid == os.getppid()
    assert [above.pid for above in line[1:]] == [below.parent for below in line[:-1]]


def test_ancestors_of_another(sleeper: subprocess.Popen[bytes]) -> None:
    assert [above.pid for above in process.ancestors(sleeper.pid)][:2] == [os.getpid(), os.getppid()]
    assert list(process.ancestors(NO_PROCESS)) == []


def test_children_are_found(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in process.children(os.getpid())
    assert process.children(sleeper.pid) == []


def test_who_has_no_child_looks_at_nobody() -> None:
    """On a machine with thousands of processes that takes longer than the command whose orphans are meant."""
    program = (
        "import os, subprocess, sys; from harness_lib.system.processes import process; "
        "looked = []; real = process._parents; "
        "process._parents = lambda: looked.append(1) or real(); "
        "me = os.getpid(); none = process.children(me); assert not looked; "
        "child = subprocess.Popen([sys.executable, '-c', 'raise SystemExit(3)']); "
        "os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT); "
        "print(none, process.children(me) == [child.pid], child.wait(), process.children(me))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True 3 []\n"


def test_boot_id_is_the_same_in_every_process() -> None:
    program = "from harness_lib.system.processes import process; print(process.boot_id())"
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert process.boot_id()
    assert printed.strip() == process.boot_id()


def test_ps_agrees_with_proc(sleeper: subprocess.Popen[bytes]) -> None:
    """Without /proc (macOS) we ask ps: that way is tested wherever there is a `ps`."""
    if shutil.which("ps") is None:
        pytest.skip("no ps")
    fields = process._ps_fields(sleeper.pid)

    assert fields is not None
    assert fields[1] == str(os.getpid())
    assert fields[3] == "sleep"
    assert process._ps_fields(NO_PROCESS) is None
