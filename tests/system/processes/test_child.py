"""Programs that we start: heard or given up, told beforehand, ended after a death, and keeping awake."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from harness_lib.system.processes import child, process, reaper, runner
from harness_lib.system.processes.environment import first_word, missing_command
from tests.conftest import PROGRAM
from tests.waiting import number_in, until


def test_what_a_program_says_and_how_it_ends_is_its_answer(tmp_path: Path) -> None:
    command = ["sh", "-c", "pwd; echo no >&2; cat; exit 3"]
    answer = child.ask(command, env=os.environ, cwd=tmp_path, seconds=60)
    assert answer == (3, f"{tmp_path}\n".encode(), b"no\n")


def test_who_takes_too_long_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="timed out after"):
        child.ask(["sleep", "600"], env=os.environ, cwd=tmp_path, seconds=0.1)


def test_each_line_is_heard_when_it_is_said(tmp_path: Path) -> None:
    heard: list[str] = []
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(5)"
    assert child.follow([sys.executable, "-u", "-c", code], heard.append, env=os.environ, cwd=tmp_path) == 5
    assert sorted(heard) == ["one\n", "two\n"]


def test_a_piped_child_is_told_and_heard_and_complains_elsewhere(tmp_path: Path) -> None:
    with (tmp_path / "errors").open("wb") as errors:
        process = child.start(
            ["sh", "-c", "read x; echo got $x; echo bad >&2"],
            env=os.environ,
            cwd=tmp_path,
            stdin=child.PIPE,
            output=child.PIPE,
            errors=errors,
        )
    assert process.communicate(b"this\n", timeout=60)[0] == b"got this\n"
    assert (tmp_path / "errors").read_bytes() == b"bad\n"


# -- one that nobody waits for


def run(command: str, place: Path, seconds: float = 30.0) -> int:
    log = place / "logs" / "it.log"
    return runner.start_timed(command, env=os.environ, cwd=place, log=log, seconds=seconds).wait()


@pytest.mark.parametrize(
    ("command", "code"), [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("no-such-program", 127)]
)
def test_it_ends_as_the_command_does(tmp_path: Path, command: str, code: int) -> None:
    assert run(command, tmp_path) == code


def test_what_commands_say_is_added_to_the_log(tmp_path: Path) -> None:
    run("echo one; echo two >&2", tmp_path)
    run("echo three; pwd", tmp_path)
    assert (tmp_path / "logs" / "it.log").read_text().split() == ["one", "two", "three", str(tmp_path)]


def test_one_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """Who ignores that it shall end has five seconds, as long as the slowest of these takes."""
    running = [
        runner.start_timed(
            f"{trap}sleep 600 & echo $! > {tmp_path}/{name}; wait; sleep 600",
            env=os.environ,
            cwd=tmp_path,
            log=tmp_path / "it.log",
            seconds=0.5,
        )
        for name, trap in {"obeys": "", "stubborn": "trap '' TERM; "}.items()
    ]
    assert [each.wait() for each in running] == [runner.TIMED_OUT] * 2
    left = [number_in(tmp_path / name) for name in ("obeys", "stubborn")]
    until("their end", lambda: not any(map(process.alive, left)))


# -- what a command line will start is told only where it is certain


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("pytest -q", "pytest"),
        ("  npm test -- --testPathPattern=auth ", "npm"),
        ("CI=1 A='b c' ./run.sh", "./run.sh"),
        ("pytest -k 'a; b' tests/*.py", "pytest"),
        ('"my tool" --x', "my tool"),
        ("go test ./...", "go"),
    ],
)
def test_simple_commands(command: str, word: str) -> None:
    assert first_word(command) == word


@pytest.mark.parametrize(
    "command",
    [
        *("", "   ", "A=1", "a && b", "a|b", "a; b", "a & b", "(a)", "a > f", "2>&1 a", "a\nb", "$TOOL x"),
        *("`tool` x", "a $(b)", "a 'b", "if a", "! a", "{ a", "cd sub", "[ -f x ]", "test -f x", "true"),
        *(". ./env", "./run-*.sh", "~/bin/x", "# comment", "PATH=/opt tool", "'' x"),
    ],
)
def test_what_cannot_be_told(command: str) -> None:
    assert first_word(command) is None


def test_missing_is_what_the_shell_would_not_find(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "tool"
    script.parent.mkdir()
    shutil.copy(shutil.which("true") or "", script)
    env = {**os.environ, "PATH": f"bin:{os.environ['PATH']}"}

    for command, missing in [
        ("tool x", None),
        ("bin/tool", None),
        ("./bin/none", "./bin/none"),
        ("no-such-tool -x", "no-such-tool"),
        ("no-such-tool || true", None),
    ]:
        assert missing_command(command, cwd=tmp_path, env=env) == missing
        status = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, check=False
        )
        assert (status.returncode == 127) == (missing is not None)


def test_an_environment_without_a_path_has_the_default_one(tmp_path: Path) -> None:
    assert missing_command("ls", cwd=tmp_path, env={}) is None
    assert missing_command("no-such-tool", cwd=tmp_path, env={}) == "no-such-tool"


# -- what a killed process of ours left running is ended by whoever goes on, and nothing else is


CHECKOUT = Path(__file__).resolve().parents[3]
RUN = """
import os, pathlib, sys
from harness_lib.system.processes import runner
log = pathlib.Path(sys.argv[1])
runner.run(sys.argv[2], cwd=log.parent, log=log, timeout=60, env=os.environ)
"""
KILLED_FIRST = """
import os, pathlib, signal, sys
from harness_lib.system.processes import reaper, runner

def die(log, pid):
    pathlib.Path("pid").write_text(str(pid))
    os.kill(os.getpid(), signal.SIGKILL)

reaper.note = die
log = pathlib.Path("1.log").absolute()
runner.run("echo ran > ran", cwd=log.parent, log=log, timeout=60, env=os.environ)
"""


def test_a_command_whose_runner_was_killed_is_ended(tmp_path: Path) -> None:
    """SIGKILL of the runner leaves the command running; `end_all` ends it and removes the note."""
    log = tmp_path / "1.log"
    with subprocess.Popen([sys.executable, "-c", RUN, str(log), "echo $$; sleep 60"]) as runner:
        command = number_in(log)
        runner.kill()
    assert process.alive(command)

    ended = reaper.end_all(tmp_path)

    assert not process.alive(command)
    assert ended == 1
    assert not (tmp_path / "1.running").exists()


def test_what_has_a_group_of_its_own_is_ended_with_the_command(tmp_path: Path) -> None:
    """Agents start the commands of their tools in process groups of their own."""
    log, python = tmp_path / "1.log", shlex.quote(sys.executable)
    below = f"""{python} -c "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(60)" """
    with subprocess.Popen([sys.executable, "-c", RUN, str(log), f"{below} & wait"]) as runner:
        apart = number_in(log)
        runner.kill()
    assert process.alive(apart)

    reaper.end_all(tmp_path)

    assert not process.alive(apart)


def test_a_command_whose_runner_was_killed_before_its_note_never_begins(tmp_path: Path) -> None:
    """Nobody could find it, and what it writes would come after the rollback."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_FIRST], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}
    ) as runner:
        assert runner.wait() == -signal.SIGKILL

    _wait_for_end(int((tmp_path / "pid").read_text()))
    assert not (tmp_path / "ran").exists()


def test_a_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    """A live process that merely has the noted number is not the one that was noted."""
    (tmp_path / "1.running").write_text(f"{os.getpid()} 12345 {process.boot_id()}\n")

    assert reaper.end_all(tmp_path) == 0
    assert not (tmp_path / "1.running").exists()


def test_a_note_of_another_boot_is_left(tmp_path: Path) -> None:
    """Nothing can be said about processes of another boot or pid namespace."""
    note = tmp_path / "1.running"
    note.write_text(f"{os.getpid()} 12345 another-boot/1\n")

    assert reaper.end_all(tmp_path) == 0
    assert note.exists()


def _wait_for_end(pid: int) -> None:
    def has_ended() -> bool:
        # It is nobody's child here unless this process adopts orphans.
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return not process.alive(pid)

    until(f"the end of {pid}", has_ended)


# -- keeping the machine awake, by programs of the test's own: they note that they run, and that they end


INHIBIT = """#!/bin/sh
echo "$@" > {place}/asked
for last; do :; done
echo $$ > {place}/pid
exec "$last"
"""
CAFFEINATE = """{python}import os, sys, time
open("{place}/asked", "w").write(" ".join(sys.argv[1:]))
open("{place}/.pid", "w").write(str(os.getpid()))
os.rename("{place}/.pid", "{place}/pid")
while True:
    try:
        os.kill(int(sys.argv[-1]), 0)
    except ProcessLookupError:
        break
    time.sleep(0.02)
"""
FAILS = "#!/bin/sh\nexit 1\n"
PROGRAMS = [("linux", "systemd-inhibit", INHIBIT), ("darwin", "caffeinate", CAFFEINATE)]


def install(place: Path, name: str, text: str) -> dict[str, str]:
    """Put a program on a PATH and return the environment that has it."""
    file = place / "bin" / name
    file.parent.mkdir()
    file.write_text(text.format(place=place, python=PROGRAM), encoding="utf-8")
    file.chmod(0o755)
    return {**os.environ, "PATH": f"{file.parent}:{os.environ['PATH']}"}


def pid_of(place: Path) -> int:
    file = place / "pid"
    until("what is written there", lambda: file.exists() and file.read_text().strip())
    return int(file.read_text())


@pytest.mark.parametrize(("platform", "name", "text"), PROGRAMS, ids=lambda each: each[:15])
def test_it_runs_meanwhile_and_not_after(tmp_path: Path, platform: str, name: str, text: str) -> None:
    env = install(tmp_path, name, text)
    with runner.keeping_awake(env, "agents are at work", platform=platform):
        pid = pid_of(tmp_path)
        assert process.alive(pid)
    assert not process.alive(pid)
    asked = (tmp_path / "asked").read_text().strip()
    if platform == "darwin":
        assert asked == f"-i -w {os.getpid()}"
    else:
        assert asked == "--what=idle:sleep --who=harness --why=agents are at work --mode=block cat"


@pytest.mark.parametrize(("platform", "name", "text"), PROGRAMS, ids=lambda each: each[:15])
def test_it_ends_with_us_when_we_are_killed(tmp_path: Path, platform: str, name: str, text: str) -> None:
    env = install(tmp_path, name, text)
    code = (
        "import os, time; from harness_lib.system.processes import runner\n"
        f"with runner.keeping_awake(os.environ, 'why', platform={platform!r}): time.sleep(600)"
    )
    us = subprocess.Popen([sys.executable, "-c", code], env=env)
    pid = pid_of(tmp_path)
    us.send_signal(signal.SIGKILL)
    us.wait()
    until("its end", lambda: not process.alive(pid))


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_without_such_a_program_nothing_happens(tmp_path: Path, platform: str) -> None:
    with runner.keeping_awake({"PATH": str(tmp_path)}, "why", platform=platform):
        pass


@pytest.mark.parametrize(("platform", "name"), [row[:2] for row in PROGRAMS])
def test_one_that_fails_at_once_is_no_trouble(tmp_path: Path, platform: str, name: str) -> None:
    with runner.keeping_awake(install(tmp_path, name, FAILS), "why", platform=platform):
        pass


def test_one_that_cannot_be_started_is_no_trouble(tmp_path: Path) -> None:
    env = install(tmp_path, "systemd-inhibit", "#!/no/such/interpreter\n")
    with runner.keeping_awake(env, "why", platform="linux"):
        pass
