"""The user at a terminal: a real pty whose program has it as its own, what it shows, and what is typed."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyte

from tests import forked
from tests.loop.environment import environment
from tests.loop.servers.script import ModelServer
from tests.waiting import PATIENCE

SLOW = Path(__file__).with_name("slow_hs.py").read_text()
# What only a program that is started has: its locale.
STARTED = "import os, sys; os.execv(sys.executable, [sys.executable, '-m', 'harness_lib.hs', *sys.argv[1:]])"
SHELL = "import os; os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>()][0-9A-B]?|\r")


class Person:
    """Sits before a program; `plain` is what was shown, without colours and the movements of the cursor.

    In a conversation, `model` is the one at the other end.
    """

    model: ModelServer

    def __init__(self, args: tuple[str, ...], cwd: Path, env: Mapping[str, str], program: str) -> None:
        self.cwd = cwd
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = forked.Forked(
            args, program=program, terminal=True, stdin=follower, stdout=follower, stderr=follower, cwd=cwd,
            env=environment({"TERM": "xterm", **env}),
        )  # fmt: skip
        os.close(follower)
        self.raw = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._screen = pyte.Screen(100, 30)
        self._terminal = pyte.Stream(self._screen)
        self._seen = 0

    @property
    def screen(self) -> str:
        """What stands on the terminal now, without the empty lines at its end."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def resizes(self, columns: int, rows: int) -> None:
        """Make the window of the terminal another size, as the user does with the mouse."""
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._screen.resize(rows, columns)

    def until(self, condition: Callable[[], object]) -> None:
        """Read until `condition` holds."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, self.screen
            self.reads()

    def has_on_screen(self, text: str, *, gone: bool = False) -> None:
        """Wait until `text` stands on the terminal, or does so no more."""
        end = time.monotonic() + PATIENCE
        while (text in self.screen) is gone:
            assert time.monotonic() < end, f"{text!r}:\n{self.screen}"
            assert self.reads() or (text in self.screen) is not gone, f"ended:\n{self.screen}"

    def rests(self, typed: str = "") -> None:
        """Wait until nothing is under way, all that came of it is drawn, and `typed` stands in the line."""
        line = f"You: {typed}".rstrip()
        self.until(lambda: "Ctrl-C: stop" not in self.screen and self.screen.endswith(line))

    @property
    def plain(self) -> str:
        return _ESCAPES.sub("", self.raw)

    def sees(self, text: str) -> None:
        """Wait until `text` is shown behind what was waited for before."""
        end = time.monotonic() + PATIENCE
        while (at := self.plain.find(text, self._seen)) < 0:
            assert time.monotonic() < end, f"{text!r} is not shown:\n{self.plain[self._seen :]}"
            assert self.reads() or self.plain.find(text, self._seen) >= 0, f"ended:\n{self.plain}"
        self._seen = at + len(text)

    def types(self, text: str, when: str = "", *, shows: str = "", then: str = "") -> None:
        """Type `text`, once `when` stands on the terminal; wait until `shows` does, or `then` is seen."""
        if when:
            self.has_on_screen(when)
        os.write(self.leader, text.encode())
        if shows:
            self.has_on_screen(shows)
        if then:
            self.sees(then)

    def hangs_up(self) -> None:
        """Close the window of the terminal."""
        os.close(self.leader)
        self.leader = -1

    def leaves(self, by: str = "") -> int:
        """Wait for the end of the program and return its exit code; `by` is typed until it is heard."""
        end = time.monotonic() + PATIENCE
        while self.reads():
            if by:
                with contextlib.suppress(OSError):
                    self.types(by)
            assert time.monotonic() < end, f"does not end:\n{self.plain[self._seen :]}"
        return self.process.wait(timeout=PATIENCE)

    def reads(self) -> bool:
        """Read what is there within a moment; return False when the terminal was left."""
        if select.select([self.leader], [], [], 0.2)[0]:
            try:
                data = os.read(self.leader, 65536)
            except OSError:
                return False
            text = self._decoder.decode(data)
            self.raw += text
            self._terminal.feed(text)
            return bool(data)
        return True


@contextlib.contextmanager
def person(*args: str, cwd: Path, env: Mapping[str, str], program: str = forked.HS) -> Iterator[Person]:
    """Let somebody sit before `hs ARGS`, or another program."""
    someone = Person(args, cwd, env, program)
    try:
        yield someone
    finally:
        if someone.process.poll() is None:
            someone.process.kill()
            someone.process.wait()
        if someone.leader >= 0:
            os.close(someone.leader)
