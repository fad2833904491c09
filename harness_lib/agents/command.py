r"""Any shell command as an agent: `--agent-command 'my-agent --yes'`.

The command runs in `sh -c` in the task's work tree. The brief is on its standard input and, as a file, at
HARNESS_BRIEF_FILE; HARNESS_TASK_ID names the task, HARNESS_MODEL the model if one was chosen. Extra arguments
are "$1", "$2", … Its exit code matters little: where the task's check passes, it has finished.

Every line that it prints is a sign of activity. A line that is a JSON object says more, by these keys, all of
them optional, alone or together:

    {"action": "make test"}              a step; the same one again and again without a change is a loop
    {"tokens": 1200, "cost_usd": 0.08}   what was used so far, as totals
    {"said": "Added the parser."}        its last message
    {"limit_resets_at": "2026-11-22T15:00:00Z"}   a usage limit; an ISO moment, seconds since 1970, or null
    {"transient": "503 from the API"}    an external failure; try again
    {"login": "no API key"}              the user must act
    {"session_id": "3f2a"}               what it calls its conversation, for the record of the run

An `action` or `said` after a trouble says that it is over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from harness_lib.agents import registry, resets, stream
from harness_lib.agents.adapter import Adapter, Launch, Report
from harness_lib.agents.troubles import of_kind
from harness_lib.errors import UsageError

_KEYS = frozenset({"action", "tokens", "cost_usd", "said", "limit_resets_at", "transient", "login"})


def adapter(template: str) -> Adapter:
    """Make the adapter of the shell command `template`.

    Raises UsageError if there is nothing in it.
    """
    if not template.strip():
        raise UsageError("The agent's command is empty.", "Write it as --agent-command 'my-agent --yes'.")
    return Command(template)


class Command(NamedTuple):
    """The adapter of one command."""

    template: str
    name: str = "command"
    program: str = "sh"
    exit_tells: bool = False

    @property
    def title(self) -> str:
        """The name for people: the command itself."""
        return stream.one_line(self.template, 60)

    def launch(self, brief: str, *, model: str | None = None, extra: Sequence[str] = ()) -> Launch:
        """Return the command that starts it."""
        env = {"HARNESS_MODEL": model} if model else {}
        # A command that names no known agent may still start any.
        named = _known(self.template)
        argv = ("sh", "-c", self.template, "sh", *extra)
        return Launch(
            argv,
            stdin=brief,
            env=env,
            writable=tuple(path for each in named or _known() for path in each.writable),
            homes=tuple(name for each in named for name in each.homes),
            clouds={name: words for each in named for name, words in each.clouds.items()},
        )

    def read(self, report: Report, line: str, now: datetime) -> Report:
        """Add what `line` says to `report`, and return it."""
        event = stream.event(line)
        if event is None or not _KEYS & event.keys():
            return stream.noted(report, line)
        report = stream.spent(report, stream.number(event, "tokens"), stream.number(event, "cost_usd"))
        step = event.get("action")
        if step is not None:
            shown = step if isinstance(step, str) else ""
            report = stream.acted(report, "action", step, shown)
        return _trouble(stream.spoke(report, stream.text(event, "said")), event, now)


def _known(template: str = "") -> list[Launch]:
    """Return how the known agents are started that `template` names; all for an empty one."""
    adapters = registry.ADAPTERS.values()
    found = (each for each in adapters if not template or re.search(rf"\b{each.program}\b", template))
    return [each.launch("") for each in found]


def _trouble(report: Report, event: Mapping[str, object], now: datetime) -> Report:
    if "limit_resets_at" in event:
        seconds = stream.number(event, "limit_resets_at")
        said = stream.text(event, "limit_resets_at")
        until = resets.at_epoch(seconds, now) if seconds else resets.moment(f"reset {said}", now)
        report = stream.troubled(report, of_kind("limit", "usage limit reached", now, until))
    for kind in ("transient", "login"):
        if event.get(kind):
            words = stream.text(event, kind) or kind
            report = stream.troubled(
                report, of_kind("login" if kind == "login" else "transient", words, now, None)
            )
    return report
