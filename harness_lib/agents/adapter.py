"""What an agent's adapter has to offer, and the report that it makes of what its agent prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

NO_ENV: Mapping[str, str] = MappingProxyType({})


class Launch(NamedTuple):
    """How an agent is started: `stdin` is all that it is given to read, `env` is added to the worker's.

    `cost_flag` is the argument before the US dollars at which it stops by itself, `usage_flag` the one before
    the file into which it writes at its end what it has used up, a JSON object for `read`; "": it has none.
    """

    argv: tuple[str, ...]
    stdin: str = ""
    env: Mapping[str, str] = NO_ENV
    cost_flag: str = ""
    usage_flag: str = ""

    def command(self, cost_usd: float | None = None, usage: str = "") -> tuple[str, ...]:
        """Return what is typed so that it costs no more than `cost_usd` and writes its use into `usage`.

        Either only where it can be told so, and what a person has passed on to the agent stays theirs.
        """
        typed = self.argv
        if cost_usd is not None and self._is_free(self.cost_flag):
            typed = (*typed, self.cost_flag, f"{cost_usd:.6f}")
        if usage and self._is_free(self.usage_flag):
            typed = (*typed, self.usage_flag, usage)
        return typed

    def _is_free(self, flag: str) -> bool:
        return bool(flag) and not any(word.split("=")[0] == flag for word in self.argv)


class Trouble(NamedTuple):
    """Something that is not the agent's fault and that no other attempt of it would change.

    limit: the provider's usage limit is reached; wait until `resets_at` (None: nobody said when).
    transient: overloaded, a server error, no network, too many requests at once; try again in a while.
    login: not logged in, no key, no money, a setting that stops every run; a person must act.

    Some agents do not end on a limit but wait for it in silence, for hours: whoever sees one stops the agent.
    """

    kind: Literal["limit", "transient", "login"]
    message: str
    resets_at: datetime | None = None


class Report(NamedTuple):
    """What the stream has said so far; every text is bounded and can be shown on a terminal.

    last: the last thing said or done, one line
    action: the last tool call, tool and arguments in a canonical form; "" if there was none
    actions: how many tool calls so far
    tokens: all that went in and out so far, what came from a cache included
    cost_usd: in US dollars so far; None: this agent has not said
    trouble: the last one, gone once the agent has answered again
    said: its last message
    mark: what an adapter must remember from one line to the next; nobody else reads it
    """

    last: str = ""
    action: str = ""
    actions: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    trouble: Trouble | None = None
    said: str = ""
    mark: str = ""


class Adapter(Protocol):
    """One agent."""

    @property
    def name(self) -> str:
        """What a person types to choose it."""
        ...

    @property
    def title(self) -> str:
        """What a person reads."""
        ...

    @property
    def program(self) -> str:
        """What must be on the PATH."""
        ...

    @property
    def exit_tells(self) -> bool:
        """Whether the agent has not finished when it ends with another code than 0."""
        ...

    def launch(self, brief: str, *, model: str | None = None, extra: Sequence[str] = ()) -> Launch:
        """Return how the agent is started on `brief`; `extra` are a person's own arguments."""
        ...

    def read(self, report: Report, line: str, now: datetime) -> Report:
        """Return `report` with what `line`, printed at `now`, adds to it; any line at all is legal.

        `now` is aware; a time of day without a zone is read in the zone of `now`.
        """
        ...
