"""The events of a run: a worker reports its task, and the run reports itself.

On a pipe and with `--json` an event is an object: `event` says which kind it is, `worker` who tells it (null:
the run), `at` when (seconds since the epoch), and the fields of its kind stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness_lib.task import Status
from harness_lib.text import Strings

# The number of the worker that merges what the others have finished.
MERGER = 0
Step = Literal["prepares", "works", "checks", "merges", "waits", "takes", "limit", "pauses"]
NoticeKind = Literal["sandbox", "recovered", "warning", "tick", "interrupted", "limit", "final"]


@dataclass(frozen=True)
class Started:
    """The process of a worker runs our code."""


@dataclass(frozen=True)
class Ready:
    """A worker has no task, and waits until it is admitted to one."""


@dataclass(frozen=True)
class Claimed:
    """A worker has claimed a task for this attempt; `claimed_at` is when, by the clock of the list."""

    task: str
    title: str
    attempt: int
    claimed_at: str | None = None


@dataclass(frozen=True)
class Stepped:
    """A worker has reached a step of its task; `until` (seconds since the epoch): when it continues."""

    step: Step
    until: float | None = None
    message: str = ""


@dataclass(frozen=True)
class Said:
    """The last line of a worker's agent, and what the attempt has cost so far.

    `session` is what the agent calls its conversation, "" if it does not say.
    """

    last: str
    tokens: int
    cost: float
    session: str = ""


@dataclass(frozen=True)
class Idle:
    """A worker has nothing to do."""

    why: str


@dataclass(frozen=True)
class Away:
    """A worker waits for something that all workers need; the run shows it as a warning, once for all."""

    message: str


@dataclass(frozen=True)
class Queued:
    """The work of a worker has passed its check and waits for its merge; the worker is free.

    The run tells it of work that a dead worker has left.
    """

    task: str


@dataclass(frozen=True)
class Ended:
    """An attempt has ended; `pending`: the task is requeued, uncounted. `rescue` is a ref, `commit` an id.

    `files`: how many the commit changes; `touched`: the files of the check that the attempt has
    changed; `logs`: the directory of what its agents and its check have printed.
    """

    task: str
    status: Status
    message: str = ""
    commit: str | None = None
    rescue: str | None = None
    warnings: Strings = ()
    files: int | None = None
    touched: Strings = ()
    logs: str = ""


@dataclass(frozen=True)
class Stuck:
    """The user must act before work can go on; `kind` is that of an error."""

    task: str | None
    kind: str
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Gone:
    """The process of a worker has ended with this exit code; a negative one is a signal."""

    code: int
    message: str


@dataclass(frozen=True)
class Unstarted(Gone):
    """A worker has ended before it could run our code."""


@dataclass(frozen=True)
class Notice:
    """A message for the user, or with `tick` only the passing of time."""

    kind: NoticeKind
    message: str = ""


News = Started | Ready | Claimed | Stepped | Said | Idle | Away | Queued | Ended | Stuck | Gone | Notice


@dataclass(frozen=True)
class Event:
    """The sender (None: the run itself), the time (seconds since the epoch), and the news."""

    worker: int | None
    at: float
    news: News


_KINDS: dict[str, type[News]] = {
    "started": Started,
    "ready": Ready,
    "claimed": Claimed,
    "step": Stepped,
    "said": Said,
    "idle": Idle,
    "away": Away,
    "queued": Queued,
    "ended": Ended,
    "stuck": Stuck,
    "gone": Gone,
    "unstarted": Unstarted,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def write(event: Event) -> dict[str, Any]:
    """Return `event` as an object for JSON."""
    fields = asdict(event.news)
    name = event.news.kind if isinstance(event.news, Notice) else _NAMES[type(event.news)]
    if isinstance(event.news, Notice):
        del fields["kind"]
    return {"event": name, "worker": event.worker, "at": event.at, **fields}


def read(written: Mapping[str, Any]) -> Event:
    """Return the event that `write` has written. Raises KeyError or TypeError for anything else."""
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in written.items()
    }
    name, worker, at = fields.pop("event"), fields.pop("worker"), fields.pop("at")
    kind = _KINDS.get(name)
    return Event(worker, at, kind(**fields) if kind else Notice(name, **fields))
