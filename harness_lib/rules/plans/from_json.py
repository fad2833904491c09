"""Read the plans that are JSON: `tasks.json` of Task Master, and issues as `gh issue list` prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness_lib.rules.checklist import unique
from harness_lib.rules.plans import commands
from harness_lib.rules.plans.plan import Document, Format, Plan, PlannedTask

Json = Mapping[str, Any]
_THEIRS = frozenset(("testStrategy", "subtasks", "details", "dependencies"))
_DONE = frozenset(("done", "complete", "completed", "cancelled"))
_FOR_PERSON = {"deferred": "The plan has deferred it.", "review": "The plan says that it is to be reviewed."}
_PRIORITIES = {"critical": "P0", "high": "P0", "medium": "P1", "low": "P2"}
_MASTER = "master"
_ISSUE = frozenset(("body", "labels", "state"))
_AFTER_ISSUE = re.compile(
    r"(?<!no longer )(?<!not )\b(?:depends on|blocked[ -]by|requires)\b[\s:*_\[]*"
    r"(?P<what>#\d+(?:[\s*_\]]*(?:,|and|&|/|\+|;|-|\u2013)\s*\[?#\d+)*)",
    re.IGNORECASE,
)
# A heading or a line, and the items of a list below it.
_LISTED_ISSUES = re.compile(
    r"^[#*_\s]*(?:dependencies|depends on|blocked[ -]by)[*_:\s]*\n(?P<what>(?:\s*[-*] [^\n]*(?:\n|\Z))+)",
    re.IGNORECASE | re.MULTILINE,
)
_RANGE = re.compile(r"#(\d+)\s*[-\u2013]\s*#(\d+)")
_NOT_SAID = re.compile(r"`[^`\n]*`|~~.*?~~")
_MOST_IN_RANGE = 100


def _document(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def task_master(doc: Document) -> Plan | None:
    """Return the tasks of all tags of `tasks.json`; None if it is another file.

    A task's subtasks are steps of it.
    """
    document = _document(doc.text)
    if not isinstance(document, dict):
        return None
    tags = {_MASTER: document, **document} if "tasks" in document else document
    lists = {
        tag: [task for task in content["tasks"] if isinstance(task, dict)]
        for tag, content in tags.items()
        if isinstance(content, dict) and isinstance(content.get("tasks"), list)
    }
    if not any(_THEIRS & task.keys() and "id" in task for tasks in lists.values() for task in tasks):
        return None
    planned = [task for tag, tasks in lists.items() for task in _of_tag(tag, tasks)]
    keys = unique([task.key for task in planned])
    return Plan("", tuple(task._replace(key=key) for task, key in zip(planned, keys, strict=True)))


def _of_tag(tag: str, tasks: Sequence[Json]) -> Iterator[PlannedTask]:
    prefix = "" if tag == _MASTER else f"{tag}/"
    marked = any(_list(task, "dependencies") for task in tasks)
    for place, task in enumerate(tasks):
        key = f"{prefix}{task.get('id', '')}"
        named = [f"{prefix}{str(each).partition('.')[0]}" for each in _list(task, "dependencies")]
        # Without a word about order each task comes after the one before it, but not after another tag.
        after = (
            tuple(each for each in dict.fromkeys(named) if each != key)
            if marked or (prefix and not place)
            else None
        )
        strategy, status = _text(task, "testStrategy"), _text(task, "status").lower()
        parts = [_text(task, "description"), _text(task, "details"), *_steps(task)]
        parts.append(_text(task, "acceptanceCriteria"))
        if strategy:
            parts.append(f"How it is tested: {strategy}")
        yield PlannedTask(
            key,
            _text(task, "title"),
            "\n\n".join(filter(None, parts)),
            after=after,
            check=commands.whole(strategy),
            human=_FOR_PERSON.get(status),
            done=status in _DONE,
            priority=_PRIORITIES.get(_text(task, "priority").lower()),
        )


def _steps(task: Json) -> Iterator[str]:
    """Yield a paragraph for each subtask, and for those of subtasks."""
    for step in _list(task, "subtasks"):
        if isinstance(step, dict):
            said = [f"after {each}" for each in _list(step, "dependencies") if isinstance(each, int | str)]
            said += ["done"] if _text(step, "status").lower() in _DONE else []
            names = ("description", "details", "testStrategy", "acceptanceCriteria")
            number = f"{task.get('id')}.{step.get('id')}"
            marks = f" ({', '.join(said)})" if said else ""
            title = f"{number} {_text(step, 'title')}{marks}"
            yield "\n".join([title, *filter(None, (_text(step, name) for name in names))])
            yield from _steps({**step, "id": number})


def issues(doc: Document) -> Plan | None:
    """Return the issues of an export, the oldest first; None if it is another file.

    They wait for those that their text names (`Depends on #12`, `Blocked by #12`) and are in the file.
    """
    document = _document(doc.text)
    found = document if isinstance(document, list) else []
    numbered: dict[int, Json] = {
        each["number"]: each
        for each in found
        if isinstance(each, dict) and type(each.get("number")) is int and _ISSUE & each.keys()
    }
    if not numbered or len(numbered) < len(found):
        return None
    tasks = []
    for number, issue in sorted(numbered.items()):
        body = _text(issue, "body")
        named = dict.fromkeys(_waits_for(body))
        after = [str(each) for each in named if each in numbered and each != number]
        labels = [_text(each, "name") for each in _list(issue, "labels") if isinstance(each, dict)]
        tasks.append(
            PlannedTask(
                str(number),
                _text(issue, "title"),
                "\n\n".join(filter(None, (body, f"Labels: {', '.join(labels)}" if labels else ""))),
                after=tuple(after),
                check=commands.expected_to_pass(Document(body).tokens) or commands.in_prose(body),
                done=_text(issue, "state").upper() == "CLOSED",
            )
        )
    return Plan("", tuple(tasks))


def _waits_for(body: str) -> Iterator[int]:
    """Yield the numbers of the issues that `body` says come first; not what another issue waits for."""
    text = _NOT_SAID.sub(" ", body)
    for match in (*_AFTER_ISSUE.finditer(text), *_LISTED_ISSUES.finditer(text)):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if re.match(r"\W*#\d", line):
            continue
        for first, last in _RANGE.findall(match["what"]):
            yield from range(int(first), min(int(last), int(first) + _MOST_IN_RANGE) + 1)
        yield from (int(each) for each in re.findall(r"#(\d+)", match["what"]))


def _text(each: Json, name: str) -> str:
    value = each.get(name)
    return value.strip() if isinstance(value, str) else ""


def _list(each: Json, name: str) -> list[Any]:
    value = each.get(name)
    return value if isinstance(value, list) else []


TASK_MASTER = Format(
    "task-master",
    "Task Master list",
    "a `tasks.json` with `dependencies` or `testStrategy`",
    re.compile(r'"tasks"'),
    task_master,
)
GITHUB = Format(
    "github",
    "GitHub issues",
    "what `gh issue list --json number,title,body,labels,state` prints",
    re.compile(r'"number"'),
    issues,
)
