"""`hs session`: which sessions there are, and what is in one."""

from __future__ import annotations

import sys

from harness_lib.errors import UsageError
from harness_lib.loop import conf
from harness_lib.loop.commands.base import Builtin
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import store
from harness_lib.loop.sessions.session import Session

_USAGE = "hs session list | show ID | dir [ID]"


def _session(runtime: Runtime, args: list[str]) -> int:
    word, rest = (args[0], args[1:]) if args else ("list", [])
    if word == "list" and not rest:
        for session in store.every(runtime):
            print(session.id)
        return 0
    if word == "show" and len(rest) == 1:
        return _show(_known(runtime, rest[0]))
    if word == "dir" and len(rest) <= 1:
        print(store.directory(runtime) / rest[0] if rest else store.directory(runtime))
        return 0
    raise UsageError(f"hs session does not understand: {' '.join(args)}.", f"Usage: {_USAGE}")


def _known(runtime: Runtime, name: str) -> Session:
    session = store.find(runtime, name)
    if session is None:
        raise UsageError(f"There is no session {name}.", "hs session list shows those that there are.")
    return session


def _show(session: Session) -> int:
    sys.stdout.write(conf.render(session.conf))
    files = session.files()
    print(f"messages={len(files)}")
    for path in files:
        print(path.name)
    return 0


COMMAND = Builtin(f"Look at sessions: {_USAGE}", _session)
