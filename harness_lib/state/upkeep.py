"""Keep the files beside the list: the log, the enable flag, what dead writers have left; examine the list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness_lib.errors import StateUnreadableError
from harness_lib.rules import graph
from harness_lib.rules.selection import UNPROVEN
from harness_lib.state import api, codec, journal, load, summary
from harness_lib.state.answers import Answers
from harness_lib.state.api import Examined, Oddity
from harness_lib.state.codec import ContractError, UnparseableError
from harness_lib.state.reading import Problem
from harness_lib.system import mkdir_lock, state_lock
from harness_lib.system.clock import Clock
from harness_lib.system.files import atomic, directories
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import process
from harness_lib.task import State

LARGE_LOG_BYTES = 100 * 1024 * 1024


class Upkeep(api.Store):
    """The files of one state root that are not the list."""

    root: Root
    _clock: Clock
    # Whether the list is in the file, of which copies are kept.
    _is_file = True
    # Of each transaction so far that had any.
    _warnings: list[list[str]]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the transactions so far, each sentence once."""
        return tuple(dict.fromkeys(text for each in self._warnings for text in each))

    @property
    def list_file(self) -> Path:
        return self.root.state

    @property
    def log_file(self) -> Path:
        return self.root.log

    @property
    def backup_file(self) -> Path:
        return self.root.backup

    def exists(self) -> bool:
        return self.root.state.exists()

    def log_tail(self, lines: int = journal.TAIL_BYTES) -> list[str]:
        return journal.tail(self.root.log, lines)

    def log_follow(self) -> Iterator[str]:
        return journal.follow(self.root.log, self._clock)

    def log_searched(self) -> int | None:
        path = self.root.log
        is_whole = not path.is_file() or path.stat().st_size <= journal.TAIL_BYTES
        return None if is_whole else journal.TAIL_BYTES

    def hooks_are_on(self) -> bool:
        return self.root.enable_flag.exists()

    def switch_hooks(self, *, on: bool) -> None:
        if on:
            self.root.enable_flag.touch(atomic.PRIVATE)
        else:
            atomic.remove(self.root.enable_flag)

    def stamp(self) -> object:
        return [_stamp(path) for path in (self.root.state, self.root.log, self.root.enable_flag)]

    def sweep(self) -> list[str]:
        lines = []
        for directory, name in (
            (self.root.path, self.root.state.name),
            (self.root.path, self.root.backup.name),
            (self.root.private, "*"),
            (self.root.generations, "*"),
        ):
            before = _temporaries(directory, name)
            atomic.sweep(directory, name)
            gone = before - _temporaries(directory, name)
            if gone:
                lines.append(f"{directory}: {len(gone)} temporary files of dead writers removed")
        return lines

    def examine(self) -> Examined:
        name = self.root.state.name
        try:
            document = codec.parse(self.root.state.read_bytes())
        except FileNotFoundError:
            return self._lost(f"{name} is missing")
        except UnparseableError as error:
            return self._lost(f"{name} is not JSON ({error})")
        except ContractError as error:
            return Examined(error.problems)
        if codec.is_emptied(document):
            return self._lost(f"{name} has no tasks in it")
        try:
            state = codec.examined(codec.decode(document, name))
        except ContractError as error:
            return Examined(_sorted(error.problems))
        rings = [Problem("tasks", f"cycle: {graph.describe(ring)}") for ring in graph.cycles(state.tasks)]
        unproven = tuple(_unproven(state))
        return Examined((*rings, *unproven), Answers(state, self._clock.now()), is_only_unproven=not rings)

    def _lost(self, why: str) -> Examined:
        """Return that the list is lost, and what a repair would put in its place."""
        try:
            loaded = load.find(self.root)
            rest = f"the newest good state is {loaded.source} with {len(loaded.state.tasks)} tasks"
        except StateUnreadableError:
            rest = "no good earlier state is left"
        return Examined((Problem("", f"{why}; {rest}"),), is_lost=True)

    def repair(self) -> tuple[list[str], list[str]]:
        is_lost = self.examine().is_lost
        done: list[str] = []
        with self.transaction() as tx:
            if is_lost:
                done, tx.warnings = tx.warnings, []
            if journal.is_torn(self.root.log):
                # `append` begins a new line by itself.
                tx.log("WARN", "the line above was left unfinished", session=tx.session_count)
                done.append(f"{self.root.log.name}: its unfinished last line is ended")
            has_copies = not self._is_file or bool(directories.matching(self.root.generations, "*.json"))
            if summary.read(self.root) is None or not has_copies:
                tx.rewrite()
                done.append(f"{self.root.private.name}/: generation and summary of the list are made again")
        return [*done, *self.sweep()], tx.warnings

    def oddities(self) -> Iterator[Oddity]:
        yield from _of_log(self.root.log)
        file = self.root.lock_file
        if file.exists() and file.stat().st_size:
            # The text of a dead holder remains; its lock does not.
            holder = state_lock.holder(file)
            yield Oddity(
                "ok", f"last taken and not given back: the state lock, by {holder}; the kernel frees it"
            )
        yield from _of_directory_lock(mkdir_lock.path_for(self.root.path))


def _of_log(log: Path) -> Iterator[Oddity]:
    if log.exists() and not log.is_file():
        yield Oddity("bad", f"{log} is no regular file", "move it away; the next command makes a new log")
    elif log.exists() and log.stat().st_size > LARGE_LOG_BYTES:
        yield Oddity("ok", f"{log.name} has {log.stat().st_size // 2**20} MB; only its end is ever read")


def _of_directory_lock(path: Path) -> Iterator[Oddity]:
    holder = mkdir_lock.holder_of(path)
    if holder is None:
        return
    if holder.foreign:
        yield Oddity(
            "warn",
            f"{path} belongs to another user or is a symlink: the legacy protocol is not locked out",
            "let its owner remove it",
        )
    elif holder.pid is None:
        yield Oddity("warn", f"{path} names no process", "after ten seconds the next command takes it over")
    elif process.alive(holder.pid):
        yield Oddity("ok", f"{path} stands for the living process {holder.pid}")
    else:
        message = f"{path} stands for process {holder.pid}, which is gone"
        yield Oddity("warn", message, "the next command takes it over")


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


def _temporaries(directory: Path, name: str) -> set[Path]:
    return set(directories.matching(directory, f".{name}.*.tmp"))


def _unproven(state: State) -> Iterator[Problem]:
    for index, task in enumerate(state.tasks):
        if task.unproven:
            yield Problem(f"tasks[{index}].status", f"{task.id}: {UNPROVEN}; harness start has its check run")


def _sorted(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: problem.path.count(".") + problem.path.count("[")))
