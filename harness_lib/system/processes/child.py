"""Start programs, wait for them up to their limits, and end them with every process that they started.

A process can leave its group (`setsid`), so on Linux harness asks to become the parent of every orphan below
it (PR_SET_CHILD_SUBREAPER) and finds daemons among its children. Elsewhere only the group is ended.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal, NamedTuple

from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.processes import process

Child = subprocess.Popen[bytes]
PIPE, NOTHING, OUTPUT = subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT

Ending = Literal["ended", "timeout", "loud", "told"]

_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.25
_PAUSE = 0.01
# An unkillable process (in a dead network mount) must not hold us for ever.
_PATIENCE = 5.0
# Waits for a line on standard error, which is a pipe until then.
_HELD = 'read -r _ <&2 && exec "$@" 2>&1'


class Answer(NamedTuple):
    """What a program has printed, and how it has ended."""

    code: int
    output: str
    complaint: str


# Calls what starts a child, perhaps in a thread that is confined, and returns the child.
Starter = Callable[[Callable[[], Child]], Child]


class Command(NamedTuple):
    """What to start: arguments, an environment, and how it is started where not in the ordinary way."""

    argv: Sequence[str]
    env: Mapping[str, str]
    starter: Starter | None = None


def ask(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, seconds: float) -> Answer:
    """Run `command` to its end. Raises OSError: TimeoutError if it takes longer than `seconds`."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(str(error)) from error
    return Answer(done.returncode, done.stdout, done.stderr)


def follow(command: Sequence[str], hear: Callable[[str], None], *, env: Mapping[str, str], cwd: Path) -> int:
    """Run `command`, pass each line that it prints to `hear`, and return its exit code. Raises OSError."""
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            hear(line)
    return child.returncode


def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path,
    stdin: IO[bytes] | int = NOTHING,
    output: IO[bytes] | int = NOTHING,
    errors: IO[bytes] | int | None = OUTPUT,
    inherited: Sequence[int] = (),
) -> Child:
    """Start `command` as the leader of a session, and so of a process group, of its own. Raises OSError.

    Its streams are files, NOTHING or a PIPE; `errors` may also be its OUTPUT, or None for our own. The
    descriptors `inherited` stay open in it.
    """
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=stdin,
        stdout=output,
        stderr=errors,
        pass_fds=tuple(inherited),
        start_new_session=True,
    )


def start_noted(
    command: Command,
    note: Callable[[Child], None],
    *,
    cwd: str | Path,
    stdin: IO[bytes] | int = NOTHING,
    output: IO[bytes] | int,
) -> Child:
    """Start `command` like `start`, but let it begin only when `note` has returned for it.

    So nothing runs that is not noted, even if this process is killed meanwhile. Its output and errors go to
    `output`. Raises OSError, and what its `starter` raises.
    """
    held, release = os.pipe()
    # Whoever takes it out closes it: after an interrupt of this thread, another one may still need it.
    ends = [held]

    def start_held() -> Child:
        held_end = ends.pop()
        try:
            # Not the first shell of the PATH: no program of an agent may wait there.
            argv = ("/bin/sh", "-c", _HELD, "sh", *command.argv)
            return start(argv, env=command.env, cwd=cwd, stdin=stdin, output=output, errors=held_end)
        finally:
            os.close(held_end)

    try:
        child = command.starter(start_held) if command.starter else start_held()
        note(child)
        os.write(release, b"\n")
    finally:
        # What was not released ends by itself.
        os.close(release)
        while ends:
            os.close(ends.pop())
    return child


def wait(
    child: Child,
    output: int,
    *,
    timeout: float = float("inf"),
    limit: int,
    tick: float = _POLL_SECONDS,
    on_tick: Callable[[], bool] = lambda: True,
    clock: Clock = SYSTEM,
) -> Ending:
    """Wait for the end of `child`, or for a reason to end it; return which came.

    The reasons: `timeout` seconds are over, the file of its `output`, a descriptor, has more than `limit`
    bytes, or `on_tick`, which is called about every `tick` seconds, returns False.
    """
    now = clock.monotonic()
    deadline, next_tick = now + timeout, now + tick
    try:
        # Popen.wait(timeout) polls with growing pauses; this wakes up at once where the system has it.
        handle = os.pidfd_open(child.pid)  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError):
        handle = None
    try:
        while True:
            soonest = min(deadline, next_tick) - clock.monotonic()
            has_ended = _ends_within(child, handle, min(_POLL_SECONDS, max(0.001, soonest)))
            now = clock.monotonic()
            if not has_ended and now >= deadline:
                return "timeout"
            if os.fstat(output).st_size > limit:
                return "loud"
            if has_ended:
                return "ended"
            if now >= next_tick:
                next_tick = now + tick
                if not on_tick():
                    return "told"
    finally:
        if handle is not None:
            os.close(handle)


def _ends_within(child: Child, handle: int | None, seconds: float) -> bool:
    if handle is not None:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return False
    try:
        child.wait(seconds if handle is None else None)
    except subprocess.TimeoutExpired:
        return False
    return True


class Tree:
    """The process groups that the process `leader` and its descendants lead, as they are now.

    A process whose parent has ended is no longer found as a descendant: refresh before that.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._groups = {leader}
        self.refresh()

    def refresh(self) -> None:
        """Add the groups that have been made since."""
        living = list(process.everybody())
        members = {self._leader}
        while more := {each.pid for each in living if each.parent in members} - members:
            members |= more
        self._groups |= {each.pid for each in living if each.pid in members and each.pid == each.group}

    def signal(self, number: int) -> bool:
        """Send signal `number` to all of them; return whether any has a member."""
        # An empty group is forgotten: another process may get its number.
        self._groups = {group for group in self._groups if signal_group(group, number)}
        return bool(self._groups)

    def kill(self, clock: Clock = SYSTEM) -> None:
        """Send KILL to all of them, and wait until they are gone, but no longer than _PATIENCE.

        What one of them is writing at this moment is still written.
        """
        self.signal(signal.SIGKILL)
        deadline = clock.monotonic() + _PATIENCE
        while clock.monotonic() < deadline:
            if not any(each.group in self._groups for each in process.everybody()):
                return
            clock.sleep(_PAUSE)


def end_tree(leader: int, is_over: Callable[[], bool], *, clock: Clock = SYSTEM) -> None:
    """Send TERM to the tree of `leader`, and KILL to what is left after GRACE_SECONDS.

    The wait ends earlier once `is_over` says that the leader has ended and no group has a member.
    """
    deadline = clock.monotonic() + GRACE_SECONDS
    tree = Tree(leader)
    tree.signal(signal.SIGTERM)
    # A stopped process acts on TERM only when it continues.
    tree.signal(signal.SIGCONT)
    try:
        while clock.monotonic() < deadline:
            if is_over() and not tree.signal(0):
                return
            clock.sleep(_PAUSE)
        tree.refresh()
    finally:
        # Also after an interrupt: at once, then.
        tree.signal(signal.SIGKILL)


def end(child: Child) -> None:
    """End the tree of `child`, and collect it."""
    try:
        end_tree(child.pid, lambda: child.poll() is not None)
    except BaseException:
        # An interrupt, perhaps before any signal was sent: nothing would end it.
        Tree(child.pid).signal(signal.SIGKILL)
        raise
    finally:
        child.wait()


@contextmanager
def adopting() -> Iterator[frozenset[int]]:
    """Become the parent of orphans inside the block; yield the children that existed before.

    The flag belongs to the whole process: one run at a time.
    """
    if not sys.platform.startswith("linux"):
        yield frozenset()
        return
    import ctypes  # noqa: PLC0415 (only who runs a check or an agent pays for it)

    libc = ctypes.CDLL(None, use_errno=True)
    before = ctypes.c_int(0)
    libc.prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield frozenset(process.children(os.getpid()))
    finally:
        libc.prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


def signal_group(group: int, number: int) -> bool:
    """Send signal `number` to the process group `group`; return whether it has a member."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # On macOS also for zombies; elsewhere a process that became another user's and cannot be ended
        # anyway.
        return False
    return True


def reap(group: int) -> None:
    """Collect the dead children of this process in `group`, so that they no longer count as members."""
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def collect(child: Child) -> None:
    """Wait for the end of `child`, also after an interrupt.

    An interrupt between two steps of `wait(timeout)` or `poll()` leaves their lock taken, and `wait()` would
    never return.
    """
    if child.returncode is None:
        try:
            child.returncode = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        except ChildProcessError:
            # It was collected right before the interrupt; its exit code is lost.
            child.returncode = -signal.SIGKILL


def end_orphans(known: frozenset[int], clock: Clock) -> None:
    """Kill and collect the children that this process got since `known`, until no new one appears.

    A child in this process's session was started by harness: what a command starts cannot join the session.
    """
    if not sys.platform.startswith("linux"):
        return
    deadline = clock.monotonic() + _PATIENCE
    ours = (None, os.getsid(0))
    while orphans := [
        pid for pid in process.children(os.getpid()) if pid not in known and _session(pid) not in ours
    ]:
        for pid in orphans:
            # One that belongs to another user cannot be ended.
            with suppress(ProcessLookupError, PermissionError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
        if clock.monotonic() >= deadline:
            return
        clock.sleep(_PAUSE)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
