"""One turn: what a person says goes into the session, and states are followed until there is an answer."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness_lib.loop import follower
from harness_lib.loop.piped import dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import accounts
from harness_lib.loop.sessions.accounts import Account
from harness_lib.loop.tools import skills


@dataclass(frozen=True)
class Turn:
    """How a turn ended; `stop` says why in a word, and `error` is empty where it was answered."""

    output: str = ""
    stop: str = "error"
    error: str = ""
    session: str = ""
    account: Account = field(default_factory=Account)

    @property
    def failed(self) -> bool:
        return bool(self.error)


def take(runtime: Runtime, message: str) -> Turn:
    """Say `message` in the run's session and return how the turn ended."""
    assert runtime.session is not None
    messages = runtime.session.messages()
    runtime.first = messages[-1].seq + 1 if messages else 1
    runtime.requests, runtime.stop = 0, ""
    if message.strip():
        runtime.session.append("user", {}, skills.called(runtime, message))
    try:
        ending = follower.follow(runtime)
    finally:
        _report(runtime)
        # Whoever draws the events has to know that no more will come, whatever the reason.
        runtime.stream.emit("done")
    account = spent(runtime)
    if ending.failed:
        error = ending.output.removeprefix("error: ") or "a hook failed"
        limited = runtime.stop if runtime.stop.startswith("max_") else "error"
        return Turn(stop=limited, error=error, session=runtime.session.id, account=account)
    return Turn(ending.output, runtime.stop or "end", session=runtime.session.id, account=account)


def _report(runtime: Runtime) -> None:
    """Tell whose subagent this is what it has cost, however it ends."""
    if runtime.account_file:
        with suppress(OSError):
            Path(runtime.account_file).write_text(dumps(vars(spent(runtime))), encoding="utf-8")


def spent(runtime: Runtime) -> Account:
    """Return what the turn has cost so far."""
    return accounts.total(runtime.turn_messages())
