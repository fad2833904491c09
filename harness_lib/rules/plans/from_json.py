"""Read the plans that are JSON: `tasks.json` of Task Master, and issues as `gh issue list` prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness_lib.rules.plans import commands
from harness_lib.rules.plans.plan import Document, Format, Plan, PlannedTask, unique

Json = Mapping[str, Any]
_THEIRS = frozenset(("testStrategy", "subtasks", "details", "dependencies"))
_DONE = frozenset(("done", "completed", "cancelled", "deferred"))
_PRIORITIES = {"critical": "P0", "high": "P0", "medium": "P1", "low": "P2"}
_MASTER = "master"
_ISSUE = frozenset(("body", "labels", "state"))
_DIGITS = re.compile(r"\d+")
_AFTER_ISSUE = re.compile(
    r"\b(?:depends on|blocked by|after|requires)\b[:\s]*(?P<what>#\d+(?:\s*(?:,|and|&)\s*#\d+)*)",
    re.IGNORECASE,
)


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
    tags = {_MASTER: document} if "tasks" in document else document
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
    for task in tasks:
        named = [f"{prefix}{str(each).partition('.')[0]}" for each in _list(task, "dependencies")]
        after = tuple(dict.fromkeys(named)) if marked else None
        strategy = _text(task, "testStrategy")
        parts = [_text(task, "description"), _text(task, "details"), *_steps(task)]
        if strategy:
            parts.append(f"How it is tested: {strategy}")
        yield PlannedTask(
            f"{prefix}{task.get('id', '')}",
            _text(task, "title"),
            "\n\n".join(filter(None, parts)),
            after=after,
            check=commands.whole(strategy) if strategy else None,
            done=_text(task, "status") in _DONE,
            priority=_PRIORITIES.get(_text(task, "priority").lower()),
        )


def _steps(task: Json) -> Iterator[str]:
    """Yield a paragraph for each subtask."""
    for step in _list(task, "subtasks"):
        if isinstance(step, dict):
            done = " (done)" if _text(step, "status") in _DONE else ""
            parts = (_text(step, name) for name in ("description", "details", "testStrategy"))
            title = f"{task.get('id')}.{step.get('id')} {_text(step, 'title')}{done}"
            yield "\n".join([title, *filter(None, parts)])


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
        named = [
            int(each) for match in _AFTER_ISSUE.finditer(body) for each in _DIGITS.findall(match["what"])
        ]
        after = [str(each) for each in dict.fromkeys(named) if each in numbered and each != number]
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
