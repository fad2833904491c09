"""What every plan of another tool becomes, how its Markdown is read, and in which order plans are done."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from markdown_it import MarkdownIt

from harness_lib.text import Strings

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE_END = re.compile(r"\r\n|\n|\r")
_BOX = re.compile(r"\[(?P<tick>[ xX])\](?:\s+(?P<text>.*))?", re.DOTALL)
_FENCE = re.compile(r"[ \t]*(?P<ticks>`{3,})(?P<info>[^`]*)")
_GAP = re.compile(r"\n(?:[ \t]*\n){2,}")
MOST_PAIRS = 10_000


class PlannedTask(NamedTuple):
    """A task of a plan.

    `key` is its name in the plan, such as `3` or `T012`. `after` are the keys of what comes before it; None
    if the plan does not say. `human` are the words for the person that it waits for. `lines` are its first
    and last line (from 1; 0 in JSON), `boxes` the lines of its boxes.
    """

    key: str
    title: str
    description: str
    lines: tuple[int, int] = (0, 0)
    after: Strings | None = None
    check: str | None = None
    human: str | None = None
    done: bool = False
    boxes: tuple[int, ...] = ()
    priority: str | None = None


class Plan(NamedTuple):
    """The tasks of a plan, in its order, and its `header`, which counts for all of them.

    `name` is what other plans call it; `after` are the names of the plans before it, None if it does not
    say. `wave`: plans of a lower one come before it. `strays` are the lines of open boxes that are in none of
    its tasks.
    """

    header: str
    tasks: tuple[PlannedTask, ...]
    name: str = ""
    after: Strings | None = None
    wave: int | None = None
    strays: tuple[int, ...] = ()


class Heading(NamedTuple):
    """A heading: its line (from 0), its level, and its text."""

    line: int
    level: int
    text: str


class Box(NamedTuple):
    """A list item with a box: its lines (from 0, the end excluded), whether it is ticked, and its text."""

    line: int
    end: int
    ticked: bool
    text: str


def _line_of(box: Box) -> int:
    return box.line


@dataclass(frozen=True)
class Document:
    """The document `raw`, read as Markdown; code, quotations and comments are no structure."""

    raw: str

    @cached_property
    def text(self) -> str:
        r"""The text with lines that end with `\n`."""
        return _LINE_END.sub("\n", self.raw)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return self.text.split("\n")

    @cached_property
    def tokens(self) -> list[Token]:
        """The blocks that have a position; inline content is not parsed."""
        parser = MarkdownIt("commonmark").disable("inline")
        return [token for token in parser.parse(_flat(self.text)) if token.map]

    @cached_property
    def headings(self) -> list[Heading]:
        """The headings that are not inside of a list or a quotation."""
        found = []
        for index, token in enumerate(self.tokens):
            if token.type == "heading_open" and token.level == 0 and token.map:
                text = self.tokens[index + 1].content.strip().strip("*").strip()
                found.append(Heading(token.map[0], int(token.tag[1:]), text))
        return found

    @cached_property
    def boxes(self) -> list[Box]:
        """The list items with a box."""
        return [
            Box(line, end, match["tick"] != " ", (match["text"] or "").strip())
            for line, end, text in self.items
            if (match := _BOX.fullmatch(text))
        ]

    @cached_property
    def items(self) -> list[tuple[int, int, str]]:
        """The list items: their lines, and the text of their first paragraph."""
        found = []
        for index, token in enumerate(self.tokens[:-2]):
            text = self.tokens[index + 2]
            if token.type == "list_item_open" and token.map and text.type == "inline":
                found.append((token.map[0], self.last(*token.map), text.content))
        return found

    def last(self, start: int, end: int) -> int:
        """Return `end` without blank lines before it."""
        while end > start + 1 and not self.lines[end - 1].strip():
            end -= 1
        return end

    def within(self, start: int, end: int) -> list[Token]:
        """Return the blocks that begin in the lines from `start` to `end`."""
        return self.tokens[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    @cached_property
    def _starts(self) -> list[int]:
        return [token.map[0] for token in self.tokens if token.map]

    def boxes_in(self, start: int, end: int) -> list[Box]:
        """Return the boxes in the lines from `start` to `end`."""
        return self.boxes[
            bisect_left(self.boxes, start, key=_line_of) : bisect_left(self.boxes, end, key=_line_of)
        ]

    def strays(self, tasks: Iterable[PlannedTask]) -> tuple[int, ...]:
        """Return the lines (from 1) of the open boxes that are in none of `tasks`."""
        inside = {line for task in tasks for line in range(task.lines[0], task.lines[1] + 1)}
        return tuple(box.line + 1 for box in self.boxes if not box.ticked and box.line + 1 not in inside)

    def cut(self, start: int, end: int) -> str:
        """Return the lines from `start` to `end`, without rules and blank lines around them."""
        text = "\n".join(self.lines[start:end])
        return re.sub(r"(?:\n\s*(?:-{3,}|\*{3,})\s*)+\Z", "", "\n" + text.rstrip()).strip("\n").rstrip()

    def above(self, line: int, wanted: Callable[[Heading], bool]) -> Heading | None:
        """Return the last heading before `line` that is `wanted`."""
        return next((each for each in reversed(self.headings) if each.line < line and wanted(each)), None)

    def end_of(self, heading: Heading) -> int:
        """Return the line after the section of `heading`."""
        later = (
            each.line for each in self.headings if each.line > heading.line and each.level <= heading.level
        )
        return next(later, len(self.lines))


class Format(NamedTuple):
    """A format: its word for `--format`, its name in messages, what it is recognised by, and its reader.

    A text without a match of `sign` is another format; so it is where `read` returns None. `beside` are the
    files next to such a plan that an agent should read, too.
    """

    word: str
    title: str
    looks_for: str
    sign: re.Pattern[str]
    read: Callable[[Document], Plan | None]
    beside: Strings = ()


def _flat(text: str) -> str:
    """Return `text` with the fences inside of a fence of Markdown as its content; no line moves.

    Authors write both with three backticks. Where the marks do not pair up, nothing is changed.
    """
    lines = text.split("\n")
    outer, depth, is_markdown = "", 0, False
    for number, line in enumerate(lines):
        mark = _FENCE.fullmatch(line)
        if not mark or (depth and len(mark["ticks"]) < len(outer)):
            continue
        info = mark["info"].strip().lower()
        if not depth:
            outer, depth, is_markdown = mark["ticks"], 1, info in ("markdown", "md", "mdx")
            continue
        inner = depth + 1 if info and is_markdown else depth - 1 if not info else depth
        if inner != depth and (inner or info):
            lines[number] = line.replace("`", "~")
        depth = inner
    return text if depth else "\n".join(lines)


def without_comments(text: str) -> str:
    """Return `text` without HTML comments, and with one blank line in the place of several."""
    return _GAP.sub("\n\n", with_comments(text, lambda _comment: "")).strip()


def with_comments(text: str, instead: Callable[[str], str]) -> str:
    """Return `text` with what `instead` makes of each HTML comment; one that has no end is text."""
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        parts += [text[at:start], instead(text[start : end + 3])]
        at = end + 3
    return "".join((*parts, text[at:]))


def join_after(roots: list[str], before: Strings) -> dict[str, Strings]:
    """Return what each of `roots` waits for, so that all of them come after `before`.

    Where that would be too many pairs, only the first waits for all, and the others for it.
    """
    if len(roots) * len(before) <= MOST_PAIRS:
        return dict.fromkeys(roots, before)
    return {roots[0]: before, **dict.fromkeys(roots[1:], (roots[0],))}


class Read(NamedTuple):
    """A plan that was read: its file as a source of tasks, its format, and what it says."""

    name: str
    form: Format
    plan: Plan


def in_order(found: Sequence[Read]) -> tuple[list[list[int]], list[tuple[int, str]]]:
    """Return the numbers of the tasks that each one comes after, and each key that names no task of its plan.

    The tasks of all plans are counted through; a key stands behind the number of the task that names it.
    """
    after: list[list[int]] = []
    unknown: list[tuple[int, str]] = []
    ranges: list[range] = []
    for read in found:
        first = len(after)
        ranges.append(range(first, first + len(read.plan.tasks)))
        numbers = {task.key: first + place for place, task in enumerate(read.plan.tasks)}
        for place, task in enumerate(read.plan.tasks):
            if task.after is None:
                after.append([first + place - 1] if place else [])
                continue
            unknown += [(first + place, key) for key in task.after if key not in numbers]
            after.append([numbers[key] for key in task.after if key in numbers])
    for number, earlier in enumerate(_plans_before(found)):
        _join(after, ranges[number], [ranges[each] for each in earlier])
    return after, unknown


def _join(after: list[list[int]], plan: range, earlier: list[range]) -> None:
    """Let the first tasks of `plan` come after the last ones of the plans `earlier`."""
    roots = [str(number) for number in plan if not after[number]]
    last = []
    for each in earlier:
        waited_for = {number for task in each for number in after[task]}
        last += [str(number) for number in each if number not in waited_for]
    if roots and last:
        for root, more in join_after(roots, tuple(last)).items():
            after[int(root)] += [int(each) for each in more]


def _plans_before(found: Sequence[Read]) -> list[set[int]]:
    """Return the plans that each plan comes directly after.

    A plan that says nothing comes after the one before it. The plans of one directory that say something (GSD
    has one for each phase) come after those that they name, or all of a lower wave; the first ones come after
    the directory before.
    """
    before: list[set[int]] = []
    groups: list[list[int]] = []
    for number, read in enumerate(found):
        same = groups and posixpath.dirname(found[groups[-1][0]].name) == posixpath.dirname(read.name)
        if same and read.plan.after is not None:
            groups[-1].append(number)
        else:
            groups.append([number])
    last: set[int] = set()
    for group in groups:
        for number in group:
            plan = found[number].plan
            waves = {other: found[other].plan.wave or 0 for other in group}
            names = plan.after or ()
            named = {other for other in group for name in names if is_called(found[other], plan, name)}
            if not named and plan.wave is not None:
                below = max((wave for wave in waves.values() if wave < plan.wave), default=None)
                named = {other for other in group if waves[other] == below}
            before.append((named - {number}) or last)
        last = set(group).difference(*(before[number] for number in group))
    return before


def is_called(read: Read, plan: Plan, name: str) -> bool:
    """Return whether `plan` means `read` by `name`: `03-01`, `01` in the same phase, or a file."""
    phase = plan.name.rpartition("-")[0]
    stem = posixpath.splitext(posixpath.basename(read.name))[0].removesuffix("-PLAN")
    return name.removesuffix("-PLAN") in (read.plan.name, stem) or f"{phase}-{name}" == read.plan.name


def open_before(after: list[list[int]], tasks: Sequence[PlannedTask], number: int) -> list[int]:
    """Return the open ones of `tasks` before `number`; in the place of a done one those before it."""
    found: dict[int, None] = {}
    seen: set[int] = set()
    ahead = list(reversed(after[number]))
    while ahead:
        each = ahead.pop()
        if not tasks[each].done:
            found[each] = None
        elif each not in seen:
            seen.add(each)
            ahead += reversed(after[each])
    return list(found)
