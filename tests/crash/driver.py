"""Agents that type verbs, and verbs that die where a test says.

`python -m tests.crash.driver SOCKET PROJECT` waits for connections. Each is one agent: a process of its own,
whose children are the verbs it types. It ends with its connection, and is then as dead as a crashed agent.
The command line is imported once and forked, because an interpreter costs more than most verbs.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from harness_lib.cli.main import main
from harness_lib.state import schema
from tests.crash import effects
from tests.crash.effects import Place

DIED = 73
END = "end"


class Watch:
    """Sees every effect of this process; notes them, or ends the process at the one that it waits for."""

    def __init__(self, place: Place, die_at: tuple[str, int, str] | None, *, noting: bool) -> None:
        self.noted: list[dict[str, object]] = []
        self._place = place
        self._die_at = die_at
        self._noting = noting
        self._count: Counter[str] = Counter()
        self._leave: list[Path] = []
        self._doomed = False
        self._busy = False

    def install(self) -> None:
        sys.addaudithook(self.event)
        real_write, real_communicate = os.write, subprocess.Popen.communicate

        def write(descriptor: int, data: bytes | memoryview) -> int:
            name = effects.of_write(self._place, descriptor)
            if name is not None and self._reached(name, []) == "half":
                real_write(descriptor, bytes(data)[: len(data) // 2])
                os._exit(DIED)
            return real_write(descriptor, data)

        def communicate(child: subprocess.Popen[bytes], *args: Any, **options: Any) -> tuple[bytes, bytes]:
            if self._doomed:
                os.killpg(0, signal.SIGKILL)
            return real_communicate(child, *args, **options)

        os.write = write  # type: ignore[assignment]
        subprocess.Popen.communicate = communicate  # type: ignore[method-assign,assignment]

    def event(self, event: str, args: tuple[Any, ...]) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            name = effects.of_event(self._place, event, args)
            if name is not None:
                is_git = event == "subprocess.Popen" and args[1][0] == "git"
                locks = effects.git_locks(args[1], args[3], args[2], self._place.git_dir) if is_git else []
                self._reached(name, locks)
        finally:
            self._busy = False

    def _reached(self, name: str, locks: list[Path]) -> str | None:
        """Note the effect, or die before it; return how to die in the middle of it, if that is wanted."""
        if self._leave:
            _make(self._leave)
            os._exit(DIED)
        self._count[name] += 1
        number = self._count[name]
        if self._noting:
            self._note(name, number, locks)
        if self._die_at is None or self._die_at[:2] != (name, number):
            return None
        how = self._die_at[2]
        if how == "locked":
            _make(locks)
        if how in {"before", "locked"}:
            os._exit(DIED)
        self._doomed = how == "killed"
        self._leave = locks[-1:] if how == "ended" else []
        return how

    def _note(self, name: str, number: int, locks: list[Path]) -> None:
        looks = self._place.fingerprint()
        self.noted.append({"name": name, "number": number, "looks": looks, "locks": len(locks)})

    def end(self) -> None:
        """Say that the verb has done all it does: the last point of all."""
        self._busy = True
        self._reached(END, [])


def _make(locks: list[Path]) -> None:
    for lock in locks:
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()


def _verb(place: Place, order: dict[str, Any], answers: tuple[IO[str], IO[str], IO[str]]) -> None:
    """Be the process of one verb; never returns."""
    code = 70
    out, err, notes = answers
    try:
        os.setpgid(0, 0)
        os.environ.clear()
        os.environ.update(order["env"])
        os.chdir(order["cwd"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        watch = Watch(place, tuple(order["die_at"]) if order["die_at"] else None, noting=order["noting"])
        if order["die_at"] or order["noting"]:
            watch.install()
        code = main(order["argv"])
        watch.end()
        json.dump(watch.noted, notes)
        for stream in (sys.stdout, sys.stderr, notes):
            stream.flush()
    except BaseException:  # noqa: BLE001 - a fork must never return into the loop of its parent
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _type(place: Place, order: dict[str, Any]) -> dict[str, object]:
    """Run one verb in a child, and return how it ended and what it said."""
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
        tempfile.TemporaryFile("w+") as notes,
    ):
        pid = os.fork()
        if pid == 0:
            _verb(place, order, (out, err, notes))
        _, status = os.waitpid(pid, 0)
        for stream in (out, err, notes):
            stream.seek(0)
        code = os.waitstatus_to_exitcode(status)
        noted = json.loads(notes.read() or "[]")
        return {"code": code, "out": out.read(), "err": err.read(), "noted": noted}


def _agent(place: Place, connection: socket.socket) -> None:
    """Be one agent until the connection ends; never returns."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with connection, connection.makefile("rw", encoding="utf-8") as talk:
            print(json.dumps(os.getpid()), file=talk, flush=True)
            for line in talk:
                print(json.dumps(_type(place, json.loads(line))), file=talk, flush=True)
    finally:
        os._exit(0)


def serve(path: str, place: Place, ready: Callable[[], None]) -> None:
    """Fork an agent for each connection, until standard input ends (the test is over)."""
    # Dead agents are collected by the kernel: a zombie is in nobody's way, but it would not be gone.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        ready()
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _agent(place, connection)
            connection.close()


if __name__ == "__main__":
    # What is imported late would be imported in every fork again.
    schema.problems({"tasks": []})
    serve(sys.argv[1], Place(Path(sys.argv[2])), lambda: print("ready", flush=True))  # noqa: T201 (the test waits)
