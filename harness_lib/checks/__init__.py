"""What a check of a task is, where it runs and what it says; and which one a task has.

All code that runs, trusts or fingerprints a check asks the result of `check_of`, so that a second kind
is a file beside `shell_run`, a line here and its field in `harness_lib/records/task.py`.
Standard library only: hooks read the list with it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from harness_lib import sha256
from harness_lib.text import Strings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness_lib.system.clock import Clock
    from harness_lib.task import Task


class Watch(NamedTuple):
    """What is asked about every `seconds` while a check runs: it is ended if `goes_on` returns False."""

    goes_on: Callable[[], bool]
    seconds: float


UNWATCHED = Watch(lambda: True, 60.0)


class Worktree(NamedTuple):
    """Where a check runs: the top of the work tree, its environment, and the file for its output.

    `first`: what comes first in its search paths, by variable.
    """

    top: Path
    env: Mapping[str, str]
    log: Path
    clock: Clock
    watch: Watch = UNWATCHED
    first: Mapping[str, Strings] = MappingProxyType({})


class Check(Protocol):
    """The check of a task, which decides whether it is done."""

    @property
    def text(self) -> str | None:
        """Its text for people; None without a check."""

    @property
    def cwd(self) -> str | None:
        """Where it runs, relative to the top of the work tree; None for the top."""

    @property
    def is_given(self) -> bool:
        """Whether the task has a check; without one it cannot be completed."""

    def fingerprint(self) -> str:
        """Return `sha256:…` of the check and its directory. No attempt may change it."""

    def commands(self) -> tuple[tuple[str | None, str | None], ...]:
        """Return the shell commands and their directories, which the user must trust."""

    def run(self, worktree: Worktree) -> Checked:
        """Run it once. Raises ConfigError if it is not valid."""


Verdict = Literal["pass", "TEST_FAIL", "TIMEOUT", "ENV_SETUP"]


class Checked(NamedTuple):
    """The result of a check: the verdict, one line why, the end of its output, and its log.

    `gist` is the most useful part of the output, in a line; `without` names the variables that it was not
    given, or not whole; `seconds` is how long the check took. `held_out`: it is the result of a held-out
    check.
    """

    verdict: Verdict
    message: str
    tail: str
    log: Path
    gist: str = ""
    without: Strings = ()
    seconds: float = 0.0
    held_out: bool = False

    @property
    def passed(self) -> bool:
        """Whether the task is done."""
        return self.verdict == "pass"

    def failure(self) -> str:
        """Return one line for the error log: why it failed, and the gist of its output."""
        return f"{self.message} {self.gist}".strip()

    def excerpt(self) -> str:
        """Return the useful part of the output, in several lines."""
        from harness_lib.rules import runners  # noqa: PLC0415 (hooks)
        from harness_lib.system.processes import runner  # noqa: PLC0415 (hooks)

        return runners.of(runner.ends_of(self.log)) if self.tail else ""


class ShellCheck(NamedTuple):
    """A check that is a command for the shell: exit code 0 exactly when the task is done.

    The code that runs a command is loaded only when a check runs: hooks read lists and run no check.
    """

    task: str
    text: str | None
    cwd: str | None
    timeout_seconds: int

    @property
    def is_given(self) -> bool:
        """Whether there is a command that is not blank."""
        return self.text is not None and bool(self.text.strip())

    def fingerprint(self) -> str:
        """Return `sha256:…` of the command and its directory."""
        # Neither may contain NUL. A lone surrogate, which JSON can carry, has no UTF-8 of its own.
        text = f"{self.text or ''}\0{self.cwd or ''}"
        return f"sha256:{sha256.digest(text.encode('utf-8', 'surrogatepass'))}"

    def commands(self) -> tuple[tuple[str | None, str | None], ...]:
        """Return the command and its directory as written, even if empty."""
        return ((self.text, self.cwd),)

    def run(self, worktree: Worktree) -> Checked:
        """Run the command. Raises ConfigError if its directory is not in the work tree."""
        from harness_lib.checks import shell_run  # noqa: PLC0415 (hooks)

        return shell_run.run(self, worktree)


def check_of(task: Task) -> Check:
    """Return the check of `task`; for a task without a check, an empty one (`is_given` is false)."""
    asked = task.validation
    return ShellCheck(task.id, asked.command, asked.cwd, asked.timeout_seconds)


def held_out(task: Task) -> str:
    """Return what identifies the held-out check of `task` and who may read its result; "" without one."""
    asked = task.validation
    names = " with names" if asked.hidden_names else ""
    return f"{asked.hidden.sha256}{names}" if asked.hidden else ""


def fingerprint(task: Task) -> str:
    """Return the fingerprint of the check of `task`, with the held-out one if it has one."""
    seen, hidden = check_of(task).fingerprint(), held_out(task)
    return f"sha256:{sha256.digest(f'{seen} {hidden}'.encode())}" if hidden else seen
