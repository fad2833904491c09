"""The tool `bash`: what a command gets, what is told of it, and what ends with it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness_lib.loop import processes
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from harness_lib.system.processes import process
from tests.loop.tools.conftest import Do


def test_a_command_says_its_output_and_how_it_ended(do: Do) -> None:
    assert do("bash", command="echo out; echo err >&2") == Result("out\nerr")
    assert do("bash", command="echo out; exit 3") == Result("out\n[exit status 3]", error=True)
    assert do("bash", command="kill -9 $$") == Result("[ended by signal 9]", error=True)


def test_a_command_has_nothing_to_read_and_runs_in_the_sessions_directory(do: Do, project: Path) -> None:
    assert do("bash", command="cat; pwd") == Result(str(project))


def times_out(do: Do, project: Path, command: str) -> int:
    """Let `command` take too long; return the process id that it has written into the file `pid`."""
    path = project / "pid"
    # On a busy machine a short time may be over before the command has begun.
    for seconds in (1, 10, 60):
        result = do("bash", command=command, timeout=seconds)
        assert result.error
        assert f"timed out after {seconds} seconds" in result.text
        if path.exists() and (pid := path.read_text(encoding="utf-8")):
            return int(pid)
    pytest.fail("the command does not begin")


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(do: Do, project: Path) -> None:
    pid = times_out(do, project, "sleep 300 & echo $! > pid; wait")

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    "command",
    [
        "setsid sleep 300 & echo $! > pid; wait",
        "setsid sh -c 'echo $$ > pid; sleep 300 & wait' & wait",
        "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done",
        "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 0.1; done' & wait",
    ],
    ids=["in a session of its own", "with a child", "deaf to TERM", "both"],
)
def test_all_that_a_command_has_started_ends_with_its_time(
    do: Do, project: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.5)

    pid = times_out(do, project, command)

    # It has its signal; that it is gone takes a moment.
    end = time.monotonic() + 60
    while process.alive(pid):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_is_too_long_for_the_model_is_kept_in_the_session(do: Do, run: Runtime) -> None:
    result = do("bash", command="seq 1 20000")

    assert result.text.startswith("1\n2\n")
    assert result.text.endswith("19999\n20000")
    assert len(result.text) < 60_000
    assert run.session
    (kept,) = (run.session.directory / "output").iterdir()
    assert str(kept) in result.text
    assert kept.read_text(encoding="utf-8").splitlines() == [str(number) for number in range(1, 20001)]


def test_no_credential_of_a_provider_is_in_a_commands_environment(do: Do, run: Runtime) -> None:
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY")
    run.env.update(dict.fromkeys(names, "top-secret"))

    result = do("bash", command="env")

    assert "top-secret" not in result.text
    assert "SOME_KEY=secret" in result.text


def test_a_command_may_be_longer_than_an_argument_of_the_system(do: Do, project: Path) -> None:
    text = "a line of töxt\n" * 20_000

    result = do("bash", command=f"cat > made <<'END'\n{text}END\necho $((6 * 7)) $0 $#; exit 3")

    assert result == Result("42 bash 0\n[exit status 3]", error=True)
    assert (project / "made").read_text(encoding="utf-8") == text


def test_a_program_that_cannot_be_started_leaves_no_file_open(project: Path) -> None:
    with pytest.raises(FileNotFoundError):
        processes.run(["no-such-program"], env={}, cwd=project)
