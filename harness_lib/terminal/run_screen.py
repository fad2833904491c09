"""Show a run while it goes on: lines, JSON objects, or a live table above which the lines go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from harness_lib import timestamps
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.rules import events, stats
from harness_lib.rules.events import Claimed, Ended, Event, Gone, Notice, Queued, Stepped, Stuck, Unstarted
from harness_lib.rules.run_state import RunState
from harness_lib.rules.stats import Ahead
from harness_lib.runs import overview
from harness_lib.runs.scheduler import Watch
from harness_lib.terminal.render import Screen
from harness_lib.text import counted, span

if TYPE_CHECKING:
    from rich.console import RenderableType

MESSAGE_LENGTH = 500
ENDED = {"pending": "goes back"}
TICK = Notice("tick")


@contextmanager
def watching_run(ctx: Context, screen: Screen) -> Iterator[Watch]:
    """Yield what is to be called with each event of the run that goes on meanwhile."""
    if screen.is_terminal and _can_move(screen):
        with _table(ctx, screen) as watch:
            yield watch
    else:
        show = _json_line if screen.json else _line

        def watch_lines(event: Event, _state: RunState) -> None:
            # A full disk or a reader that is gone ends no run: its record and `harness status` have it all.
            with suppress(OSError):
                show(screen, event)

        yield watch_lines


def _can_move(screen: Screen) -> bool:
    from harness_lib.terminal import drawing  # noqa: PLC0415 (a pipe does not pay for rich)

    return not drawing.console(screen.out).is_dumb_terminal


def _json_line(screen: Screen, event: Event) -> None:
    if event.news != TICK:
        screen.data(json.dumps(events.write(event)))


def _line(screen: Screen, event: Event) -> None:
    for text in sentences(event):
        screen.data(f"{timestamps.render(_moment(event.at))} {text}")


@contextmanager
def _table(ctx: Context, screen: Screen) -> Iterator[Watch]:
    from harness_lib.terminal import drawing  # noqa: PLC0415 (as above)

    shown = _Shown(ctx)

    def draw() -> RenderableType:
        now = ctx.clock.now().timestamp()
        return drawing.run(shown.state, shown.counts, shown.ahead, now)

    def take(event: Event, state: RunState) -> None:
        shown.take(state)
        clock = _moment(event.at).astimezone().strftime("%H:%M:%S")
        for text in sentences(event):
            live.console.print(drawing.coloured(f"{clock} {text}"))

    with drawing.live(screen.out, draw, per_second=2, transient=True) as live:
        yield take


class _Shown:
    """What the table shows; drawn by a thread of its own, as checks of the final pass take their time."""

    def __init__(self, ctx: Context) -> None:
        self.state = RunState(began=ctx.clock.now().timestamp())
        self.counts: stats.Counts | None = None
        self.ahead = Ahead()
        self._ctx = ctx
        self._seen: object = None

    def take(self, state: RunState) -> None:
        """Show the state of the run, and count the tasks again if the list has changed."""
        self.state = state
        seen = self._ctx.store.stamp()
        if seen == self._seen:
            return
        try:
            questions = self._ctx.store.ask()
        except HarnessError:
            # The user is editing the list; the scheduler says what is to be said about that.
            return
        self.counts, self.ahead, self._seen = questions.counts(), questions.ahead(), seen


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, timezone.utc)


def sentences(event: Event) -> Iterator[str]:
    """Yield the lines that the user reads of `event`; of what is of no interest to them there are none."""
    who = f"[{event.worker}] " if event.worker else ""
    texts = [_sentence(event)]
    if isinstance(event.news, Ended):
        label = "look at" if event.news.status == "completed" else "warning"
        texts += [f"{label}: {text}" for text in event.news.warnings]
    for text in filter(None, texts):
        yield who + quoting.one_line(text, MESSAGE_LENGTH)


def _sentence(event: Event) -> str | None:
    news = event.news
    if isinstance(news, Claimed):
        return f"{news.task} attempt {news.attempt}: {news.title}"
    if isinstance(news, Queued):
        return f"{news.task} has passed its check and waits to be merged"
    if isinstance(news, Ended):
        how = ENDED.get(news.status, news.status) + _committed(news)
        return f"{news.task} {how}{news.message and f': {news.message}'}"
    if isinstance(news, Stepped) and news.message:
        return f"{_step(news, event.at)}: {news.message}"
    if isinstance(news, Gone):
        is_death = news.code and not isinstance(news, Unstarted)
        return f"the worker has died: {news.message}" if is_death else None
    return news.message or None if isinstance(news, (Notice, Stuck)) else None


def _committed(news: Ended) -> str:
    if news.status != "completed" or not news.commit or not news.files:
        return ""
    return f" (commit {news.commit[:12]}, {counted(news.files, 'file')})"


def _step(news: Stepped, at: float) -> str:
    step = overview.STEPS.get(news.step, news.step)
    if news.until is None:
        return step
    wait = span(news.until - at)
    return f"{step}, goes on at {timestamps.render(_moment(news.until))} (in {wait})"
