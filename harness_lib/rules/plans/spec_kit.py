"""Read the `tasks.md` of spec-kit: `- [ ] T012 [P] [US1] Add the model`, or `### T012 [P] …`, in phases.

A phase comes after the one before it, unless the section "Dependencies & Execution Order" says more. Inside
of a phase tasks with `[P]` run side by side, every other one comes after all before it, and
`(depends on T012, T013)` counts instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import NamedTuple

from harness_lib.rules.checklist import unique
from harness_lib.rules.plans import commands
from harness_lib.rules.plans.plan import (
    Box,
    Document,
    Format,
    Heading,
    Plan,
    PlannedTask,
    join_after,
    without_comments,
)
from harness_lib.text import Strings

_ITEM = re.compile(r"\**(?P<key>T-?\d{2,}[A-Za-z]?)\**\s*[:.\u2013\u2014-]?\s+(?P<rest>.*\S)", re.DOTALL)
# Pictures in front of the marks say what kind of work it is.
_MARKS = re.compile(
    r"(?=\S)(?:[\u2600-\u27bf\ufe0f\U0001f300-\U0001faff]+\s*)?(?:(?:\[[^\]\n]{1,60}\](?!\()|\(P\))\s*)*"
)
_IS_DONE = re.compile(r"\[[xX]\]")
# Of the commands that a title can be, those that look at the work and end.
_LOOKS = re.compile(
    r"\b(?:build|check|clippy|coverage|jest|lint|mypy|pytest|ruff|tests?|tsc|typecheck|validate|verify|vet)\b"
)
_STAYS = re.compile(r"\b(?:dev|install|watch)\b")
_PARALLEL = re.compile(r"[\[(]P[\])]")
_STORY = re.compile(r"\b(?:User Story |US-?)(\d+)\b", re.IGNORECASE)
_STORIES = re.compile(r"\bstories\b", re.IGNORECASE)
_DEPENDS_MARK = re.compile(r"\[D: ([^\]]*)\]")
_DEPENDS = re.compile(
    r"\s*\((?P<what>[^()]*\b(?:depends? on|after|requires|needs|blocked by)\b[^()]*\bT-?\d+[^()]*)\)",
    re.IGNORECASE,
)
_TASKS = re.compile(r"T-?(\d+)([A-Za-z]?)(?:\s*(?:-|\u2013|\u2014|to|through)\s*T?-?(\d+))?")
_PHASE = re.compile(r"\bPhase (\d+(?:\.\d+)?)\b", re.IGNORECASE)
_PHASES = re.compile(
    r"\bPhases? (\d+(?:\.\d+)?)(?:\s*(?:-|\u2013|\u2014|to)\s*(\d+(?:\.\d+)?)|(\+))?", re.IGNORECASE
)
_DEPENDS_ON = re.compile(r"^Depends on:?.*", re.MULTILINE | re.IGNORECASE)
_ORDER = re.compile(r"(?:Phase |User Story |Story |Task )?Dependenc(?:y|ies)\b", re.IGNORECASE)
_AFTER = re.compile(
    r"\b(?:depends? (?:only )?on:?|after|requires|needs|blocked by)(?!\w)(?P<what>.*)",
    re.IGNORECASE | re.DOTALL,
)
# Behind it a sentence speaks of something else.
_CLAUSE = re.compile(r"[.;\u2014\u2013(]|\s-\s|\s\+\s|\b(?:can|but|may|though|not)\b", re.IGNORECASE)
_NOTHING = re.compile(r"\bno (?:other )?dependenc|\bindependent\b", re.IGNORECASE)
_LONGEST_RANGE = 500


class _Phase(NamedTuple):
    """A phase: its heading, number and name, the story that it is about, its beginning, and its tasks."""

    head: Heading | None
    number: str
    name: str
    story: str | None
    about: str
    tasks: list[int]


class _Item(NamedTuple):
    """An item of the plan, before it is known what it waits for."""

    box: Box
    number: str
    key: str
    rest: str


def read(doc: Document) -> Plan | None:
    """Return the plan; None if no item or heading has a number such as T012."""
    found = [(box, match) for box in doc.boxes if (match := _ITEM.fullmatch(box.text))]
    found = found or [
        (_box(doc, head), match) for head in doc.headings if (match := _ITEM.fullmatch(head.text))
    ]
    if not found:
        return None
    keys = unique([match["key"] for _, match in found])
    items = [
        _Item(box, match["key"], key, match["rest"]) for (box, match), key in zip(found, keys, strict=True)
    ]
    phases = _phases(doc, items)
    after = _order(doc, items, phases)
    starts = {item.box.line for item in items}
    tasks = tuple(
        _task(doc, item, phase, starts)._replace(after=after[item.key])
        for phase in phases
        for item in (items[index] for index in phase.tasks)
    )
    first = min([phase.head.line for phase in phases if phase.head] or [items[0].box.line])
    return Plan(without_comments(doc.cut(0, first)), tasks, strays=doc.strays(tasks))


def _task(doc: Document, item: _Item, phase: _Phase, starts: set[int]) -> PlannedTask:
    box = item.box
    whole = doc.cut(box.line, box.end)
    inner = [each for each in doc.boxes_in(box.line, box.end) if each is box or each.line not in starts]
    title = _DEPENDS.sub("", _MARKS.sub("", item.rest, count=1))
    return PlannedTask(
        item.key,
        title,
        "\n\n".join(filter(None, (whole, phase.about))),
        (box.line + 1, box.end),
        check=commands.in_prose(whole) or _command(title),
        done=box.ticked,
        boxes=tuple(each.line + 1 for each in inner),
    )


def _command(title: str) -> str | None:
    """Return the command that a title such as "Run `npm test`" is."""
    command = commands.only(title) or ""
    return command if _LOOKS.search(command) and not _STAYS.search(command) else None


def _box(doc: Document, head: Heading) -> Box:
    """Return the task of a heading as if it were an item."""
    is_done = _IS_DONE.search(head.text) is not None
    return Box(head.line, doc.last(head.line, doc.end_of(head)), is_done, head.text)


def _phases(doc: Document, items: list[_Item]) -> list[_Phase]:
    numbered = any(map(_is_phase, doc.headings))
    phases: dict[Heading | None, _Phase] = {}
    for index, item in enumerate(items):
        head = doc.above(item.box.line, _is_phase if numbered else _is_section)
        if head not in phases:
            text = head.text if head else ""
            number, story = _PHASE.search(text), _STORY.search(text)
            name = re.split(r"[(:\u2013\u2014]|\s-\s", _PHASE.sub("", text).lstrip(" :.\u2013\u2014-"))[
                0
            ].strip()
            about = _beginning(doc, head, item.box.line)
            which = number[1] if number else ""
            phases[head] = _Phase(head, which, name, story[1] if story else None, about, [])
        phases[head].tasks.append(index)
    return list(phases.values())


def _is_phase(head: Heading) -> bool:
    return _PHASE.search(head.text) is not None


def _is_section(head: Heading) -> bool:
    return head.level == 2 and not _ITEM.fullmatch(head.text)  # noqa: PLR2004 (below the title)


def _beginning(doc: Document, head: Heading | None, first: int) -> str:
    """Return the heading of a phase and what it says before its tasks."""
    if not head:
        return ""
    end = min([first, *(each.line for each in doc.headings if each.line > head.line)])
    return without_comments(doc.cut(head.line, end).lstrip("# "))


def _order(doc: Document, items: list[_Item], phases: list[_Phase]) -> dict[str, Strings]:
    """Return the keys that each task comes after."""
    by_number: dict[str, list[str]] = {}
    for item in items:
        by_number.setdefault(item.number, []).append(item.key)
    after: dict[str, Strings] = {}
    for phase in phases:
        barrier: Strings = ()
        # What no task of the phase comes after so far.
        last: dict[str, None] = {}
        for item in (items[index] for index in phase.tasks):
            marks = match[0] if (match := _MARKS.match(item.rest)) else ""
            parallel = _PARALLEL.search(marks) is not None
            said = [match["what"] for match in _DEPENDS.finditer(item.rest)] + _DEPENDS_MARK.findall(marks)
            named = [name for text in said for name in _named(text)]
            if named:
                keys = [key for name in named for key in by_number.get(name, [name]) if key != item.key]
                after[item.key] = tuple(dict.fromkeys(keys))
            else:
                after[item.key] = barrier if parallel else tuple(last)
            last = {key: None for key in (*last, item.key) if key not in after[item.key]}
            if not parallel:
                barrier = tuple(last)
    _join_phases(items, phases, _before(doc, items, phases), after)
    return after


def _join_phases(
    items: list[_Item], phases: list[_Phase], before: list[set[int]], after: dict[str, Strings]
) -> None:
    """Let the first tasks of each phase come after the last ones of those `before` it."""
    own = [{items[index].key for index in phase.tasks} for phase in phases]
    ends = []
    for keys in own:
        waited_for = {name for key in keys for name in after[key]}
        ends.append([key for key in after if key in keys and key not in waited_for])
    for number, earlier in enumerate(before):
        last = tuple(key for each in sorted(earlier) for key in ends[each])
        roots = [key for key in after if key in own[number] and not own[number].intersection(after[key])]
        if last and roots:
            for key, more in join_after(roots, last).items():
                after[key] = tuple(dict.fromkeys((*after[key], *(name for name in more if name != key))))


def _before(doc: Document, items: list[_Item], phases: list[_Phase]) -> list[set[int]]:
    """Return the phases that each one comes after."""
    by_task = {items[index].number: number for number, phase in enumerate(phases) for index in phase.tasks}
    said: dict[int, set[int]] = {}
    for about, predicate in _sentences(doc, phases):
        match, nothing = _AFTER.search(predicate), _NOTHING.search(predicate)
        if (clause := match or nothing) and _TASKS.search(predicate[: clause.start()]):
            # It is about a task of the phase, not about all of it.
            continue
        others = _meant(_CLAUSE.split(match["what"].strip())[0], phases, by_task) - about if match else set()
        if others or (not match and nothing):
            for number in about:
                said.setdefault(number, set()).update(others or _before_stories(phases, number))
    order: list[set[int]] = []
    for number in range(len(phases)):
        # Without a word about it, a phase comes after all before it: after those that no other one waits for.
        order.append(said.get(number, set(range(number)).difference(*order)))
    try:
        TopologicalSorter(dict(enumerate(order))).prepare()
    except CycleError:
        # A sentence was misread: the phases as they stand are right.
        return [{number - 1} if number else set() for number in range(len(phases))]
    return order


def _before_stories(phases: list[_Phase], number: int) -> set[int]:
    """Return what a story without dependencies still waits for: the phases before the first story."""
    if not phases[number].story:
        return set()
    return set(range(next(place for place, phase in enumerate(phases) if phase.story)))


def _sentences(doc: Document, phases: list[_Phase]) -> Iterator[tuple[set[int], str]]:
    """Yield what is said about the order of phases: of which ones, and what."""
    for number, phase in enumerate(phases):
        yield from (({number}, line[0]) for line in _DEPENDS_ON.finditer(phase.about.replace("*", "")))
    for head in doc.headings:
        if _ORDER.match(head.text):
            end = doc.end_of(head)
            for line, _, text in doc.items:
                subject, colon, predicate = text.replace("*", "").partition(":")
                if head.line < line < end and colon and not text.startswith("["):
                    yield _meant(subject, phases), predicate


def _meant(text: str, phases: list[_Phase], by_task: Mapping[str, int] = MappingProxyType({})) -> set[int]:
    """Return the phases that `text` names: by number, by story, all stories, by tasks, or by name."""
    stories = {number for number, phase in enumerate(phases) if phase.story}
    found: set[int] = set()
    for match in _PHASES.finditer(text):
        first, last = float(match[1]), float(match[2] or match[1])
        top = float("inf") if match[3] else last
        found |= {n for n, phase in enumerate(phases) if phase.number and first <= float(phase.number) <= top}
    if found:
        return (found & stories or found) if _STORIES.search(text) else found
    if named := set(_STORY.findall(text)):
        return {number for number in stories if phases[number].story in named}
    if _STORIES.search(text):
        return stories
    if tasks := {by_task[name] for name in _named(text) if name in by_task}:
        return tasks
    words = set(re.findall(r"\w+", text.casefold()))
    return {n for n, phase in enumerate(phases) if phase.name.casefold().split(" ")[0] in words}


def _named(text: str) -> Iterator[str]:
    """Yield the numbers of tasks in `text`: `T012`, `T012-T014`."""
    for match in _TASKS.finditer(text):
        first, last = int(match[1]), int(match[3] or match[1])
        if match[3] and first < last <= first + _LONGEST_RANGE:
            yield from (f"T{number:0{len(match[1])}}" for number in range(first, last + 1))
        else:
            yield match[0] if not match[3] else f"T{match[1]}{match[2]}"


FORMAT = Format(
    "spec-kit",
    "spec-kit tasks",
    "items such as `- [ ] T001 …`",
    re.compile(r"(?:\[[ xX]\]|^#{2,6})\s+\**T-?\d\d", re.MULTILINE),
    read,
    ("spec.md", "plan.md", "research.md", "data-model.md", "quickstart.md", "contracts"),
)
