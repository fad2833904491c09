"""`hs agent`, the command behind every word that is none: do a task and print the answer."""

from __future__ import annotations

import sys

from harness_lib.errors import UsageError
from harness_lib.loop import follower
from harness_lib.loop.commands.base import Builtin
from harness_lib.loop.commands.resolving import resolve
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import store


def _agent(runtime: Runtime, args: list[str]) -> int:
    session = store.find(runtime, args[0]) if args else None
    words = args[1:] if session else args
    message = _message(words)
    if session is not None:
        session.hold()
        _restore(runtime, session.conf)
    elif not message.strip():
        raise UsageError("hs was given nothing to do.", 'Say it: hs "find all TODO comments"')
    resolve(runtime)
    runtime.session = session or store.create(runtime)
    if session is None:
        runtime.session.hold()
        _announce(runtime)
    if message.strip():
        runtime.session.append("user", {}, message)
    try:
        ending = follower.follow(runtime)
    finally:
        # Whoever draws the events has to know that no more will come, whatever the reason.
        runtime.stream.emit("done")
        runtime.close()
    if ending.output:
        print(ending.output, file=sys.stderr if ending.failed else sys.stdout)
    return int(ending.failed)


def _message(words: list[str]) -> str:
    """Return the task; what stands on standard input follows it."""
    said = " ".join(words)
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    return "\n\n".join(part for part in (said, piped.rstrip("\n")) if part.strip())


def _restore(runtime: Runtime, conf: dict[str, str]) -> None:
    """Go on with the provider and model of the session; who asks for others gets them."""
    if not runtime.provider:
        runtime.env["HARNESS_PROVIDER"] = conf.get("provider", "")
        runtime.env["HARNESS_MODEL"] = runtime.model or conf.get("model", "")


def _announce(runtime: Runtime) -> None:
    directory = str(runtime.session.directory) if runtime.session else ""
    home = runtime.env.get("HOME", "")
    shown = f"~{directory.removeprefix(home)}" if home and directory.startswith(f"{home}/") else directory
    lines = [f"session: {shown}", f"provider: {runtime.provider}", f"model: {runtime.model}"]
    print("\n".join(lines), file=sys.stderr)


COMMAND = Builtin("Do a task: hs [SESSION] WORDS...", _agent)
