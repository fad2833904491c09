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
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from harness_lib.agents import registry, resets, stream
from harness_lib.agents.adapter import Adapter, Launch, Report
from harness_lib.errors import UsageError

_KEYS = frozenset({"action", "tokens", "cost_usd", "said", "limit_resets_at", "transient", "login"})
_SAID: tuple[stream.Kind, ...] = ("transient", "login")


def adapter(template: str) -> Adapter:
    """Make the adapter of the shell command `template`. Raises UsageError if there is nothing in it."""
    if not template.strip():
        raise UsageError("The agent's command is empty.", "Write it as --agent-command 'my-agent --yes'.")

    def launch(model: str | None, extra: Sequence[str]) -> Launch:
        # A command that names no known agent may still start any.
        named = _known(template)
        return Launch(
            ("sh", "-c", template, "sh", *extra),
            env={"HARNESS_MODEL": model} if model else {},
            writable=tuple(
                # Nothing is made for an agent that may not be meant.
                path if named else path.rstrip("/")
                for each in named or _known()
                for path in each.writable
            ),
            homes=tuple(name for each in named for name in each.homes),
            clouds={name: words for each in named for name, words in each.clouds.items()},
        )

    return Adapter("command", stream.one_line(template, 60), "sh", launch, _read, exit_tells=False)


def _read(report: Report, line: str, now: datetime) -> Report:
    event = stream.event(line)
    if event is None or not _KEYS & event.keys():
        return stream.noted(report, line)
    report = stream.spent(report, stream.number(event, "tokens"), stream.number(event, "cost_usd"))
    step = event.get("action")
    if step is not None:
        report = stream.acted(report, "action", step, step if isinstance(step, str) else "")
    report = stream.spoke(report, stream.text(event, "said"))
    if "limit_resets_at" in event:
        seconds = stream.number(event, "limit_resets_at")
        said = stream.text(event, "limit_resets_at")
        until = resets.at_epoch(seconds, now) if seconds else resets.moment(f"reset {said}", now)
        report = stream.troubled(report, stream.of_kind("limit", "usage limit reached", now, until))
    for kind in _SAID:
        if event.get(kind):
            report = stream.troubled(report, stream.of_kind(kind, stream.text(event, kind) or kind, now))
    return report


def _known(template: str = "") -> list[Launch]:
    """Return how the known agents are started that `template` names; all for an empty one."""
    found = (
        each for each in registry.AGENTS if re.search(rf"\b{each.SIGNS.name}\b", template or each.SIGNS.name)
    )
    return [each.ADAPTER.launch(None, ()) if hasattr(each, "ADAPTER") else _undriven(each) for each in found]


def _undriven(agent: Any) -> Launch:
    """Return what an agent may write that only a command of the user's starts: its settings and its login."""
    settings = agent.HOOKS.files["user"][0].split("/")[0]
    return Launch((), writable=(f"{settings}/", *agent.CREDENTIALS), homes=(agent.HOOKS.home or ())[:1])
