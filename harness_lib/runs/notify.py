"""Call the command of `harness run --notify CMD` when a run needs the user or is over.

It never delays the run: it runs beside it, for a minute at most. A failure is a warning.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import Exit, HarnessError
from harness_lib.rules import selection
from harness_lib.rules.events import Ended, Event, Notice, Stepped, Stuck
from harness_lib.rules.run_state import RunState
from harness_lib.runs.scheduler import Watch
from harness_lib.system.processes.child import Child
from harness_lib.system.processes.runner import TIMED_OUT, start_timed

Kind = Literal["done", "stopped", "failed", "stuck", "limit"]

SECONDS = 60.0
# Seconds to wait after the run, enough to learn that a command cannot start.
LAST_SECONDS = 2.0
# Lengths of one message, and of the report at the end, in characters.
MESSAGE_LENGTH = 500
REPORT_LENGTH = 400
LOG = "notify.log"


class Notifier:
    """Passes the events of a run on to `watch`, and calls `command` when the user should know."""

    def __init__(self, ctx: Context, command: str, watch: Watch) -> None:
        self._ctx, self._command, self._watch = ctx, command, watch
        self._running: list[Child] = []
        self._board = RunState()
        self._limited_until = 0.0
        self._began = self._stuck = False

    def watch(self, event: Event, state: RunState) -> None:
        """Take one event of the run."""
        self._began, self._board = True, state
        self._watch(event, state)
        news = self._news(event)
        if news is not None:
            self._tell(*news)
        self._warn()

    def over(self, reply: Reply) -> None:
        """Report how the run has ended."""
        self._tell("done" if reply.exit is Exit.DONE else "stopped", reply.message, REPORT_LENGTH)
        self._wait()

    def broke(self, problem: HarnessError) -> None:
        """Report that the run cannot go on, unless it never began: then its caller has seen the error."""
        if self._began:
            self._tell("stopped" if self._stuck else "stuck", problem.message, REPORT_LENGTH)
        self._wait()

    def _news(self, event: Event) -> tuple[Kind, str] | None:
        news = event.news
        if isinstance(news, Stuck):
            # If no other worker has a task, the end follows at once, with more details.
            rows = self._board.rows.values()
            self._stuck = any(row.task and row.worker != event.worker for row in rows)
            return ("stuck", news.message) if self._stuck else None
        if isinstance(news, Notice) and news.kind == "limit":
            return "limit", news.message
        if isinstance(news, Stepped) and news.step == "limit" and event.at >= self._limited_until:
            # All workers meet the same limit within seconds: that is one message.
            self._limited_until = news.until or event.at
            return "limit", news.message
        if isinstance(news, Ended) and news.status == "failed" and self._is_lost(news.task):
            return "failed", f"{news.task} failed for good. {news.message}"
        return None

    def _is_lost(self, name: str) -> bool:
        try:
            task = self._ctx.store.ask().task(name)
        except HarnessError:
            # The user is editing the list; failures are reported at the end of the run.
            return False
        return task is not None and selection.is_permanent(task)

    def _tell(self, kind: Kind, message: str, length: int = MESSAGE_LENGTH) -> None:
        env = {
            **self._ctx.env,
            "HARNESS_EVENT": kind,
            "HARNESS_MESSAGE": "\n".join(quoting.one_line(line, length) for line in message.splitlines()),
        }
        log, where = self._ctx.root.logs / LOG, self._ctx.root.path
        if not where.is_dir():
            # The command may have been moved away.
            log, where = Path(os.devnull), Path("/")
        try:
            self._running.append(start_timed(self._command, env=env, cwd=where, log=log, seconds=SECONDS))
        except OSError as error:
            self._say(f"The command of --notify could not be started: {error}")

    def _warn(self) -> None:
        ended = [child for child in self._running if child.poll() is not None]
        self._running = [child for child in self._running if child not in ended]
        for child in ended:
            if child.returncode:
                how = "did not end in time" if child.returncode == TIMED_OUT else "failed"
                self._say(f"The command of --notify {how}; see {self._ctx.root.logs / LOG}")

    def _wait(self) -> None:
        until = self._ctx.clock.monotonic() + LAST_SECONDS
        while self._running and self._ctx.clock.monotonic() < until:
            self._ctx.clock.sleep(0.05)
            self._warn()

    def _say(self, message: str) -> None:
        at = self._ctx.clock.now().timestamp()
        self._watch(Event(None, at, Notice("warning", message)), self._board)
