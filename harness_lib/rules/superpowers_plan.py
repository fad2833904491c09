"""Read the tasks of an implementation plan as the skill `superpowers:writing-plans` writes it.

A task is a heading such as `### Task 3: Add the limiter` with everything below it, at whatever level the plan
has its tasks. Its check is the last command that the plan expects to pass (`Run: …`, `Expected: PASS`).
Fenced code is no structure, and steps that only commit are left out: harness commits.
Source: docs/plans.md, "A plan of superpowers".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.token import Token

_WORDS = "Task|Tarea|Tâche|Tarefa|Aufgabe|Задача|任务|任務|タスク"
_TASK = re.compile(
    rf"(?:{_WORDS})\s*[#№]?\s*(?P<number>\d+(?:[.-]\d+)*[a-z]?)(?:\s*[:\uff1a.)\u2014\u2013-]\s*|\s+)(?P<title>.*\S)"
)
_RUN = re.compile(r"\W*(?:Run|Verify|Command)\b[^:`]*:[\s*_]*(?:`(?P<command>[^`]+)`)?")
_EXPECTED = re.compile(r"\W*Expected\b[^:]*:[\s*_]*(?P<what>.*)", re.DOTALL)
_STEP = re.compile(
    r"\s*(?:[-*]\s+\[[ xX]\]\s*)?(?:#+\s*)?\*{0,2}Step\s+[\d.]+\s*[:.]?\s*(?P<what>.*?)[\s*:.]*$"
)
_COMMIT = re.compile(
    r"(?:stage\s+(?:and|&)\s+)?commit(?:\s+(?:and|&)\s+push)?(?:\s+(?:changes|it|the changes))?",
    re.IGNORECASE,
)
_BOX = re.compile(r"^\s*[-*]\s+\[(?P<tick>[ xX])\]", re.MULTILINE)
_SHELLS = frozenset(("", "sh", "bash", "shell", "zsh", "console", "powershell"))
_NO_FAILURE = re.compile(r"\b(?:0|no|zero)\s+(?:failed|fail(?:ure)?s?|errors?|warnings?)\b", re.IGNORECASE)
_PASSES = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|green|ok|succe(?:ss(?:ful(?:ly)?)?|eds?)|builds?|compiles?|clean|exits?\W+(?:code\W+)?0)\b",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"\b(?:fail\w*|errors?|red|exits?\W+(?:code\W+)?[1-9]|not (?:defined|found))\b", re.IGNORECASE
)
# A pipe hides the exit code of the command, and a placeholder is for somebody to fill in.
_SHORTENED = re.compile(r"\s*(?:2>&1\s*)?\|\s*(?:tail|head)\b[^|;&\n]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"<[a-z][\w -]*>")
_GIT = re.compile(r"git\s+(?:add|commit|push)\b")


class PlannedTask(NamedTuple):
    """A task of a plan: its first line (from 1), and what the plan says about it; `check` may be None."""

    line: int
    title: str
    description: str
    check: str | None
    done: bool


def parse(text: str) -> list[PlannedTask]:
    """Return the tasks of the plan `text`, in its order; none if it is not such a plan."""
    tokens = [token for token in MarkdownIt("commonmark").parse(text) if token.map]
    starts = [token.map[0] for token in tokens if token.map]
    fenced = _fenced(tokens)
    lines = re.split(r"\r\n|\n|\r", text)
    heads = list(_headings(tokens))
    tasks = []
    for index, (line, level, title) in enumerate(heads):
        if (match := _TASK.fullmatch(title)) is None:
            continue
        later = (
            other for other, depth, name in heads[index + 1 :] if depth <= level or _TASK.fullmatch(name)
        )
        end = next(later, len(lines))
        body = _without_commits(lines, line + 1, end, fenced)
        boxes = _BOX.findall("\n".join(body))
        done = bool(boxes) and " " not in boxes
        description = re.sub(r"\n(?:-{3,}|\*{3,})\s*\Z", "", "\n".join(body).rstrip()).strip()
        inside = tokens[bisect_left(starts, line + 1) : bisect_left(starts, end)]
        tasks.append(PlannedTask(line + 1, match["title"], description, _check(inside), done))
    return tasks


def _headings(tokens: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the line (from 0), the level and the text of each heading."""
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.map:
            yield token.map[0], int(token.tag[1:]), tokens[index + 1].content.strip().strip("*").strip()


def _fenced(tokens: list[Token]) -> set[int]:
    """Return the lines (from 0) of fenced code."""
    ranges = (range(*token.map) for token in tokens if token.type == "fence" and token.map)
    return {line for lines in ranges for line in lines}


def _without_commits(lines: list[str], start: int, end: int, fenced: set[int]) -> list[str]:
    """Return the lines from `start` to `end` without steps that only commit."""
    kept, leaves_out = [], False
    for number in range(start, end):
        step = None if number in fenced else _STEP.fullmatch(lines[number])
        if step:
            leaves_out = _COMMIT.fullmatch(step["what"]) is not None
        if not leaves_out:
            kept.append(lines[number])
    return kept


def _check(tokens: list[Token]) -> str | None:
    """Return the last command in `tokens` that is expected to pass."""
    check = command = None
    for token in tokens:
        if token.type == "fence" and token.info.split(" ")[0].lower() in _SHELLS:
            command = _typed(token.content)
        elif token.type == "inline":
            for paragraph in re.split(r"\n(?=\W*Expected\b)", token.content):
                if expected := _EXPECTED.match(paragraph):
                    check = command if command and _is_pass(expected["what"]) else check
                    command = None
                elif named := [run["command"] for run in map(_RUN.match, paragraph.split("\n")) if run]:
                    command = _typed(named[-1] or "")
    return check


def _is_pass(expected: str) -> bool:
    said = _NO_FAILURE.sub("passes", expected)
    return _PASSES.search(said) is not None and _FAILS.search(said) is None


def _typed(command: str) -> str | None:
    """Return `command` for a shell that stops at the first failure; None if it is for the user or git."""
    lines = [line.removeprefix("$ ").rstrip() for line in _SHORTENED.sub("", command).strip().split("\n")]
    lines = [line for line in lines if line and not line.lstrip().startswith("#")]
    text = "\n".join(lines)
    if not text or _PLACEHOLDER.search(text) or _GIT.search(text):
        return None
    return text if len(lines) == 1 or text.endswith("\\") else f"set -e\n{text}"
