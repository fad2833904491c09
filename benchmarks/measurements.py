"""Everything that is measured, in the order of the table, and the places that several measurements share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from benchmarks import crowds, hooks, runs, talk, turns, verbs
from benchmarks.measuring import Row
from benchmarks.projects import Project

HUGE = 100_000


class Place:
    """A temporary directory, and the lists in it, made when they are first asked for."""

    def __init__(self, path: Path, *, quick: bool) -> None:
        self.path, self.quick = path, quick
        self._open = ExitStack()

    def __enter__(self) -> Place:  # noqa: PYI034 (`Self` came with Python 3.11)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def rounds(self) -> int:
        """Return how often each thing is done."""
        return 3 if self.quick else 7

    @cached_property
    def few(self) -> Project:
        """A list of ten tasks."""
        return self._open.enter_context(closing(Project.make(self.path / "few", 10)))

    @cached_property
    def huge(self) -> Project:
        """A list of very many tasks."""
        return self._open.enter_context(closing(Project.make(self.path / "huge", HUGE)))


class Measurement(NamedTuple):
    """`seconds` is what it takes on two idle cores, for the estimate; `about` has the words of its rows."""

    name: str
    seconds: int
    about: str
    rows: Callable[[Place], Iterator[Row]]

    def is_meant(self, text: str) -> bool:
        """Return whether the user who types `text` means this one."""
        return text.lower() in f"{self.name} {self.about}".replace("`", "").lower()


ALL = (
    Measurement(
        "hooks",
        60,
        "a hook where there is no enable flag; a Stop hook that blocks, 10 and 100,000 tasks",
        lambda at: hooks.nearly_free(at.few, at.huge, at.path / "nowhere", at.rounds * 4),
    ),
    Measurement(
        "foreign",
        20,
        "a Stop hook on a list that another program wrote, 10 and 10,000 tasks",
        lambda at: hooks.foreign(at.path / "foreign", at.rounds * 4),
    ),
    Measurement(
        "verbs", 40, "any verb at 100 tasks", lambda at: verbs.any_verb(at.path / "verbs", at.rounds)
    ),
    Measurement(
        "cycle",
        40,
        "`claim` + `checkpoint` + `finish` at 1,000 tasks",
        lambda at: verbs.cycle_grows_slowly(at.path / "cycle", at.rounds),
    ),
    Measurement(
        "log", 60, "verbs with a log of 1 GB", lambda at: verbs.log_costs_nothing(at.path / "log", at.rounds)
    ),
    Measurement(
        "talk",
        60,
        "bytes that an agent reads and writes for the protocol, 20 tasks",
        lambda at: iter(talk.compare(at.path / "talk")),
    ),
    Measurement(
        "crowd",
        120,
        "32 processes on one list",
        lambda at: crowds.ours(at.path, 100 if at.quick else 2000),
    ),
    Measurement(
        "legacy",
        30,
        "32 processes by the legacy protocol",
        lambda at: crowds.the_original(at.path, 100 if at.quick else 320),
    ),
    Measurement(
        "huge",
        180,
        "verbs at 100,000 tasks",
        lambda at: verbs.huge_list(at.few, at.huge, 1 if at.quick else 3),
    ),
    Measurement(
        "run",
        230,
        "`harness run`: each of 100 tasks whose agent does nothing, beside git alone",
        lambda at: runs.overhead(at.path / "runs", *((20, 1000, 1) if at.quick else (100, 5000, 3))),
    ),
    Measurement(
        "set-up",
        45,
        "`harness run`: a work tree of 1,000 and of 100,000 files, new and for the next task",
        lambda at: chain.from_iterable(
            runs.set_up(at.path / f"files-{files}", files, rounds)
            for files, rounds in (((1000, 3),) if at.quick else ((1000, 7), (HUGE, 2)))
        ),
    ),
    Measurement(
        "sandbox",
        10,
        "`harness run --sandbox`: an attempt whose agent does nothing, beside the same without a sandbox",
        lambda at: runs.confined(at.path / "sandbox", 5, at.rounds),
    ),
    Measurement(
        "records",
        4,
        "`harness run -j 4`: recording its events",
        lambda at: runs.recording(at.path / "records", 20 if at.quick else 50),
    ),
    Measurement(
        "merges",
        60,
        "`harness run -j 8`: merges per check, check 1.5 s",
        lambda at: runs.merges_per_check(at.path / "merges", 8 if at.quick else 24),
    ),
    Measurement(
        "turns",
        60,
        "`hs`: one tool call; from an answer's end to the next request; pieces of an answer; memory; cache",
        lambda at: turns.compare(at.path / "turns", at.rounds),
    ),
)
