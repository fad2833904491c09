"""Read plans of other tools, and turn them into drafts of tasks: their order, and what is said of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness_lib import sha256
from harness_lib.core.context import Context
from harness_lib.core.import_parse import Draft, Drafts, Wait
from harness_lib.errors import UsageError
from harness_lib.records.fields import COMMAND, LONG
from harness_lib.rules import attempts, checklist, plans
from harness_lib.rules.plans.plan import Document, Plan, PlannedTask, Read, in_order, is_called, open_before
from harness_lib.text import cut, in_one_line, some

Order = Literal["parallel", "sequential"]

TITLE_LENGTH = 200
# What is said behind a cut description has room there.
_DIGEST = 8
_CUT = (LONG.most or 0) - 500
_ELSEWHERE = re.compile(
    r"cd [\"']?(?:[A-Za-z]:|~)?/(?:[^\"'\n;&|]*/)?(?P<name>[^/\"'\n;&|]+?)/?[\"']? *&& *(?=\S)"
)


def _plan_name(ctx: Context, path: Path) -> str:
    """Return the name of the plan at `path` as a source of tasks: from the top of the work tree.

    A link has the name of its file, unless only the link is in the work tree.
    """
    top = ctx.git.top.resolve()
    names = (path.resolve(), path.parent.resolve() / path.name)
    inside = (each.relative_to(top).as_posix() for each in names if each.is_relative_to(top))
    return next(inside, str(names[0]))


class Source(NamedTuple):
    """A file that is imported: its name for messages, its bytes, and its name as the source of tasks."""

    name: str
    data: bytes
    plan: str


def sources(ctx: Context, word: str) -> list[Source]:
    """Return the file that `word` names, or the files of that directory which may be plans, in order."""
    if word == "-":
        data = sys.stdin.buffer.read()
        # Another plan that is typed in later is not this one again.
        return [Source("standard input", data, f"standard input {sha256.digest(data)[:_DIGEST]}")]
    path = ctx.cwd / Path(word)
    if not word or not path.is_dir():
        return [source(ctx, path, word)]
    found = (each for kind in ("md", "markdown", "json") for each in path.rglob(f"*.{kind}"))
    inside = sorted((each.relative_to(path) for each in found if each.is_file()), key=_key)
    kept = [name for name in inside if not _PASSED_OVER.intersection(name.parts)]
    plain = {(path / name).resolve() for name in kept if not (path / name).is_symlink()}
    # A link beside its plan is no other plan.
    return [
        source(ctx, path / name, str(Path(word) / name))
        for name in kept
        if not (path / name).is_symlink() or (path / name).resolve() not in plain
    ]


# Changes of OpenSpec that are done, and what other programs keep.
_PASSED_OVER = frozenset(("archive", "node_modules", ".git", ".harness", ".venv"))


def _key(path: Path) -> list[list[tuple[int, str]]]:
    """Return the key that sorts paths by name, numbers in them as numbers."""
    return [
        [(int(digits or 0), text) for text, digits in re.findall(r"(\D*)(\d*)", part.casefold())]
        for part in path.parts
    ]


def source(ctx: Context, path: Path, word: str) -> Source:
    """Return the file at `path`, which `word` names. Raises UsageError if it cannot be read."""
    if not word:
        raise UsageError(
            "The name of the plan is empty.", "Name its file; is a variable of your shell not set?"
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{word} cannot be read: {error.strerror}.", "Name a file that exists and that you may read."
        ) from error
    return Source(word, data, _plan_name(ctx, path))


def recognised(text: str, name: str, form: str | None = None) -> Read | None:
    """Return the plan `text` of the file `name`; None if it is a list of harness, or nothing that is known.

    `form` names a format. Raises UsageError if it is not that one.
    """
    if form is not None:
        chosen = next(each for each in plans.FORMATS if each.word == form)
        plan = chosen.read(Document(text))
        if not plan:
            raise UsageError(
                f"{name} does not have the format {form}. Looked for: {chosen.looks_for}.",
                "Leave out --format to have the format recognised.",
            )
        return Read(name, chosen, plan)
    found = plans.recognised(text)
    if not found or (found[0].word in ("superpowers", "openspec") and _is_check_list(text)):
        return None
    return Read(name, *found)


def _is_check_list(text: str) -> bool:
    """Return whether `text` is a check list of harness with headings or numbers as a plan has them."""
    items = [item for item in checklist.parse(text)[0] if not item.done and not item.is_group]
    return bool(items) and 2 * sum("check" in item.fields for item in items) >= len(items)


def looked_for() -> str:
    """Return what the formats are recognised by, in words."""
    return "; ".join(f"{form.looks_for} ({form.word})" for form in plans.FORMATS)


def drafts(found: Sequence[Read], top: Path, order: Order | None = None) -> Drafts:
    """Return the tasks of the plans, which follow each other, as drafts for the work tree `top`.

    `order` overrules what the plans say about it.
    """
    found = [read._replace(plan=_at_home(read.plan, top)) for read in found]
    items = [(read, task) for read in found for task in read.plan.tasks]
    titles = list(dict.fromkeys(read.form.title for read in found))
    kind = titles[0] if len(found) == 1 else f"{len(found)} plans ({some(titles)})"
    made = Drafts(kind=kind, plans={read.name: _header(read) for read in found})
    if order is None:
        after, unknown = in_order(found)
        for number, key in unknown:
            where = _place(found, *items[number])
            made.problems.append((number, f"{where}: {key!r} is not a task of this plan"))
    else:
        after = [[number - 1] if number and order == "sequential" else [] for number in range(len(items))]
    tasks = [task for _, task in items]
    for number, (read, task) in enumerate(items):
        waits = [Wait(_place(found, read, task), each + 1) for each in open_before(after, tasks, number)]
        made.items.append(_draft(found, read, task, tuple(waits)))
    made.notes += _notes(found)
    return made


def _at_home(plan: Plan, top: Path) -> Plan:
    """Return `plan` with checks that do not first go to the author's checkout of this very project."""
    tasks = []
    for task in plan.tasks:
        place = _ELSEWHERE.match(task.check or "")
        is_here = place is not None and place["name"] == top.name
        tasks.append(task._replace(check=(task.check or "")[place.end() :]) if place and is_here else task)
    return plan._replace(tasks=tuple(tasks))


def _header(read: Read) -> str:
    header = read.plan.header
    return header if len(header) <= _CUT else f"{header[:_CUT]}\n… the rest is in {read.name}."


def _place(found: Sequence[Read], read: Read, task: PlannedTask) -> str:
    where = f"line {task.lines[0]}" if task.lines[0] else f"task {task.key}"
    return where if len(found) == 1 else f"{read.name}, {where}"


def _draft(found: Sequence[Read], read: Read, task: PlannedTask, waits: tuple[Wait, ...]) -> Draft:
    title = in_one_line(re.sub(r"\*\*(.+?)\*\*", r"\1", task.title)).strip(" *:")
    document: dict[str, Any] = {
        "title": cut(title, TITLE_LENGTH) or f"Task {task.key}",
        "source": {"plan": read.name, "key": task.key},
    }
    text = task.description
    if len(text) > _CUT:
        text = f"{text[:_CUT]}\n… the rest is in {read.name}, from line {task.lines[0]}."
    if text:
        document["description"] = text
    if task.check and len(task.check) <= (COMMAND.most or 0) and "\0" not in task.check:
        document["validation"] = {"command": task.check}
    if task.priority:
        document["priority"] = task.priority
    if task.human is not None:
        halt = attempts.Halt("HUMAN", cut(in_one_line(task.human), 1000))
        document |= {"halt": halt.words, "halt_kind": halt.kind}
    place = _place(found, read, task)
    places = dict.fromkeys(("title", "description", "validation", "halt", "source"), place)
    return Draft(place, document, waits, done=task.done, places=places, lines=task.lines)


def _notes(found: Sequence[Read]) -> Iterator[str]:
    """Yield a sentence for each kind of thing in the plans that may not be intended."""
    placed = [(_place(found, read, task), task) for read in found for task in read.plan.tasks]
    away = [place for place, task in placed if not task.done and _ELSEWHERE.match(task.check or "")]
    if away:
        yield (
            f"Checks that leave the work tree: {some(away)}. "
            "Agents work in a tree of their own, so give these tasks a check without that directory."
        )
    again = ((re.fullmatch(r"(.*)\(\d+\)", task.key), place) for place, task in placed)
    twice = [f"{key[1]} ({place})" for key, place in again if key]
    if twice:
        yield f"Several tasks of a plan have the same number; each was imported: {some(twice)}."
    strays = [
        f"{'' if len(found) == 1 else f'{read.name}, '}line {line}"
        for read in found
        for line in read.plan.strays
    ]
    if strays:
        yield f"Open boxes outside of the tasks of a plan are not tasks: {some(strays)}."
    for read in found:
        names = read.plan.after or ()
        missing = [name for name in names if not any(is_called(other, read.plan, name) for other in found)]
        if missing:
            yield (
                f"{read.name} comes after {some(missing)}, which is not imported with it: "
                "import their directory, or finish that first."
            )
