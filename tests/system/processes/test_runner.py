"""A command runs to its end or its deadline, nothing of it is left, and what it prints is kept to a size."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from harness_lib.system.clock import Clock
from harness_lib.system.processes import child, process, runner
from harness_lib.system.processes.runner import Finished

LONG = 60.0


class LateOnceUp(Clock):
    """The deadline has passed as soon as the command has written `file`."""

    def __init__(self, file: Path) -> None:
        self.file, self.asked = file, 0

    def monotonic(self) -> float:
        self.asked += 1
        # The first two answers say when the command and its time began: it may be up before the second one.
        is_late = self.asked > 2 and is_written(self.file)
        return super().monotonic() + (2 * LONG if is_late else 0)


def is_written(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def run(command: str, log: Path, **options: Any) -> Finished:
    chosen = {"timeout": LONG, "env": dict(os.environ), **options}
    return runner.run(command, cwd=log.parents[2], log=log, **chosen)


def pid_in(file: Path) -> int:
    return int(file.read_text(encoding="ascii"))


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group is ended")


def test_a_command_that_passes(log: Path) -> None:
    finished = run("echo out; echo err >&2", log)

    assert finished.ok
    assert (finished.returncode, finished.timed_out, finished.too_loud) == (0, False, False)
    assert finished.tail == "out\nerr"
    assert log.read_text() == "out\nerr\n"


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("no-such-command-x", 127), ("kill -9 $$", -9)])
def test_a_command_that_fails(log: Path, command: str, code: int) -> None:
    finished = run(command, log)

    assert not finished.ok
    assert finished.returncode == code


def test_it_runs_where_and_with_what_it_is_told_and_has_no_input(log: Path) -> None:
    """A prompt must end the check, not wait for the user who is not there."""
    command = "pwd; echo $ONLY $HOME; cat; read answer || echo nobody"
    finished = run(command, log, env={"ONLY": "this", "PATH": os.environ["PATH"]})

    assert finished.tail == f"{log.parents[2]}\nthis\nnobody"


def test_a_folder_that_is_gone_is_named(log: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        runner.run("true", cwd=tmp_path / "gone", log=log, timeout=LONG, env=os.environ)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file"):
        runner.run("true", cwd=tmp_path / "file", log=log, timeout=LONG, env=os.environ)


@pytest.fixture
def up(log: Path) -> Path:
    """Return the file into which a command writes that it runs, or its number."""
    return log.parents[2] / "up"


class TestDeadline:
    """TERM to the group, some grace, KILL."""

    def test_it_ends_the_command_and_keeps_its_output(self, log: Path, up: Path) -> None:
        finished = run("echo begun; echo x > up; sleep 600", log, clock=LateOnceUp(up))

        assert (finished.returncode, finished.timed_out, finished.ok) == (None, True, False)
        assert finished.tail == "begun"

    def test_a_command_may_tidy_up(self, log: Path, up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The shell dies of TERM at once; what it runs is given its time."""
        monkeypatch.setattr(child, "GRACE_SECONDS", LONG)
        tidy = "trap 'sleep 0.2; echo tidied; exit' TERM; echo x > up; while :; do sleep 0.05; done"
        finished = run(f'sh -c "{tidy}"; true', log, clock=LateOnceUp(up))

        assert finished.timed_out
        assert finished.tail.splitlines()[-1] == "tidied"

    @pytest.mark.parametrize(
        ("command", "grace"),
        [
            ("trap '' TERM; echo $$ > up; while :; do sleep 1; done", 0.1),
            ("echo $$ > up; kill -STOP $$; sleep 600", LONG),
        ],
        ids=["one that ignores TERM", "a stopped one"],
    )
    def test_none_outlives_it(
        self, log: Path, up: Path, command: str, grace: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(child, "GRACE_SECONDS", grace)
        finished = run(command, log, clock=LateOnceUp(up))

        assert finished.timed_out
        assert not process.alive(pid_in(up))

    def test_all_of_its_children_end(self, log: Path, up: Path) -> None:
        run("sleep 600 & echo $! > up; sleep 600", log, clock=LateOnceUp(up))

        assert not process.alive(pid_in(up))

    def test_it_passes_by_the_clock(self, log: Path) -> None:
        assert run("sleep 600", log, timeout=0.05).timed_out


class TestNothingIsLeft:
    """Also when the command passed."""

    def test_a_background_child(self, log: Path, up: Path) -> None:
        """One that holds the output open does not make us wait for it."""
        finished = run("(trap '' TERM HUP; sleep 600; echo late) & echo $! > up; echo done", log)

        assert (finished.ok, finished.tail) == (True, "done")
        assert not process.alive(pid_in(up))

    @linux_only
    def test_a_daemon_with_children_of_its_own(self, log: Path, up: Path) -> None:
        family = "setsid sh -c 'setsid sleep 600 & echo $! > up; sleep 600' &"

        assert run(f"{family} until [ -s up ]; do sleep 0.02; done", log).ok
        assert not process.alive(pid_in(up))

    @linux_only
    def test_children_that_are_not_its_own_live_on(self, log: Path) -> None:
        """A server that this process started earlier is none of the command's business."""
        pid = os.spawnlp(os.P_NOWAIT, "setsid", "setsid", "sleep", "600")
        try:
            assert run("true", log).ok
            assert process.alive(pid)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def test_no_zombie(self, log: Path) -> None:
        before = process.children(os.getpid())

        run("for i in 1 2 3; do (sleep 0.01 &) ; done; setsid true & sleep 0.1", log)

        assert process.children(os.getpid()) == before


class TestTick:
    """A long check renews a lease, and ends when the lease is lost."""

    def test_it_is_called_while_the_command_runs(self, log: Path) -> None:
        go, calls = log.parents[2] / "go", []

        def tick() -> bool:
            calls.append(1)
            if len(calls) == 3:
                go.touch()
            return True

        assert run("until [ -f go ]; do sleep 0.02; done", log, on_tick=tick, tick=0.02).ok
        assert len(calls) >= 3

    def test_false_ends_the_command(self, log: Path, up: Path) -> None:
        finished = run("echo $$ > up; sleep 600", log, on_tick=lambda: not is_written(up), tick=0.02)

        assert (finished.returncode, finished.timed_out, finished.too_loud) == (None, False, False)
        assert not process.alive(pid_in(up))

    @pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
    def test_an_error_ends_the_command_first(self, log: Path, up: Path, error: type[BaseException]) -> None:
        def tick() -> bool:
            if is_written(up):
                raise error
            return True

        with pytest.raises(error):
            run("echo $$ > up; sleep 600", log, on_tick=tick, tick=0.02)

        assert not process.alive(pid_in(up))


def _from(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


class InterruptAt:
    """Ctrl-C before the `step`-th line that Python executes while it waits for the command."""

    def __init__(self, step: int) -> None:
        self._left = step

    def __call__(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        """Follow what is called while the command is waited for."""
        return self._line if any(each.f_code is child.wait.__code__ for each in _from(frame)) else None

    def _line(self, _frame: FrameType, event: str, _arg: object) -> Callable[..., Any] | None:
        self._left -= event == "line"
        if self._left == 0:
            raise KeyboardInterrupt
        return self._line


def _is_interrupted_at(step: int, log: Path) -> bool:
    tracing = sys.gettrace()
    sys.settrace(InterruptAt(step))
    try:
        run("sleep 0.05", log)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(tracing)
    return False


def test_an_interrupt_at_any_step_of_the_waiting_ends_the_command(log: Path) -> None:
    step = 1
    while _is_interrupted_at(step, log):
        assert not list(log.parent.glob("*.running"))
        step += 1
    # The waiting goes round once, at least.
    assert step > 20


def test_it_reads_what_it_is_given_whoever_takes_files_away(log: Path) -> None:
    assert run(f"rm -r {log.parent}; cat", log, stdin=b"a brief\n").tail == "a brief"
    assert run("cat", log).tail == ""


# -- what it prints


def test_an_older_log_is_replaced(log: Path) -> None:
    run("echo old old old", log)
    run("echo new", log)

    assert log.read_text() == "new\n"


class TestLoud:
    """A check that prints for ever must not fill the disk."""

    def test_one_that_ends_before_we_look_was_too_loud_as_well(self, log: Path) -> None:
        assert run("head -c 5000 /dev/zero", log, max_log=4999).too_loud
        assert run("head -c 5000 /dev/zero", log, max_log=5000).ok

    @pytest.mark.parametrize("away", ["rm {}", "rm -r $(dirname {})", "rm {0}; echo else > {0}"])
    def test_what_it_prints_is_kept_where_somebody_removes_its_log(self, log: Path, away: str) -> None:
        heard: list[bytes] = []
        reading: list[int] = []

        finished = run(
            f"{away.format(log)}; echo printed",
            log,
            at_start=reading.append,
            at_end=lambda: heard.append(os.pread(reading[0], 99, 0)),
        )

        assert (finished.ok, finished.tail, heard) == (True, "printed", [b"printed\n"])
        assert log.read_text() == "printed\n"

    def test_it_is_stopped_where_somebody_has_removed_its_log(self, log: Path) -> None:
        assert run(f"rm {log}; yes", log, max_log=100_000).too_loud


class TestTail:
    """What an agent reads of a failure is short and plain."""

    def test_the_last_twenty_lines(self, log: Path) -> None:
        assert run("seq 100", log).tail == "\n".join(map(str, range(81, 101)))

    def test_at_most_two_thousand_characters(self, log: Path) -> None:
        assert run("head -c 90000 /dev/zero | tr '\\0' x", log).tail == "x" * runner.TAIL_CHARS

    @pytest.mark.parametrize(
        ("output", "plain"),
        [
            (b"\x1b[31mred\x1b[0m \x1b]0;title\x07end\n", "red end"),
            (b"10%\r20%\r100%\r\ndone\r\n", "100%\ndone"),
            (b"caf\xe9 \xc3\xa9\n", "caf\ufffd \u00e9"),
            (b"a\tb\x00\x08c\n", "a   bc"),
            (b"\xe2\x80\xaegnp\n", "gnp"),
            (b"\n\n", ""),
        ],
    )
    def test_as_a_terminal_would_show_it(self, log: Path, output: bytes, plain: str) -> None:
        log.parent.mkdir(parents=True)
        log.write_bytes(output)

        assert runner.tail_of(log) == plain


def test_of_a_long_log_both_ends_are_kept_with_a_word_on_what_was_between(log: Path) -> None:
    middle = 3 * runner.KEPT_BYTES
    heard = []
    loud = f"echo first; head -c {middle} /dev/zero | tr '\\0' 'm'; echo; echo last"

    ended = run(loud, log, at_end=lambda: heard.append(log.stat().st_size))

    kept = log.read_bytes()
    assert heard == [middle + len("first\n\nlast\n")], "what was printed is read before it is cut"
    assert kept.startswith(b"first\nm")
    assert kept.endswith(b"m\nlast\n")
    assert f"\n[harness left out {heard[0] - 2 * runner.KEPT_BYTES} bytes here]\n".encode() in kept
    assert len(kept) < 2 * runner.KEPT_BYTES + 100
    assert ended.tail.endswith("last")


def test_a_log_that_its_command_made_a_link_is_not_followed(log: Path) -> None:
    other = log.parents[2] / "other"
    other.touch()
    os.truncate(other, 3 * runner.KEPT_BYTES)

    ended = run(f"ln -sf {other} {log}; echo printed", log)

    assert other.stat().st_size == 3 * runner.KEPT_BYTES
    assert (ended.tail, log.is_symlink()) == ("printed", False)
