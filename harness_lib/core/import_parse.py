"""Parse a file of tasks into drafts, each with its place in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness_lib.errors import UsageError
from harness_lib.records import fields, given
from harness_lib.rules import checklist
from harness_lib.rules.checklist import Item
from harness_lib.state import codec, reading
from harness_lib.task import Task
from harness_lib.text import some

PAST = {column.name for column in fields.columns(Task)} - given.NAMES - {"status"}
SHELL = frozenset({"version", "created", "tasks", "session_count", "last_session", "sessions"})


EXAMPLE = "A check list has lines such as: - [ ] Add rate limiting"


@dataclass(frozen=True)
class Wait:
    """A dependency as it is written: an id, a title, or a position in the file."""

    place: str
    name: str | int


@dataclass(frozen=True)
class Draft:
    """A task that is wanted: `document` in the list's own shape, without status and dependencies.

    `place` names it in the file, `lines` are its first and last one; `places` name its fields, where those
    are elsewhere.
    `within` are the numbers of the drafts around it; one that `is_group` becomes no task.
    """

    place: str
    document: Mapping[str, Any]
    waits: tuple[Wait, ...] = ()
    done: bool = False
    is_group: bool = False
    within: tuple[int, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[int, int] = (0, 0)

    def place_of(self, path: str) -> str:
        """Return where the field `path` of this task stands."""
        if not self.places:
            return f"{self.place}.{path}" if path else self.place
        return self.places.get(path.partition("[")[0], self.place)


@dataclass
class Drafts:
    """All drafts of a file, their problems by number (-1: of the file), and notes for the user.

    `kind` names what the file is, "" for a check list of ours or JSON; `plans` has what each plan of another
    tool says for all of its tasks.
    """

    items: list[Draft] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kind: str = ""
    plans: Mapping[str, str] = field(default_factory=dict)

    def with_check(self, command: str) -> Drafts:
        """Return the drafts with `command` as the check of those that have none."""
        return replace(self, items=[_checked(draft, command) for draft in self.items])


def _checked(draft: Draft, command: str) -> Draft:
    asked = draft.document.get("validation", {})
    if draft.is_group or not isinstance(asked, dict) or asked.get("command") or "halt" in draft.document:
        return draft
    return replace(draft, document={**draft.document, "validation": {**asked, "command": command}})


# -- JSON -------------------------------------------------------------------------------------------------


def json_tasks(data: bytes) -> Drafts:
    """Return the tasks of a JSON list, or of an object with `tasks`. Raises UsageError if it is neither."""
    document = _parsed(data)
    drafts = Drafts()
    path, tasks = "", document
    if isinstance(document, dict):
        path, tasks = "tasks", document.get("tasks")
        left_out = sorted(document.keys() - SHELL)
        if left_out:
            drafts.notes.append(
                f"Only the tasks were taken, not {some([reading.show(name) for name in left_out])}."
            )
    if not isinstance(tasks, list):
        raise UsageError(
            f"The JSON is {reading.show(document)} without a list of tasks.",
            'It must be [{"title": …}, …] or {"tasks": [{"title": …}, …]}.',
        )
    past, unread = 0, []
    known = given.NAMES | PAST | {"status"}
    for number, task in enumerate(tasks):
        if isinstance(task, dict):
            keys = [key for key in task if key not in known and checklist.field_of(key) is None]
            unread += [f"{reading.show(key)} ({path}[{number}])" for key in keys]
        past += _add_json(drafts, f"{path}[{number}]", {"title": task} if isinstance(task, str) else task)
    if past:
        drafts.notes.append(f"{past} of the tasks had attempts elsewhere; here they start with none.")
    if unread:
        short = ", ".join(dict.fromkeys(checklist.KEYS.values()))
        warning = f"Kept as unknown fields: {some(unread)}."
        drafts.notes.append(
            f"{warning} A task has {', '.join(sorted(given.NAMES))}; short for those are {short}."
        )
    return drafts


def _parsed(data: bytes) -> object:
    try:
        return codec.parse(data)
    except codec.UnparseableError as error:
        raise UsageError(f"This is not JSON: {error}.", "Correct it, or use --format markdown.") from error
    except codec.ContractError as error:
        raise UsageError(f"This JSON cannot be read: {error.problems[0]}.", "Correct it.") from error


def _add_json(drafts: Drafts, place: str, task: object) -> bool:
    """Add one JSON task to `drafts`; return whether it had a history, which is dropped."""
    number = len(drafts.items)
    if not isinstance(task, dict):
        drafts.problems.append((number, f"{place}: is {reading.show(task)}, must be an object"))
        drafts.items.append(Draft(place, {"title": "?"}))
        return False
    if task.get("status", "pending") != "pending":
        said = f"{place}.status: is {reading.show(task['status'])}; only a check says what is done, so only "
        drafts.problems.append((number, said + "pending tasks are imported"))
    keys = [key for key in task if key == "depends_on" or _short(key) == "after"]
    waits = [wait for key in keys for wait in _awaited(drafts, number, f"{place}.{key}", task[key])]
    document, twice = _document_of(task)
    drafts.problems += [(number, f"{place}.{key}: repeats another field") for key in twice]
    drafts.items.append(Draft(place, document, tuple(waits)))
    return any(task.get(key) for key in PAST)


def _awaited(drafts: Drafts, number: int, place: str, names: object) -> Iterator[Wait]:
    """Yield the dependencies named at `place`; add invalid ones to the problems."""
    if names is not None and not isinstance(names, list):
        drafts.problems.append((number, f"{place}: is {reading.show(names)}, must be a list"))
    for at, name in enumerate(names if isinstance(names, list) else []):
        if type(name) in (str, int):
            yield Wait(f"{place}[{at}]", name)
        else:
            said = f"{place}[{at}]: is {reading.show(name)}, must be an id, a title or a position"
            drafts.problems.append((number, said))


def _short(key: str) -> str | None:
    """Return the field that `key` is another name for, as in a check list; None if it is the list's own."""
    return None if key in given.NAMES or key in PAST else checklist.field_of(key)


def _document_of(task: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return `task` in the field names of the list, without its history, and keys that repeat a field.

    A null where an id could stand is left out.
    """
    gone = {*PAST, "status", "depends_on", *(["id"] if task.get("id") is None else [])}
    document = {key: value for key, value in task.items() if key not in gone and _short(key) is None}
    twice = []
    for key, value in task.items():
        path = _SHORT.get(_short(key) or "")
        if path is None:
            continue
        within, _, name = path.rpartition(".")
        inside = document.setdefault(within, {}) if within else document
        if not isinstance(inside, dict) or name in inside:
            twice.append(key)
        elif within:
            document[within] = {**inside, name: value}
        else:
            document[name] = value
    return document, twice


# -- Markdown ---------------------------------------------------------------------------------------------


def text_of(data: bytes) -> str:
    """Return `data` as text without its byte order mark; UsageError if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"This is not UTF-8 text: {error}.", "Save the file as UTF-8.") from error


def markdown_tasks(text: str, plan: str = "") -> Drafts:
    """Return the tasks of a check list, with `plan` as their source; none if it has no item with a box."""
    items, problems = checklist.parse(text)
    numbers = {item.line: number for number, item in enumerate(items)}
    starts = sorted(numbers)
    drafts = Drafts([_draft(item, numbers) for item in items], notes=list(_unknown(items)))
    if plan:
        drafts.plans = {plan: ""}
        keys = checklist.keys(items)
        drafts.items = [_from(draft, plan, key) for draft, key in zip(drafts.items, keys, strict=True)]
    for problem in problems:
        owner = max(line for line in starts if line <= problem.line)
        drafts.problems.append((numbers[owner], f"line {problem.line}: {problem.message}"))
    return drafts


def _from(draft: Draft, plan: str, key: str) -> Draft:
    if draft.is_group:
        return draft
    document = {**draft.document, "source": {"plan": plan, "key": key}}
    return replace(draft, document=document, places={**draft.places, "source": draft.place})


def _unknown(items: list[Item]) -> Iterator[str]:
    """Yield a sentence for each line that looks like a field but is not one."""
    words = [f"{word!r} (line {line})" for item in items if not item.done for line, word in item.unknown]
    if words:
        known = ", ".join(dict.fromkeys(checklist.KEYS.values()))
        warning = f"Taken as description, not as a field: {some(words)}."
        yield f"{warning} A field is a line such as `- check: …`; there are {known}."


def _draft(item: Item, numbers: Mapping[int, int]) -> Draft:
    document: dict[str, Any] = {"title": item.title}
    for known in _KEYED:
        value = _value(item, known)
        if value not in (None, []):
            within, _, name = known.path.rpartition(".")
            inside = document.setdefault(within, {}) if within else document
            inside[name] = value
    return Draft(
        f"line {item.line}",
        document,
        tuple(_waits(item, numbers)),
        done=item.done,
        is_group=item.is_group,
        within=tuple(numbers[around.line] for around in item.ancestors()),
        places={
            "title": f"line {item.line}",
            **{known.path: f"line {item.line_of(known.typed.words[0])}" for known in _KEYED},
        },
    )


def _waits(item: Item, numbers: Mapping[int, int]) -> Iterator[Wait]:
    """Yield the dependencies of `item`: the nearest open task around it, and those it names."""
    around = next((each for each in item.ancestors() if not (each.done or each.is_group)), None)
    if around:
        yield Wait(f"line {item.line}", numbers[around.line] + 1)
    for line, value in item.fields.get("after", ()):
        yield Wait(f"line {line}", value)


# The fields that a check list gives in lines of their own; dependencies are resolved instead.
_KEYED = [known for known in given.FIELDS if known.typed.words and known.path != "depends_on"]
# By the short name of a field, where the list has it.
_SHORT = {known.typed.words[0]: known.path for known in _KEYED} | {"title": "title"}


def _value(item: Item, known: given.Given) -> Any:
    """Return what `item` says of a field, as the list would have it; the contract refuses an invalid one."""
    word = known.typed.words[0]
    first = item.first(word)
    match known.kind.form:
        case "integer":
            # With its unit or without; the contract refuses any other text.
            digits = re.fullmatch(r"([0-9]{1,15})(?: ?s| ?seconds)?", first or "")
            return int(digits[1]) if digits else first
        case "flag":
            words = {"yes": True, "true": True, "no": False, "false": False}
            return words.get(first.lower(), first) if first else None
        case "choice":
            return (first or "").upper() or None
    said = [value for _, value in item.fields.get(word, ())]
    if known.kind.form == "list":
        return [part.strip() for value in said for part in value.split(",")]
    if known.kind.form == "record":
        return said
    return ("\n".join(said) or None) if known.typed.repeats else first
