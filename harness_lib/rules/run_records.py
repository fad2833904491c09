"""Read the record of a run: its events, folded into the attempts that it made.

A record is a sequence of JSON objects: `Opened` first, then events (`rules/events.py`), and `Closed` at the
end, which the record of a killed run lacks. What cannot be read is skipped, as a kill may tear the last line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness_lib.rules import events
from harness_lib.text import Strings, cut

# Bounds of what one event may write and one attempt may keep.
LONGEST_TEXT = 1000
MOST_ITEMS = 50
MOST_STEPS = 500
MOST_NOTICES = 500


class Opened(NamedTuple):
    """The beginning of a run: when (epoch seconds), its process, its agent, and the commit of its branch."""

    run: str
    at: float
    pid: int
    started: str
    boot: str
    agent: str
    workers: int
    target: str
    tip: str | None = None
    merge: str = "local"


class Closed(NamedTuple):
    """The end of a run: why it ended, and whether every task was completed then."""

    at: float
    why: str
    complete: bool
    tip: str | None = None


class Tried(NamedTuple):
    """One attempt: times are epoch seconds, `steps` are pairs of a step and when it began.

    `status` None: the attempt goes on, or was cut off by the death of its worker at `ended`.
    `touched` are the files of the check that it changed, `session` is the agent's name for its conversation.
    `claimed_at` is when by the clock of the list.
    """

    task: str
    title: str
    number: int
    worker: int
    began: float
    ended: float | None = None
    status: str | None = None
    message: str = ""
    commit: str | None = None
    rescue: str | None = None
    warnings: Strings = ()
    files: int | None = None
    touched: Strings = ()
    logs: str = ""
    cost: float = 0.0
    tokens: int = 0
    session: str = ""
    steps: tuple[tuple[str, float], ...] = ()
    claimed_at: str | None = None


class Told(NamedTuple):
    """Something that concerned the whole run: when, of which kind, and in which words."""

    at: float
    kind: str
    message: str


class Ran(NamedTuple):
    """One run; `closed` None: it goes on (`alive`) or was killed after `last` (epoch seconds)."""

    opened: Opened
    closed: Closed | None
    last: float
    tried: tuple[Tried, ...]
    told: tuple[Told, ...] = ()
    alive: bool = False

    @property
    def killed(self) -> bool:
        """Whether its process ended without a word."""
        return not self.closed and not self.alive


def write(record: Opened | Closed | events.Event) -> dict[str, Any]:
    """Return `record` as an object for JSON, with long texts cut."""
    if isinstance(record, events.Event):
        return {key: _bounded(value) for key, value in events.write(record).items()}
    return {"event": type(record).__name__.lower(), **record._asdict()}


def _bounded(value: object) -> object:
    if isinstance(value, str):
        return cut(value, LONGEST_TEXT)
    return [_bounded(each) for each in value[:MOST_ITEMS]] if isinstance(value, tuple) else value


def fold(documents: Iterable[object]) -> Ran | None:
    """Return the run that `documents`, what was read of each line, tell of; None without its beginning."""
    opened: Opened | None = None
    folder = _Folder()
    closed: Closed | None = None
    for document in documents:
        record = _read(document)
        if isinstance(record, Opened):
            opened = opened or record
        elif isinstance(record, Closed):
            closed = record
        elif record:
            folder.take(record)
    if not opened:
        return None
    last = max(folder.last, opened.at, closed.at if closed else 0.0)
    return Ran(opened, closed, last, tuple(folder.ended(last)), tuple(folder.told))


def cut_off(ran: Ran, *, alive: bool) -> Ran:
    """Return `ran` with its open attempts going on if its process is `alive`."""
    if not alive or ran.closed:
        return ran
    going_on = (each._replace(ended=None) if each.status is None else each for each in ran.tried)
    return ran._replace(alive=True, tried=tuple(going_on))


class _Folder:
    """Folds events into attempts."""

    def __init__(self) -> None:
        self.last = 0.0
        self.told: list[Told] = []
        self._tried: list[Tried] = []
        self._open: dict[int, int] = {}
        self._queued: dict[str, int] = {}

    def take(self, event: events.Event) -> None:
        self.last = max(self.last, event.at)
        news, number = event.news, event.worker
        if isinstance(news, (events.Notice, events.Stuck)) and len(self.told) < MOST_NOTICES:
            kind = news.kind if isinstance(news, events.Notice) else "stuck"
            self.told.append(Told(event.at, kind, news.message))
        if isinstance(news, events.Queued):
            self._queue(number, news.task)
        if number is None:
            return
        if isinstance(news, events.Claimed):
            self._end(number, event.at)
            self._open[number] = len(self._tried)
            began = Tried(news.task, news.title, news.attempt, number, event.at, claimed_at=news.claimed_at)
            self._tried.append(began)
        elif isinstance(news, (events.Idle, events.Gone)):
            self._end(number, event.at)
        elif isinstance(news, events.Ended) and number == events.MERGER and news.task in self._queued:
            place = self._queued.pop(news.task)
            self._tried[place] = _ended(self._tried[place], event.at, news)
        elif number in self._open:
            self._change(number, event.at, news)
        elif isinstance(news, events.Ended):
            # Work of a run that was killed, which this worker has requeued.
            self._tried.append(_ended(Tried(news.task, "", 0, number, event.at), event.at, news))

    def _change(self, number: int, at: float, news: events.News) -> None:
        place = self._open[number]
        tried = self._tried[place]
        if isinstance(news, events.Ended):
            self._tried[place] = _ended(tried, at, news)
            del self._open[number]
        elif isinstance(news, events.Said):
            session = news.session or tried.session
            self._tried[place] = tried._replace(cost=news.cost, tokens=news.tokens, session=session)
        elif isinstance(news, events.Stepped) and len(tried.steps) < MOST_STEPS:
            self._tried[place] = tried._replace(steps=(*tried.steps, (news.step, at)))

    def _queue(self, number: int | None, task: str) -> None:
        """Let the last attempt at `task` end with its merge; its worker may be dead."""
        place = next((n for n in reversed(range(len(self._tried))) if self._tried[n].task == task), None)
        if place is not None:
            self._queued[task] = place
        if number is not None and self._open.get(number) == place:
            self._open.pop(number, None)

    def _end(self, number: int, at: float) -> None:
        place = self._open.pop(number, None)
        if place is not None:
            self._tried[place] = self._tried[place]._replace(ended=at)

    def ended(self, at: float) -> list[Tried]:
        """Return the attempts; those that are open were cut off at `at`."""
        for number in list(self._open):
            self._end(number, at)
        for place in self._queued.values():
            self._tried[place] = self._tried[place]._replace(ended=at)
        return self._tried


def _ended(tried: Tried, at: float, news: events.Ended) -> Tried:
    return tried._replace(ended=at, **{name: value for name, value in vars(news).items() if name != "task"})


def _read(document: object) -> Opened | Closed | events.Event | None:
    """Return the record in `document`; None if it was torn, forged or written by another version."""
    if not isinstance(document, Mapping):
        return None
    try:
        if document.get("event") in ("opened", "closed"):
            fields = {key: value for key, value in document.items() if key != "event"}
            record = (Opened if document["event"] == "opened" else Closed)(**fields)
            return record if _fits(record) else None
        event = events.read(document)
    except (KeyError, TypeError):
        return None
    at, worker = document.get("at"), document.get("worker")
    is_placed = isinstance(at, (int, float)) and (worker is None or isinstance(worker, int))
    return event if is_placed and _fits(event.news) else None


# What the annotation of a field says of its value in JSON; all others are text.
_KINDS: dict[str, Any] = {"Strings": tuple, "float": (int, float), "int": int, "bool": bool}


def _fits(record: object) -> bool:
    """Return whether each field of `record` has its type: a clone may bring records along."""
    for name, hint in type(record).__annotations__.items():
        value, allowed = getattr(record, name), str(hint)
        kind = next((_KINDS[word] for word in _KINDS if word in allowed), str)
        if not (isinstance(value, kind) or (value is None and "None" in allowed)):
            return False
        if isinstance(value, tuple) and not all(isinstance(each, str) for each in value):
            return False
    return True


def window(runs: Sequence[Ran], since: float | None) -> tuple[tuple[Ran, ...], float]:
    """Return the runs in question, oldest first, and from when on attempts count (epoch seconds).

    These are the runs that ended after `since`. Without it they are the runs since one that left the list
    complete; if there is none after that one, those up to it.
    """
    ordered = sorted(runs, key=lambda ran: ran.opened.at)
    if since is not None:
        return tuple(ran for ran in ordered if ran.alive or ran.last >= since), since
    groups: list[list[Ran]] = [[]]
    for ran in ordered:
        groups[-1].append(ran)
        if ran.closed and ran.closed.complete:
            groups.append([])
    kept = groups[-1] or (groups[-2] if len(groups) > 1 else [])
    before = sum(len(group) for group in groups) - len(kept) if groups[-1] else len(ordered) - len(kept)
    return tuple(kept), ordered[before - 1].last if before else 0.0
