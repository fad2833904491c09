"""What a check said."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from harness_lib.rules import runners
from harness_lib.system.files import printed

Verdict = Literal["pass", "TEST_FAIL", "TIMEOUT", "ENV_SETUP"]


class Checked(NamedTuple):
    """What a check said: the verdict, one line why, the end of its output, and where all of it is.

    `gist` is what is most worth reading of the output, in a line; `without` names the variables that it was
    not given, or not whole; `seconds` is how long the check took. `held_out`: a held-out check says it.
    """

    verdict: Verdict
    message: str
    tail: str
    log: Path
    gist: str = ""
    without: tuple[str, ...] = ()
    seconds: float = 0.0
    held_out: bool = False

    @property
    def passed(self) -> bool:
        """Whether the task is done."""
        return self.verdict == "pass"

    def failure(self) -> str:
        """Return one line for the error log: why, and what the check said of it."""
        return f"{self.message} {self.gist}".strip()

    def excerpt(self) -> str:
        """Return what a person would read of the output, in several lines."""
        return runners.of(printed.ends_of(self.log)) if self.tail else ""
