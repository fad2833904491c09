"""Run a program to its end, and hear what it says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE


@dataclass(frozen=True)
class Said:
    """What one command said: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def json(self) -> dict[str, Any]:
        """The one object that `--json` prints; anything else on stdout fails the test here."""
        reply = json.loads(self.out)
        assert isinstance(reply, dict), self.out
        return reply


def run_to_end(
    command: Sequence[str | Path],
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Return what `command` has said in UTF-8, to which nothing is typed but `stdin`.

    With `check` a program that fails is an error; one that does not end within PATIENCE always is.
    """
    typed = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(
        list(command),
        cwd=cwd,
        env=env,
        **typed,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=check,
    )
