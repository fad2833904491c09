"""Turn drafts into tasks of a list: assign ids, resolve dependencies, collect all problems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness_lib.core import add_tasks, quoting
from harness_lib.core.import_parse import Draft, Drafts, Wait
from harness_lib.errors import UsageError
from harness_lib.records.fields import NEW_ID_PATTERN
from harness_lib.rules import graph
from harness_lib.state import codec, reading
from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.text import Strings, counted, first, folded, some

PLACES = 5
_ALWAYS_SAID = ("title", "description")

Problems = list[tuple[int, str]]


class Plan(NamedTuple):
    """The tasks to append, each with its draft, and notes for the user; `known` were imported before."""

    tasks: tuple[Task, ...]
    notes: Strings
    drafts: tuple[Draft, ...] = ()
    known: int = 0


def plan(
    questions: Questions, drafts: Drafts, spent: Strings = (), again: str = "harness import FILE"
) -> Plan:
    """Return the plan of appending `drafts` to the list; UsageError with all problems and their places.

    New numbered ids skip `spent` ones; `again` is what to type once the file is correct.
    """
    known = _known(questions, drafts)
    numbered = [
        (number, draft)
        for number, draft in enumerate(drafts.items)
        if not (draft.done or draft.is_group or number in known)
    ]
    ids = _ids(questions, [draft for _, draft in numbered], spent)
    here = {number: task.id for number, task in known.items()}
    here |= zip((number for number, _ in numbered), ids, strict=True)
    names = _Names(questions, drafts.items, here)
    problems = list(drafts.problems)
    tasks = _decoded(numbered, ids, problems)
    waits = [_waits(number, draft, names, problems) for number, draft in numbered]
    _refuse(problems, drafts.kind, again)
    tasks = [
        task._replace(id=own, depends_on=others) for task, own, others in zip(tasks, ids, waits, strict=True)
    ]
    _refuse(_rings(numbered, tasks), drafts.kind, again)
    planned = [(draft, task) for (_, draft), task in zip(numbered, tasks, strict=True)]
    again_named = _Names(questions, drafts.items, here)
    notes = (*drafts.notes, *_changes(questions, drafts, known, again_named), *_notes(drafts, planned, names))
    return Plan(tuple(tasks), notes, tuple(draft for draft, _ in planned), len(known))


def _known(questions: Questions, drafts: Drafts) -> dict[int, Task]:
    """Return the tasks of the list that were imported from these very places of these plans, by number."""
    if not drafts.plans:
        return {}
    by_source = {(task.source.plan, task.source.key): task for task in questions.search() if task.source}
    found = (by_source.get(_source(draft)) for draft in drafts.items)
    return {number: task for number, task in enumerate(found) if task}


def _source(draft: Draft) -> tuple[str, str]:
    source = draft.document.get("source", {})
    return source.get("plan", ""), source.get("key", "")


def _changes(questions: Questions, drafts: Drafts, known: dict[int, Task], names: _Names) -> Iterator[str]:
    """Yield what the plans say otherwise than when they were imported."""
    changed = []
    for number, task in known.items():
        draft = drafts.items[number]
        new, old = _said(draft.document), _said(reading.written(task))
        # What the plan does not say the user may have typed: it stands.
        fields = [name for name in new if new[name] != old[name] and (name in _ALWAYS_SAID or new[name])]
        if not set(_waits(number, draft, names, [])) <= set(task.depends_on):
            fields.append("after")
        if fields and task.status != "completed":
            changed.append(f"{task.id} ({', '.join(fields)})")
    if changed:
        yield (
            f"The plan has changed since it was imported, and the list has not: {some(changed, PLACES)}. "
            "To import a task again, remove it first."
        )
    named = {_source(draft) for draft in drafts.items}
    gone = [
        task.id
        for task in (questions.search("pending", "failed") if drafts.plans else ())
        if task.source and task.source.plan in drafts.plans
        if (task.source.plan, task.source.key) not in named
    ]
    if gone:
        yield f"No longer in the plan: {some(gone, PLACES)}."


def _said(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a draft or a task of a list says, by the words of a check list."""
    check, failure = document.get("validation") or {}, document.get("on_failure") or {}
    whole = {"check": check.get("command"), "timeout": check.get("timeout_seconds")}
    whole |= {"max attempts": document.get("max_attempts"), "red first": check.get("red_first")}
    whole |= {name: check.get(name) for name in ("cwd", "protect")} | {"cleanup": failure.get("cleanup")}
    return {name: document.get(name) for name in (*_ALWAYS_SAID, "priority")} | whole


def _ids(questions: Questions, drafts: list[Draft], spent: Strings) -> list[str]:
    """Return the id of each: its own if that is free, else the next number."""
    own_ids = [draft.document.get("id") for draft in drafts]
    taken = {task.id for task in questions.tasks(name for name in own_ids if isinstance(name, str))}
    kept = [name for name in own_ids if isinstance(name, str) and name not in taken]
    numbered = add_tasks.next_id(questions, (*spent, *kept))
    number = int(numbered.removeprefix("task-"))
    ids = []
    for name in own_ids:
        if isinstance(name, str) and name not in taken:
            ids.append(name)
        else:
            ids.append(f"task-{number:03d}")
            number += 1
    return ids


def _decoded(numbered: list[tuple[int, Draft]], ids: list[str], problems: Problems) -> list[Task]:
    """Return the decoded tasks, without dependencies; [] and more `problems` if they are invalid."""
    documents = []
    for (number, draft), own in zip(numbered, ids, strict=True):
        name = draft.document.get("id")
        if isinstance(name, str) and not re.match(NEW_ID_PATTERN, name):
            rule = "must be letters, digits, dots, dashes and underscores, and begin with a letter or a digit"
            problems.append((number, f"{draft.place_of('id')}: is {reading.show(name)}, {rule}"))
        title = draft.document.get("title", "")
        if isinstance(title, str) and not title.strip() and not draft.places:
            problems.append((number, f"{draft.place_of('title')}: a task needs a title"))
        documents.append({"id": own, **draft.document, "status": "pending"})
    try:
        return list(codec.decode_tasks(documents))
    except codec.ContractError as error:
        for problem in error.problems:
            match = re.fullmatch(r"tasks\[(\d+)\](?:\.(.*))?", problem.path, re.DOTALL)
            if not match:
                problems.append((-1, str(problem)))
                continue
            number, draft = numbered[int(match[1])]
            problems.append((number, f"{draft.place_of(match[2] or '')}: {problem.message}"))
        return []


class _Names:
    """The names of tasks: first those in the file, then those in the list."""

    def __init__(self, questions: Questions, items: list[Draft], ids: dict[int, str]) -> None:
        self.left_out: list[str] = []
        self._ids = [ids.get(number) for number in range(len(items))]
        self._within = [draft.within for draft in items]
        self._below: dict[int, list[int]] = {}
        for number, draft in enumerate(items):
            for around in draft.within:
                self._below.setdefault(around, []).append(number)
        self._own: dict[str, list[int]] = {}
        self._titles: dict[str, list[int]] = {}
        for number, draft in enumerate(items):
            name, title = draft.document.get("id"), draft.document.get("title")
            if isinstance(name, str):
                self._own.setdefault(name, []).append(number)
            if isinstance(title, str):
                self._titles.setdefault(folded(title), []).append(number)
        self._questions = questions

    def find(self, number: int, wait: Wait) -> list[str] | str:
        """Return the ids that `wait` of a draft means (none if they are ticked), or the problem."""
        whole = self._find_one(number, wait, wait.name)
        if whole is not None or isinstance(wait.name, int) or "," not in wait.name:
            return whole if whole is not None else self._unknown(wait.name)
        ids: list[str] = []
        for part in (part.strip() for part in wait.name.split(",")):
            one = self._find_one(number, wait, part)
            if one is None or isinstance(one, str):
                return self._unknown(part) if one is None else one
            ids += one
        return ids

    def titles(self, title: str) -> list[str]:
        """Return the tasks of the list that have this title."""
        return list(self._questions.titled(title))

    def _find_one(self, by: int, wait: Wait, name: str | int) -> list[str] | str | None:
        if isinstance(name, str):
            if name in self._own:
                return self._of_file(by, wait, name, self._own[name][:1])
            if self._questions.task(name):
                return [name]
            if folded(name) in self._titles:
                return self._of_file(by, wait, name, self._titles[folded(name)])
            ids = self.titles(name)
            if ids:
                return ids if len(ids) == 1 else self._ambiguous(name, len(ids))
        digits = re.fullmatch(r"#?([0-9]{1,9})", str(name))
        if digits and 1 <= int(digits[1]) <= len(self._ids):
            return self._of_file(by, wait, name, [int(digits[1]) - 1])
        return None

    def _of_file(self, by: int, wait: Wait, name: str | int, numbers: list[int]) -> list[str] | str:
        matches = [ids for number in numbers if (ids := self._all_of(by, number))]
        if len(matches) > 1:
            return self._ambiguous(name, len(matches))
        if not matches:
            self.left_out.append(wait.place)
        return matches[0] if matches else []

    def _all_of(self, by: int, number: int) -> list[str]:
        """Return the open tasks of an item and of all below it; for items below it, only its own."""
        below = () if number in self._within[by] else self._below.get(number, ())
        return [own for each in (number, *below) if (own := self._ids[each]) is not None]

    @staticmethod
    def _ambiguous(name: str | int, count: int) -> str:
        return f"{_quoted(name)} is the title of {count} tasks; name the one you mean by its id"

    @staticmethod
    def _unknown(name: str | int) -> str:
        return f"{_quoted(name)} is not a task, neither in this file nor in the list"


def _waits(number: int, draft: Draft, names: _Names, problems: Problems) -> Strings:
    ids: dict[str, None] = {}
    for wait in draft.waits:
        ids_or_problem = names.find(number, wait)
        if isinstance(ids_or_problem, str):
            problems.append((number, f"{wait.place}: {ids_or_problem}"))
        else:
            ids.update(dict.fromkeys(ids_or_problem))
    return tuple(ids)


def _rings(numbered: list[tuple[int, Draft]], tasks: list[Task]) -> Problems:
    # No listed task can wait for one that is not there yet.
    rings = graph.cycle_members(tasks)
    return [
        (number, f"{draft.place}: {task.id} would depend on itself: {rings[task.id]}")
        for (number, draft), task in zip(numbered, tasks, strict=True)
        if task.id in rings
    ]


def _refuse(problems: Problems, kind: str, again: str) -> None:
    if not problems:
        return
    # A problem of a group is a problem of each of its tasks.
    sentences = list(dict.fromkeys(text for _, text in sorted(problems, key=lambda problem: problem[0])))
    lines = [f"  {text}" for text in first(sentences, 20, " problems")]
    count = counted(len(sentences), "problem")
    overruled = ", or overrule the order of the plan: --sequential" if kind else ""
    raise UsageError(
        "\n".join([f"Nothing was added, because of {count}:", *lines]),
        f"Correct the file, then preview it: {again} --dry-run{overruled}",
    )


def _notes(drafts: Drafts, planned: list[tuple[Draft, Task]], names: _Names) -> Iterator[str]:
    """Yield a note for each kind of thing that may not be intended."""
    groups = [draft.place for draft in drafts.items if draft.is_group and not draft.done]
    if groups:
        yield f"Not imported, because they have no check and only group others: {some(groups, PLACES)}."
    done = [draft.place for draft in drafts.items if draft.done]
    if done:
        yield f"Left out because they are ticked: {some(done, PLACES)}. Only a check decides what is done."
    if names.left_out:
        yield f"Dependencies on ticked items were dropped: {some(names.left_out, PLACES)}."
    were = ((draft.document.get("id"), task.id) for draft, task in planned)
    renamed = [f"{old} became {new}" for old, new in were if old not in (None, new)]
    if renamed:
        yield f"Ids that are in the list already were changed: {some(renamed, PLACES)}."
    known = ((task.title, names.titles(task.title)) for _, task in planned if not drafts.kind)
    again = [f"{_quoted(title)} ({ids[0]})" for title, ids in known if ids]
    if again:
        yield f"Titles that are in the list already: {some(again, PLACES)}. Was this file imported before?"


def _quoted(name: str | int) -> str:
    return repr(quoting.one_line(str(name), 60))
