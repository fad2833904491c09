"""Read a `PLAN.md` of Get Shit Done: `<task type="auto">` with name, files, action, verify and done.

It is no XML: `&` and `<` stand as they are, and an end is sometimes missing. A `checkpoint:…` waits for a
person. The front matter says which plans come before this one.
"""

from __future__ import annotations

import html
import re
import textwrap
from bisect import bisect_left

from harness_lib.rules.checklist import unique
from harness_lib.rules.plans import commands
from harness_lib.rules.plans.plan import (
    Document,
    Format,
    Plan,
    PlannedTask,
    with_comments,
    without_comments,
)
from harness_lib.text import Strings

_FENCE = re.compile(r"[ \t]*(```+|~~~+)(.*)")
_VISIBLE = re.compile(r"[^\n]")
_OPEN = re.compile(r"^[ \t]*<task\b(?P<attributes>[^>]*)>", re.IGNORECASE | re.MULTILINE)
_TYPE = re.compile(r"type\s*=\s*[\"']?(?P<type>[\w:-]+)", re.IGNORECASE)
_CLOSE = re.compile(r"</tasks?\s*>|^[ \t]*<task\b", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r"</task\s*>", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?:Task\s+)?(?P<key>\d+(?:[.-]\d+)*[a-z]?)\s*[:.)\uff1a\u2013\u2014-]\s*", re.IGNORECASE
)
_FRONT = re.compile(r"\A---[ \t]*\n(?P<fields>.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
# What an agent of GSD would do with the plan, and harness does not.
_ITS_OWN = re.compile(r"<(execution_context|output)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_FOR_PERSON = (
    *("name", "what-built", "how-to-verify", "decision", "context", "options", "action", "instructions"),
    *("verify", "done", "resume-signal"),
)
_OPTIONS = re.compile(r"<options\b.*?</options\s*>", re.DOTALL | re.IGNORECASE)
_LONGEST_TITLE = 120


def read(doc: Document) -> Plan | None:
    """Return the plan; None if it has no `<task …>`."""
    text = doc.text
    seen = _structure(text)
    found = []
    for opened in _OPEN.finditer(seen):
        closed = _CLOSE.search(seen, opened.end())
        found.append((opened, closed.start() if closed else len(text)))
    names = [_field(_OPTIONS.sub("", text[opened.end() : end]), "name") for opened, end in found]
    if not any(names) and not any(_TYPE.search(opened["attributes"]) for opened, _ in found):
        return None
    line_ends = [match.start() for match in re.finditer("\n", text)]
    numbers = [_NUMBER.match(name) for name in names]
    taken = {match["key"] for match in numbers if match}
    places = [f"#{place}" if str(place) in taken else str(place) for place in range(1, len(found) + 1)]
    keys = unique([match["key"] if match else place for match, place in zip(numbers, places, strict=True)])
    tasks = []
    for (opened, end), name, number, key in zip(found, names, numbers, keys, strict=True):
        body = text[opened.end() : end]
        kind = _TYPE.search(opened["attributes"])
        human = _words(body) if kind and kind["type"].lower().startswith("checkpoint") else None
        title = name[number.end() :] if number else name
        tasks.append(
            PlannedTask(
                key,
                title or _title(_OPTIONS.sub("", body)),
                textwrap.dedent(body).strip(),
                (
                    bisect_left(line_ends, opened.start()) + 1,
                    bisect_left(line_ends, end) + text.startswith("</", end),
                ),
                check=None if human else _check(body),
                human=human,
            )
        )
    front = _FRONT.match(text)
    fields = front["fields"] if front else ""
    outside = text[front.end() if front else 0 : found[0][0].start()] + text[found[-1][1] :]
    header = without_comments(_ITS_OWN.sub("", re.sub(r"</?tasks?\s*>", "", outside)))
    return Plan(header, tuple(tasks), _name(fields), _depends_on(fields), _wave(fields))


def _structure(text: str) -> str:
    """Return `text` with blanks in the place of fenced code and comments.

    A fence without an end is text, and so is one that would hide where a task ends, as one in another does.
    """
    lines = text.split("\n")
    fence, first, number = "", 0, 0
    while number < len(lines):
        mark = _FENCE.match(lines[number])
        if mark and not fence:
            fence, first = mark[1], number
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            hidden = "\n".join(lines[first : number + 1])
            if len(_END.findall(hidden)) > len(_OPEN.findall(hidden)):
                number = first
            else:
                lines[first : number + 1] = [" " * len(each) for each in lines[first : number + 1]]
            fence = ""
        number += 1
    return with_comments("\n".join(lines), lambda comment: _VISIBLE.sub(" ", comment))


def _field(body: str, name: str) -> str:
    """Return the text of the element `name`, in one line."""
    match = re.search(rf"<{name}\b[^>]*>(.*?)(?:</{name}\s*>|\Z)", body, re.DOTALL | re.IGNORECASE)
    return " ".join(html.unescape(match[1]).split()) if match else ""


def _check(body: str) -> str | None:
    """Return the commands of `<automated>`, or else that of `<verify>`."""
    verify = re.search(r"<verify\b[^>]*>(.*?)(?:</verify\s*>|\Z)", body, re.DOTALL | re.IGNORECASE)
    if not verify:
        return None
    automated = re.findall(r"<automated\b[^>]*>(.*?)</automated\s*>", verify[1], re.DOTALL | re.IGNORECASE)
    texts = [textwrap.dedent(html.unescape(text)).strip() for text in automated or [verify[1]]]
    return commands.automated(texts) if automated else commands.whole(texts[0])


def _words(body: str) -> str:
    """Return what a checkpoint asks a person."""
    parts = (f"{name.replace('-', ' ')}: {said}" for name in _FOR_PERSON if (said := _field(body, name)))
    return re.sub(r"<[^>]+>", " ", " / ".join(parts)) or "Look at what was done so far."


def _title(body: str) -> str:
    """Return the first sentence of what `body` says first, as a title."""
    said = [_field(body, name) for name in _FOR_PERSON] + [" ".join(re.sub(r"<[^>]+>", " ", body).split())]
    first = re.split(r"(?<=[.!?])\s", next(filter(None, said), "Task without a name"))[0]
    return textwrap.shorten(first, _LONGEST_TITLE, placeholder=" …")


def _value(fields: str, name: str) -> str:
    match = re.search(rf"^{name}:[ \t]*(?P<value>[^\n]*(?:\n[ \t]*-[ \t][^\n]*)*)", fields, re.MULTILINE)
    return re.sub(r"\s#[^\n]*", "", match["value"]) if match else ""


def _names(value: str) -> Strings:
    return tuple(re.findall(r"[\w.-]*\w", re.sub(r"^\s*-\s", " ", value, flags=re.MULTILINE)))


def _name(fields: str) -> str:
    """Return `01-02` for plan 2 of phase 1."""
    plan = next(iter(_names(_value(fields, "plan") or _value(fields, "plan_number"))), "")
    phase = re.match(r"[\"']?(\d+(?:\.\d+)?)\b", _value(fields, "phase").strip())
    return f"{phase[1]}-{plan}" if phase and plan and "-" not in plan else plan


def _depends_on(fields: str) -> Strings | None:
    return _names(_value(fields, "depends_on")) or (
        () if re.search(r"^depends_on:", fields, re.MULTILINE) else None
    )


def _wave(fields: str) -> int | None:
    digits = re.match(r"\d{1,6}", _value(fields, "wave").strip())
    return int(digits[0]) if digits else None


FORMAT = Format("gsd", "GSD plan", 'elements such as `<task type="auto">`', _OPEN, read)
