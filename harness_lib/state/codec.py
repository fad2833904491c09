"""Decode harness-tasks.json strictly, naming the place of each mistake, and encode it quickly.

Agents declare victory too early, and can write the list. So `completed` is believed if the record (`proof`)
fits the task: this check, in this attempt, in this commit. It is a plain checksum, kept in the task: it stops
carelessness, not a program that forges it.
Standard library only: hooks decode with it.
Source: docs/protocol.md, "Progress Persistence"; docs/design.md, "Reading is strict".
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness_lib import checks, sha256
from harness_lib.errors import ConfigError
from harness_lib.records.fields import Record
from harness_lib.state import reading
from harness_lib.state.reading import NEWER, SHOWN, WORDS, Problem, Problems, cut, shape, trusted
from harness_lib.task import State, Task
from harness_lib.text import first

# The most characters of a path that are shown: a file may be nested without limit.
DEEP = 1000
CORRECT = (
    "correct the named fields in the file, then look again: harness check"
    " (the user can restore the last good list, if one is left: harness check --restore)"
)
UPDATE = "Update harness on this machine, and leave the file as it is."
# Fields that are one of some words, and typed by people: a word that is not known is a mistake.
TYPED = ("status", "priority", "concurrency_mode")
OR_UPDATE = "If a newer harness has written the word that is named: update harness on this machine instead."


class ContractError(ConfigError):
    """A document that parses but is not a valid task list.

    `problems` holds every problem, the message the first 20 of them.
    """

    def __init__(self, problems: Sequence[Problem], source: str = "harness-tasks.json") -> None:
        self.problems = tuple(problems)
        named = of_newer(problems) or problems
        super().__init__(
            "\n".join(first([f"{source}: {problem}" for problem in named], 20, " problems")),
            cure(problems, CORRECT),
        )


def of_newer(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return those of `problems` that say that a newer harness has made the list."""
    return tuple(problem for problem in problems if problem.message.endswith(NEWER))


def cure(problems: Sequence[Problem], correct: str) -> str:
    """Return the hint for `problems`; `correct` says how to correct the file."""
    if of_newer(problems):
        return UPDATE
    words = (problem for problem in problems if WORDS in problem.message)
    is_ours = any(not problem.path.endswith(TYPED) for problem in words)
    return f"{correct}\n{OR_UPDATE}" if is_ours else correct


class UnparseableError(ValueError):
    """Bytes that are not JSON: the list is restored from a copy then."""


def parse(data: bytes) -> object:
    """Return the JSON document in `data` (UTF-8, with or without a byte order mark).

    Raises UnparseableError if it is not JSON, and ContractError for JSON that is ambiguous (a key is repeated
    in one object) or cannot be held: nested too deep, or a number of thousands of digits.
    """
    watch = Watch()
    try:
        document: object = json.loads(
            data, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=watch.make
        )
    except (json.JSONDecodeError, UnicodeError) as error:
        raise UnparseableError(str(error)) from error
    except RecursionError as error:
        raise ContractError([Problem("", "lists and objects are nested too deep")]) from error
    except ValueError as error:
        raise ContractError([Problem("", f"a number cannot be read: {error}")]) from error
    problems = watch.problems(document)
    if problems:
        raise ContractError(problems)
    return document


def _refuse_constant(name: str) -> object:
    # Only Python reads NaN and Infinity: written back they would break the file for others.
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else math.copysign(sys.float_info.max, value)


def is_emptied(document: object) -> bool:
    """Return whether it is an object without `tasks`, as programs leave it that overwrite the list."""
    return type(document) is dict and "tasks" not in document


def decode(document: object, source: str = "harness-tasks.json") -> State:
    """Return `document` (parsed JSON) as a State; an absent field gets its default.

    Raises ContractError with every problem and its JSON path; `source` names the file in its message.
    """
    problems: Problems = []
    if type(document) is not dict:
        raise ContractError([Problem("", f"is {reading.show(document)}, must be an object")], source)
    state = shape(State)(document, "", problems)
    tasks = document.get("tasks")
    if type(tasks) is list:
        problems.extend(links([_ends(task) for task in tasks if type(task) is dict]))
    if problems:
        raise ContractError(problems, source)
    assert isinstance(state, State)
    return state


def decode_tasks(documents: Sequence[object]) -> tuple[Task, ...]:
    """Return tasks that are added together, read as a list of their own; raises as `decode` does."""
    return decode({"tasks": list(documents)}).tasks


def decode_task(document: object, source: str = "task") -> Task:
    """Return one task, read as in a list but for what it depends on; raises as `decode` does."""
    problems: Problems = []
    task = shape(Task)(document, "", problems)
    if problems:
        raise ContractError(problems, source)
    assert isinstance(task, Task)
    return task


def record_problems(record: Record, document: object, path: str) -> Problems:
    """Return the problems of `document` as a `record`, at `path` in the list."""
    problems: Problems = []
    shape(record)(document, path, problems)
    return problems


def shell_problems(document: Mapping[str, Any]) -> Problems:
    """Return the problems of a list, without those of its tasks and sessions."""
    return record_problems(State, {**document, "tasks": [], "sessions": None}, "")


def _ends(task: Mapping[str, Any]) -> tuple[object, Sequence[object]]:
    depends_on = task.get("depends_on")
    return task.get("id"), depends_on if type(depends_on) is list else ()


def links(ends: Iterable[tuple[object, Sequence[object]]]) -> Problems:
    """Return the repeated ids and the unknown dependencies of tasks, given (id, depends_on) of each."""
    ends = list(ends)
    problems: Problems = []
    seen: set[object] = set()
    for index, (name, _) in enumerate(ends):
        if type(name) is str and name in seen:
            problems.append(
                Problem(f"tasks[{index}].id", f"is {reading.show(name)}, which another task has already")
            )
        elif type(name) is str:
            seen.add(name)
    for index, (_, depends_on) in enumerate(ends):
        problems.extend(
            Problem(
                f"tasks[{index}].depends_on[{place}]", f"is {reading.show(name)}, but no task has this id"
            )
            for place, name in enumerate(depends_on)
            if type(name) is str and name not in seen
        )
    return problems


def decode_rendered(text: str, known: Mapping[str, Task]) -> tuple[State, list[str]]:
    """Return the State that `render` wrote as `text`, and the text of each task; nothing is checked.

    `known` maps texts to the tasks that the caller decoded before: usually all but one or two.
    """
    shell, texts = cut(text)
    fresh = [each for each in texts if each not in known]
    decoded = dict(zip(fresh, map(trusted(Task), json.loads(f"[{','.join(fresh)}]")), strict=True))
    # Not checked: the stamp of the file proves that harness wrote it.
    state: State = trusted(State)(json.loads(shell))
    tasks = tuple([known.get(each) or decoded[each] for each in texts])
    return state._replace(tasks=tasks), texts


class Watch:
    """Makes the objects of one text, and remembers those with a repeated key."""

    def __init__(self) -> None:
        # The objects are kept, so that their ids are not reused.
        self._repeated: dict[int, tuple[object, list[tuple[str, int]]]] = {}

    def make(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the object of `pairs`; it is the `object_pairs_hook` of `json`."""
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            self._repeated[id(mapping)] = (
                mapping,
                [(key, count) for key, count in counts.items() if count > 1],
            )
        return mapping

    def problems(self, document: object) -> Problems:
        """Return each repeated key of `document`, in order; the document is searched only if there is one."""
        problems: Problems = []
        # No recursion: some Pythons read documents that are nested deeper than their functions may be.
        rest: list[tuple[str, Any]] = [("", document)] if self._repeated else []
        while rest:
            path, value = rest.pop()
            path = path if len(path) <= DEEP else f"…{path[-DEEP:]}"
            for key, count in self._repeated.get(id(value), (None, []))[1]:
                problems.append(Problem(_below(path, key), f"stands {count} times; only one can be meant"))
            inside = value.items() if isinstance(value, dict) else enumerate(value)
            deeper = [(part, each) for part, each in inside if isinstance(each, dict | list)]
            rest += reversed([(_below(path, part), each) for part, each in deeper])
        return problems


def _below(path: str, part: str | int) -> str:
    """Return the path of `part`, a key or an index, of what is at `path`."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    key = part if len(part) <= SHOWN else f"{part[:SHOWN]}…"
    return f"{path}.{key}" if path else key


def sealed(state: State, old: State) -> State:
    """Return `state`, which is about to replace `old`, with a record in each completed task.

    Tasks that an older harness, or the legacy protocol before the first session, completed are believed.
    """
    if state.is_legacy and not state.proofs:
        return state
    tasks = list(state.tasks)
    for place in state.changed_since(old) if old.proofs else range(len(tasks)):
        tasks[place] = sealed_task(tasks[place])
    return state._replace(tasks=tuple(tasks), proofs=True)


def examined(state: State) -> State:
    """Return `state`, which may have been edited externally, with its unverified completed tasks marked.

    A task that harness has claimed stays in progress despite such an edit: its worker, or its recovery, runs
    the check.
    """
    if not state.proofs:
        return state
    return state._replace(tasks=tuple([_examined(task) for task in state.tasks]))


def _examined(task: Task) -> Task:
    if task.status != "completed" or task.proof == _proof(task):
        is_kept = task.status == "in_progress" or not task.unproven
        return task if is_kept else task._replace(unproven=False)
    # An attempt of harness is under way; one that is being rolled back is not.
    if task.gate is not None and task.claimed_by is not None and task.step != "rollback":
        return task._replace(
            status="in_progress", completed_at=None, completed_commit=None, proof=None, unproven=True
        )
    return task._replace(unproven=True)


def sealed_task(task: Task) -> Task:
    """Return `task` with the record that fits it, if it is completed."""
    if task.status == "completed" and task.unproven:
        return task
    proof = _proof(task) if task.is_done else None
    return task if task.proof == proof else task._replace(proof=proof)


def _proof(task: Task) -> str:
    check = checks.check_of(task)
    parts = [task.id, task.fence, check.text, check.cwd, task.completed_commit]
    if hidden := checks.held_out(task):
        # Records of an earlier harness do not have it.
        parts.append(hidden)
    return "sha256:" + sha256.digest(json.dumps(parts).encode())
