"""Draw a report as one HTML page without outside resources; the only user of Jinja2.

A strict Content-Security-Policy lets nothing run but the page's own script, known by its hash; all texts are
escaped, and characters that print nothing are replaced.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from harness_lib import errors
from harness_lib.checks import check_of
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError, RefusedError
from harness_lib.rules import graph, run_state
from harness_lib.rules.events import Ended, Event, Notice
from harness_lib.rules.run_records import Ran, Tried
from harness_lib.runs import report_facts, report_text
from harness_lib.runs.report_facts import Facts
from harness_lib.runs.scheduler import Watch
from harness_lib.system import fs
from harness_lib.system.git import history
from harness_lib.system.place import own_files
from harness_lib.task import Task
from harness_lib.text import cut, harmless, safe_name, span

WIDTH, MARGIN = 1000, 60
MOST_BARS = 4000
COLUMN, ROW = 110, 22
TEXT, LOG_BYTES, MOST_LOGS = 6000, 3000, 3
# A page is renewed so seldom that it takes no more than a fiftieth of the run's time.
LEAST_SECONDS, SHARE = 5.0, 50
# By this in its first bytes a page of ours is known from a file of the user's.
GENERATOR, BEGINNING = b'content="harness report"', 512
_ANOTHER = "Name another file, such as report.html."


def write(ctx: Context, path: Path, since: float | None = None, *, live: bool = False) -> Facts:
    """Write the page to `path`, and return its facts.

    Raises RefusedError (another file is there), EnvSetupError (it cannot be written).
    """
    facts = report_facts.gather(ctx, since)
    # A link is followed: what it leads to is replaced.
    path = path.resolve()
    try:
        _require_page(path)
        fs.write(path, render(ctx, facts, live=live).encode("utf-8", "replace"), durable=False)
    except OSError as error:
        cure = errors.cure(error) if path.parent.is_dir() else f"Make the directory {path.parent} first"
        raise EnvSetupError(
            f"The page {path} cannot be written. {errors.describe(error)}", f"{cure}."
        ) from error
    return facts


def _require_page(path: Path) -> None:
    """Raise RefusedError if `path` is a file with anything but such a page in it, or a device or a pipe."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        # Opening a pipe would wait for whoever writes into it.
        raise RefusedError(f"{path} is not a file, so it is not replaced.", _ANOTHER)
    try:
        with path.open("rb") as stream:
            begin = stream.read(BEGINNING)
    except FileNotFoundError:
        return
    if begin and GENERATOR not in begin:
        raise RefusedError(f"{path} is not a page of harness, so it is not replaced.", _ANOTHER)


def renewing(ctx: Context, path: Path, watch: Watch) -> Watch:
    """Return `watch`, renewing the page at `path` while the run goes on; a failure is reported once."""
    due, broken = 0.0, False

    def renew(event: Event, state: run_state.RunState) -> None:
        nonlocal due, broken
        watch(event, state)
        now = ctx.clock.monotonic()
        if now < due or not isinstance(event.news, (Ended, Notice)):
            return
        try:
            write(ctx, path, live=True)
        except HarnessError as error:
            if not broken:
                watch(Event(None, event.at, Notice("warning", error.message)), state)
            broken = True
        took = ctx.clock.monotonic() - now
        due = now + max(LEAST_SECONDS, SHARE * took)

    return renew


def render(ctx: Context, facts: Facts, *, live: bool = False) -> str:
    """Return the page."""
    import jinja2  # noqa: PLC0415 (nothing but a page needs it)

    here = Path(__file__)
    files = (here.with_name(f"report.{kind}") for kind in ("css", "js"))
    style, script = (_Own(file.read_text(encoding="utf-8")) for file in files)
    environment = jinja2.Environment(autoescape=True, finalize=_clean, undefined=jinja2.StrictUndefined)
    environment.filters["anchor"] = _anchor
    template = environment.from_string(here.with_name("report.html").read_text(encoding="utf-8"))
    tasks = ctx.ask().search()
    red = {each.task for each in facts.decisions if each.kind == "red"}
    hows = {task.id: "red" if task.id in red else task.status for task in tasks}
    own = _by_task(facts.runs)
    head = list(report_text.header(facts))
    return template.render(
        style=style,
        style_hash=style.hash,
        script=script,
        script_hash=script.hash,
        live=live,
        when=head[0],
        head=head[1:],
        money=report_text.money(facts),
        facts=facts,
        lanes=list(_lanes(facts)),
        costs=_costs(facts),
        first=f"{report_text.local(facts.began):%d %b %H:%M}",
        last=f"{report_text.local(facts.ended):%d %b %H:%M}",
        graph=_graph(tasks, hows),
        tasks=list(_tasks(ctx, facts, tasks, hows, own)),
    )


class _Own(str):
    """A file of this package, which is not escaped, and its hash for the policy of the page."""

    __slots__ = ()

    def __html__(self) -> str:
        return self

    @property
    def hash(self) -> str:
        return base64.b64encode(hashlib.sha256(self.encode()).digest()).decode()


def _clean(value: object) -> object:
    """Return `value` without characters that print nothing or reorder others."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return harmless(value, keep="\n\t")
    return value


def _anchor(task_id: str) -> str:
    return "task-" + quote(task_id, safe="")


def _by_task(runs: Iterable[Ran]) -> dict[str, list[Tried]]:
    own: dict[str, list[Tried]] = {}
    for ran in runs:
        for each in ran.tried:
            own.setdefault(each.task, []).append(each)
    return own


# -- the drawings


class _Bar(NamedTuple):
    task: str
    how: str
    x: float
    width: float
    words: str


class _Lane(NamedTuple):
    name: str
    bars: list[_Bar]


def _x(facts: Facts, at: float) -> float:
    span = max(1.0, facts.ended - facts.began)
    share = min(1.0, max(0.0, (at - facts.began) / span))
    return round(MARGIN + share * (WIDTH - MARGIN), 1)


def _lanes(facts: Facts) -> Iterator[_Lane]:
    """Yield the attempts of each worker, the newest ones if there are very many."""
    tried = [each for ran in facts.runs for each in ran.tried][-MOST_BARS:]
    for number in sorted({each.worker for each in tried}):
        own = sorted((each for each in tried if each.worker == number), key=lambda each: each.began)
        bars = []
        for each, following in zip_longest(own, own[1:]):
            # A worker whose work waits to be merged has begun with another task.
            ended = min(each.ended or facts.ended, following.began if following else facts.ended)
            x, end = _x(facts, each.began), _x(facts, ended)
            bars.append(_Bar(each.task, _how(each), x, max(1.5, round(end - x, 1)), _words(each)))
        yield _Lane(f"worker {number}", bars)


def _how(tried: Tried) -> str:
    return tried.status or ("cut" if tried.ended else "now")


def _words(tried: Tried) -> str:
    took = span((tried.ended or tried.began) - tried.began)
    how = {"pending": "handed back", "cut": "cut off", "now": "goes on"}.get(_how(tried), tried.status)
    cost = f", ${tried.cost:.2f}" if tried.cost else ""
    tokens = f", {tried.tokens:,} tokens" if tried.tokens else ""
    commit = f", commit {tried.commit[:12]}" if tried.commit else ""
    session = f", conversation {tried.session}" if tried.session else ""
    began = f"{report_text.local(tried.began):%H:%M:%S}"
    return f"{tried.task} {how}, {began}, {took}{cost}{tokens}{commit}{session}"


def _costs(facts: Facts) -> str:
    """Return the points of the line of all cost so far; "" if no agent told its cost."""
    tried = (each for ran in facts.runs for each in ran.tried if each.cost)
    paid = sorted((each.ended or facts.ended, each.cost) for each in tried)
    total, points = 0.0, [f"{MARGIN},120"]
    for at, cost in paid:
        before = total
        total += cost
        points += [f"{_x(facts, at)},{_y(before, facts.cost)}", f"{_x(facts, at)},{_y(total, facts.cost)}"]
    return " ".join([*points, f"{WIDTH},{_y(total, facts.cost)}"]) if paid else ""


def _y(cost: float, of: float) -> float:
    return round(120 - 100 * cost / of, 1)


class _Node(NamedTuple):
    task: str
    how: str
    x: int
    y: int
    words: str


class _Graph(NamedTuple):
    width: int
    height: int
    nodes: list[_Node]
    edges: str


def _graph(tasks: Sequence[Task], hows: Mapping[str, str]) -> _Graph:
    """Return the tasks in columns, each to the right of all that it depends on."""
    columns = graph.depths(tasks)
    filled: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    nodes = []
    for task in tasks:
        column = columns[task.id]
        row = filled.get(column, 0)
        filled[column] = row + 1
        places[task.id] = column * COLUMN + 4, row * ROW + 4
        nodes.append(_Node(task.id, hows[task.id], *places[task.id], f"{task.id} {task.title}"))
    edges = [
        f"M{places[name][0] + 84},{places[name][1] + 8}L{places[task.id][0]},{places[task.id][1] + 8}"
        for task in tasks
        for name in task.depends_on
        if name in places
    ]
    width = (max(filled, default=0) + 1) * COLUMN
    return _Graph(width, max(filled.values(), default=1) * ROW + 4, nodes, "".join(edges))


# -- each task


def _tasks(
    ctx: Context,
    facts: Facts,
    tasks: Iterable[Task],
    hows: Mapping[str, str],
    own: Mapping[str, Sequence[Tried]],
) -> Iterator[dict[str, Any]]:
    diffs = _diffs(ctx, facts)
    work = {each.task: each for each in (*facts.done, *facts.others)}
    for task in tasks:
        done = work.get(task.id)
        cost = f"${done.cost:.2f}" if done and done.cost else ""
        tries = f"{done.tries} tries" if done and done.tries > 1 else ""
        time = span(done.seconds) if done else ""
        yield {
            "id": task.id,
            "title": task.title,
            "how": hows[task.id],
            "word": hows[task.id].replace("_", " "),
            "numbers": " ".join(filter(None, (time, cost, tries))),
            "description": cut(task.description or "", TEXT),
            "check": cut(check_of(task).text or "", TEXT),
            "look_at": [*task.look_at, *([task.halt] if task.halt else []), *task.error_log[-1:]],
            "tried": [
                {
                    "words": _words(each),
                    "message": each.message,
                    "rescue": each.rescue or "",
                    "steps": " · ".join(
                        f"{report_text.local(at):%H:%M:%S} {step}" for step, at in each.steps[-20:]
                    ),
                }
                for each in own.get(task.id, ())
            ],
            "logs": list(_logs(ctx, task)) if done else [],
            "diff": diffs.get(task.completed_commit or "", "") if done else "",
            "commit": f"commit {(task.completed_commit or '')[:12]}",
        }


def _logs(ctx: Context, task: Task) -> Iterator[tuple[str, str]]:
    """Yield the names and the ends of the newest logs of a task."""
    found = []
    for path in fs.matching(ctx.root.logs / safe_name(task.id), "*.log"):
        with suppress(OSError):
            found.append((path.stat().st_mtime, path))
    for _, path in sorted(found)[-MOST_LOGS:]:
        with suppress(OSError):
            text = own_files.tail(path, LOG_BYTES).decode("utf-8", "replace")
            yield path.name, f"… {text}" if path.stat().st_size > LOG_BYTES else text


def _diffs(ctx: Context, facts: Facts) -> dict[str, str]:
    """Return the beginning of the difference of each commit that these runs have merged."""
    found: dict[str, str] = {}
    for merged in filter(None, (facts.merged, *facts.elsewhere)):
        if merged.before and merged.after and merged.commits:
            with suppress(HarnessError):
                found |= history.patches(ctx.main, merged.before, merged.after, TEXT)
    return found
