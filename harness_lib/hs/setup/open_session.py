"""The session that a command works in: found or made, held, and with its provider and model."""

from __future__ import annotations

from harness_lib.errors import UsageError
from harness_lib.hs.setup import own_sessions, session_store
from harness_lib.hs.setup.options import Options
from harness_lib.hs.setup.resolve_provider import resolve
from harness_lib.loop import credentials, plugins
from harness_lib.loop.mcp.tools import PREFIX
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.session import Session

_VARIABLES = {
    "model": "HARNESS_MODEL",
    "provider": "HARNESS_PROVIDER",
    "max-turns": "HARNESS_MAX_TURNS",
    "max-cost": "HARNESS_MAX_COST",
    "tools": "HARNESS_TOOLS",
    "approve": "HARNESS_APPROVE",
    "keep-env": credentials.KEPT,
}


def session(runtime: Runtime, asked: Options) -> tuple[Session | None, tuple[str, ...]]:
    """Return the session that was asked for, None for a new one, and the words that are left."""
    named = asked.value("resume")
    if named is not None:
        return to_go_on(runtime, named), asked.words
    if "continue" in asked.flags:
        return newest_here(runtime), asked.words
    existing = session_store.find(runtime, asked.words[0]) if asked.words else None
    if existing is not None and not own_sessions.is_own(runtime, existing):
        # A clone could have one of any name, and a task may begin with any word.
        runtime.notice(f"{existing.id} is a word of the task: you have not made the session of that name.")
        existing = None
    if existing is not None:
        own_sessions.check(runtime, existing)
    return existing, asked.words[1:] if existing else asked.words


def known(runtime: Runtime, name: str) -> Session:
    """Return the session `name`. Raises UsageError."""
    session = session_store.find(runtime, name)
    if session is None:
        raise UsageError(f"There is no session {name}.", "hs session list shows those that there are.")
    return session


def to_go_on(runtime: Runtime, name: str) -> Session:
    """Return the session `name` of this person, which works where it may. Raises UsageError, RefusedError."""
    session = known(runtime, name)
    own_sessions.check(runtime, session)
    return session


def newest_here(runtime: Runtime) -> Session:
    """Return the session of this directory in which something was said last. Raises UsageError."""
    cwd = str(runtime.cwd)
    of_here = (each for each in session_store.every(runtime) if each.conf.get("cwd") == cwd)
    newest = next((each for each in of_here if each.files()), None)
    if newest is None:
        raise UsageError("There is no session of this directory yet.", "Begin one: leave out --continue.")
    return newest


def enter(runtime: Runtime, existing: Session | None, asked: Options) -> None:
    """Hold the session, or make one, with what was asked for and otherwise with what it had."""
    other = asked.value("provider")
    if other and other != runtime.provider and "model" not in asked.values:
        # A model belongs to its provider.
        runtime.env["HARNESS_MODEL"] = ""
    for name, variable in _VARIABLES.items():
        if (value := asked.value(name)) is not None:
            runtime.env[variable] = value
    runtime.system = asked.value("system")
    if existing is not None:
        hold(runtime, existing)
        _restore(runtime, existing.conf)
    resolve(runtime)
    credentials.hide(runtime)
    _check_tools(runtime)
    runtime.session = existing or session_store.create(runtime)
    if existing is None:
        runtime.session.hold()


def hold(runtime: Runtime, session: Session) -> None:
    """Let nobody else work in `session`; say so where that has ended something. Raises HeldError."""
    if ended := session.hold():
        runtime.notice(
            f"what was left running was ended ({ended}): hs was killed in the session {session.id}."
        )


def _restore(runtime: Runtime, conf: dict[str, str]) -> None:
    """Go on with the provider and model of the session; who asks for others gets them."""
    if not runtime.provider:
        runtime.env["HARNESS_PROVIDER"] = conf.get("provider", "")
        runtime.env["HARNESS_MODEL"] = runtime.model or conf.get("model", "")


def _check_tools(runtime: Runtime) -> None:
    asked = runtime.allowed_tools or ()
    # What a server has is known when it has been asked.
    missing = [name for name in asked if not name.startswith(PREFIX) and not plugins.tool(runtime, name)]
    if missing:
        raise UsageError(f"There is no tool {missing[0]}.", "hs tools lists those that there are.")
