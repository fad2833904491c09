"""Tell the tests of a room which functions the processes that they fork have run."""

from __future__ import annotations

import os
from pathlib import Path

from mutmut.configuration import config
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

from tests.mutation.mutants import CHECKOUT

# The file that names them.
FILE = "MUTANT_SEEN"


class _Written(set[str]):
    """Writes each name that is added to `file` at once: nobody knows how a process will end."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def add(self, name: str) -> None:
        if name not in self:
            super().add(name)
            with self._file.open("a") as file:
                file.write(f"{name}\n")


def begin() -> None:
    """Write which functions this process and its forks run."""
    here = Path.cwd()
    # It is read where it is first asked for, and kept.
    os.chdir(CHECKOUT)
    config()
    os.chdir(here)
    set_mutant_under_test("stats")
    # What a fork starts, as `harness demo` does, is a bare interpreter, which would look for them elsewhere.
    os.environ.pop("MUTANT_UNDER_TEST", None)
    state()._stats = _Written(Path(os.environ[FILE]))


def take(file: Path) -> set[str]:
    """Return the functions that were written since the last call."""
    names = set(file.read_text().split()) if file.exists() else set()
    file.unlink(missing_ok=True)
    return names
