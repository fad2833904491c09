"""Keep the files beside the list: the log, the enable flag, what dead writers have left; examine the list."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from harness_lib.errors import StateUnreadableError
from harness_lib.rules import graph, selection
from harness_lib.state import answers, api, codec, journal, load, schema, summary
from harness_lib.state.api import Examined, Oddity
from harness_lib.state.reading import Problem
from harness_lib.system import clock, fs, mkdir_lock, state_lock
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import process
from harness_lib.text import Strings, counted

LARGE_LOG_BYTES = 100 * 1024 * 1024


class Upkeep(api.Store):
    """The files of one state root that are not the list."""

    root: Root
    _clock: clock.Clock
    # Whether the list is in the file, of which copies are kept.
    _is_file = True
    # Of each transaction so far that had any.
    _warnings: list[list[str]]

    @property
    def warnings(self) -> Strings:
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

    def log_tail(self, lines: int = journal.TAIL_BYTES, *, asked: bool = False) -> list[str]:  # noqa: ARG002
        return journal.tail(self.root.log, lines)

    def log_follow(self) -> Iterator[str]:
        return journal.follow(self.root.log, self._clock)

    def log_searched(self) -> int | None:
        path = self.root.log
        is_whole = not path.is_file() or path.stat().st_size <= journal.TAIL_BYTES
        return None if is_whole else journal.TAIL_BYTES

    def hooks_are_on(self) -> bool:
        return self.root.enable_flag.exists()

    def enable_hooks(self) -> None:
        self.root.enable_flag.touch(fs.PRIVATE)

    def disable_hooks(self) -> None:
        fs.remove(self.root.enable_flag)

    def stamp(self) -> object:
        return [fs.stamp(path) for path in (self.root.state, self.root.log, self.root.enable_flag)]

    def sweep(self) -> list[str]:
        places = [(self.root.path, self.root.state.name)]
        places += [(Path(place), "*") for place, _, _ in os.walk(self.root.private)]
        gone = ((directory, fs.sweep(directory, name)) for directory, name in places)
        return [f"{place}: {count} temporary files of dead writers removed" for place, count in gone if count]

    def repair(self) -> tuple[list[str], list[str]]:
        is_lost = self.examine().is_lost
        done: list[str] = []
        with self.transaction() as tx:
            if is_lost:
                done, tx.warnings[:] = [*tx.warnings], []
            if self._is_log_torn():
                # `append` begins a new line by itself.
                tx.log("WARN", "the line above was left unfinished")
                done.append(f"{self.root.log.name}: its unfinished last line is ended")
            has_copies = not self._is_file or bool(fs.matching(self.root.generations, "*.json"))
            if summary.read(self.root) is None or not has_copies:
                tx.rewrite()
                done.append(f"{self.root.private.name}/: generation and summary of the list are made again")
        return [*done, *self.sweep()], tx.warnings

    def _is_log_torn(self) -> bool:
        try:
            with self.root.log.open("rb") as stream:
                return journal.is_torn(stream.fileno())
        except FileNotFoundError:
            return False

    def oddities(self) -> Iterator[Oddity]:
        log, file = self.root.log, self.root.lock_file
        if log.exists() and not log.is_file():
            yield Oddity(
                "bad", f"{log} is not a regular file", "move it away; the next command makes a new log"
            )
        elif log.exists() and log.stat().st_size > LARGE_LOG_BYTES:
            yield Oddity("ok", f"{log.name} has {log.stat().st_size // 2**20} MB; only its end is ever read")
        if file.exists() and file.stat().st_size:
            # The text of a dead holder remains; its lock does not.
            holder = state_lock.holder(file)
            yield Oddity(
                "ok", f"the state lock was not released by its last holder, {holder}; the kernel frees it"
            )
        yield from _of_directory_lock(mkdir_lock.path_for(self.root.path))


def _of_directory_lock(path: Path) -> Iterator[Oddity]:
    holder = mkdir_lock.holder_of(path)
    if not holder:
        return
    if holder.foreign:
        yield Oddity(
            "warn",
            f"{path} belongs to another user or is a symlink: the legacy protocol is not locked out",
            "let its owner remove it",
        )
    elif holder.pid is None:
        yield Oddity("warn", f"{path} has no pid in it", "after ten seconds the next command takes it over")
    elif process.alive(holder.pid):
        yield Oddity("ok", f"{path} is held by the living process {holder.pid}")
    else:
        message = f"{path} is held by process {holder.pid}, which is gone"
        yield Oddity("warn", message, "the next command takes it over")


def examine(root: Root, now: datetime) -> Examined:
    """Read the file strictly: by the codec, whose messages are best, by the schema, and for cycles."""
    try:
        document = codec.parse(root.state.read_bytes())
    except PermissionError:
        document = load.look(root).document
    except FileNotFoundError:
        return _lost(root, "is missing")
    except codec.UnparseableError as error:
        return _lost(root, f"is not JSON ({error})")
    except codec.ContractError as error:
        return Examined(error.problems)
    if codec.is_emptied(document):
        return _lost(root, "has no tasks in it")
    try:
        state = codec.examined(codec.decode(document))
    except codec.ContractError as error:
        return Examined(_all_problems(document, error))
    rings = [Problem("tasks", f"cycle: {graph.describe(ring)}") for ring in graph.cycles(state.tasks)]
    unproven = [
        Problem(f"tasks[{index}].status", f"{task.id}: {selection.UNPROVEN}; harness start has its check run")
        for index, task in enumerate(state.tasks)
        if task.unproven
    ]
    # What harness wrote it has checked.
    untouched = summary.read_for(os.fspath(root.summary), root.state.stat()) is not None
    problems = (*(() if untouched else schema.problems(document)), *rings, *unproven)
    warnings = () if untouched else load.replaced(root, load.look(root))
    questions = answers.Answers(state, now, tuple(warnings))
    return Examined(problems, questions, is_only_unproven=len(problems) == len(unproven))


def _all_problems(document: object, error: codec.ContractError) -> tuple[Problem, ...]:
    """Return the problems that the codec found, and those that the schema finds at other places."""
    named = {problem.path for problem in error.problems}
    more = [problem for problem in schema.problems(document) if problem.path not in named]
    return tuple(
        sorted([*error.problems, *more], key=lambda each: each.path.count(".") + each.path.count("["))
    )


def _lost(root: Root, why: str) -> Examined:
    """Say of a list that cannot be read what a repair would put in its place, if anything is left."""
    rest, is_lost = "no good earlier state is left", False
    with suppress(StateUnreadableError):
        loaded = load.find(root)
        rest = f"the newest good state is {loaded.source} with {counted(len(loaded.state.tasks), 'task')}"
        is_lost = True
    return Examined((Problem("", f"{root.state.name} {why}; {rest}"),), is_lost=is_lost)
