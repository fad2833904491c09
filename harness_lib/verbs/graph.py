"""`harness graph`: show the dependencies as a tree or a Mermaid diagram.

Dependents are below a task. A task with several dependencies is drawn in full once, below the first of
them, and named with an arrow below the others.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from harness_lib.core import quoting
from harness_lib.core.context import Context, Reply
from harness_lib.rules import graph
from harness_lib.runs import next_step, overview
from harness_lib.state.api import Questions
from harness_lib.task import Task

SUMMARY = "show which task depends on which"
EXAMPLE = "harness graph --format mermaid"
HELP_ORDER = 220

Mark = Literal["", "shown above", "a cycle", "goes on below"]
SHOWN = 40
DEEPEST = 20
TITLE_LENGTH = 60
_HARMLESS = frozenset(" -_.,:/()+*=?!'")
COLOURS = {"completed": "#d4edda", "in_progress": "#cce5ff", "failed": "#f8d7da", "pending": "#f5f5f5"}


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--format", choices=("tree", "mermaid"), default="tree")
    parser.add_argument("--all", action="store_true", help="every task, however many there are")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Answer `harness graph`; more than 40 tasks are cut unless all are asked for."""
    questions = ctx.ask()
    drawing = draw(questions, None if args.all else SHOWN)
    is_tree = args.format == "tree"
    return Reply(
        "\n".join(plain(drawing) if is_tree else mermaid(drawing)),
        # A diagram goes into a file: no other line may follow it.
        next=next_step.of_list(ctx, questions) if is_tree else None,
        warnings=tuple(questions.warnings),
        extra={
            "format": args.format,
            "edges": [[other, task.id] for task in drawing.tasks for other in task.depends_on],
            "cycles": list(drawing.cycles),
            "more": drawing.hidden,
        },
    )


class Row(NamedTuple):
    """A line of the tree: `depth` 0 is a root; `mark` says why nothing is drawn below it."""

    depth: int
    task: Task
    mark: Mark = ""
    is_last: bool = True

    def text(self) -> str:
        """Return the text of the line, without the tree's branches."""
        if self.mark:
            return f"{self.task.id} ({self.mark})"
        return (
            f"[{overview.word(self.task)}] {self.task.id}: {quoting.one_line(self.task.title, TITLE_LENGTH)}"
        )


class Drawing(NamedTuple):
    """The drawn tasks, the rows of the tree, the cycles as text, and the number of tasks left out."""

    tasks: tuple[Task, ...]
    rows: tuple[Row, ...]
    cycles: tuple[str, ...]
    hidden: int


def draw(questions: Questions, limit: int | None) -> Drawing:
    """Return the tree of all tasks, or of at most `limit`: completed tasks are left out first."""
    tasks = total = sorted(questions.search(), key=lambda task: graph.id_key(task.id))
    if limit is not None and len(tasks) > limit:
        tasks = [task for task in tasks if not task.is_done]
    rows = list(walk(tasks))
    if limit is not None:
        rows = rows[:limit]
    shown = {row.task.id for row in rows}
    cycles = tuple(graph.describe(ring) for ring in questions.cycles())
    return Drawing(
        tuple(task for task in tasks if task.id in shown),
        tuple(rows),
        cycles[: overview.PEOPLE],
        len(total) - len(shown),
    )


def walk(tasks: Iterable[Task]) -> Iterator[Row]:
    """Yield the rows of the tree, each after its parent.

    A branch that is too deep for a line continues as a new root, so that a chain of thousands can be
    drawn; whatever hangs on nothing but a cycle begins at its lowest id.
    """
    known = {task.id: task for task in tasks}
    below: dict[str, list[Task]] = {task_id: [] for task_id in known}
    for task in known.values():
        for other in dict.fromkeys(task.depends_on):
            if other in below:
                below[other].append(task)
    roots = [task for task in known.values() if not any(other in known for other in task.depends_on)]
    drawn: set[str] = set()
    for root in [*roots, *known.values()]:
        begins = [root]
        for begin in begins:
            if begin.id in drawn:
                continue
            for row in _branch(begin, below, drawn):
                if row.mark == "goes on below":
                    begins.append(row.task)
                yield row


def _branch(root: Task, below: Mapping[str, list[Task]], drawn: set[str]) -> Iterator[Row]:
    stack = [Row(0, root)]
    path: list[str] = []
    while stack:
        row = stack.pop()
        del path[row.depth :]
        row = Row(row.depth, row.task, _mark(row, path, drawn), row.is_last)
        yield row
        if row.mark:
            continue
        drawn.add(row.task.id)
        path.append(row.task.id)
        children = below[row.task.id]
        stack += [Row(row.depth + 1, child, is_last=child is children[-1]) for child in reversed(children)]


def _mark(row: Row, path: list[str], drawn: set[str]) -> Mark:
    if row.task.id in path:
        return "a cycle"
    if row.task.id in drawn:
        return "shown above"
    return "goes on below" if row.depth > DEEPEST else ""


def plain(drawing: Drawing) -> Iterator[str]:
    """Yield the tree in box characters, the cycles, and what is left out."""
    if not drawing.rows:
        yield "no tasks yet" if not drawing.hidden else "every task is completed"
    bars: list[bool] = []
    for row in drawing.rows:
        if not row.depth:
            bars = []
            yield row.text()
            continue
        del bars[row.depth - 1 :]
        lead = "".join("│  " if bar else "   " for bar in bars)
        bars.append(not row.is_last)
        yield f"{lead}{'└─ ' if row.is_last else '├─ '}{row.text()}"
    for ring in drawing.cycles:
        yield f"cycle: {ring}"
    if drawing.hidden:
        yield f"… and {drawing.hidden} more (harness graph --all)"


def mermaid(drawing: Drawing) -> Iterator[str]:
    """Yield a Mermaid flowchart: one line per task, after what it waits for."""
    yield "flowchart TD"
    names = {task.id: f"t{place}" for place, task in enumerate(drawing.tasks)}
    for task in drawing.tasks:
        awaited = " & ".join(names[other] for other in dict.fromkeys(task.depends_on) if other in names)
        label = escape(f"{task.id}: {quoting.one_line(task.title, TITLE_LENGTH)}")
        kind = "pending" if overview.word(task) == "unproven" else task.status
        node = f'{names[task.id]}["{label}"]:::{kind}'
        yield f"  {awaited} --> {node}" if awaited else f"  {node}"
    for name, colour in COLOURS.items():
        yield f"  classDef {name} fill:{colour},stroke:#666,color:#222"
    if drawing.hidden:
        yield f"  %% and {drawing.hidden} more (harness graph --format mermaid --all)"


def escape(text: str) -> str:
    """Return `text` for a quoted label: characters with a meaning in Mermaid or HTML become `#code;`."""
    return "".join(c if c.isalnum() or c in _HARMLESS else f"#{ord(c)};" for c in text)
