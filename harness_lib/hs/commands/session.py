"""`hs session`: which sessions there are, and what is in one."""

from __future__ import annotations

from harness_lib.errors import UsageError
from harness_lib.hs.commands.base import Builtin
from harness_lib.hs.setup import session_copies, session_store
from harness_lib.hs.setup.open_session import known
from harness_lib.hs.showing import show
from harness_lib.loop import conf
from harness_lib.loop.piped import dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import accounts
from harness_lib.loop.sessions.session import Session

_USAGE = "hs session list | show ID | dir [ID] | fork ID [NNNN] | export ID [--json] | rm ID"


def _session(runtime: Runtime, args: list[str]) -> int:
    word, rest = (args[0], args[1:]) if args else ("list", [])
    if word == "list" and not rest:
        for session in session_store.every(runtime):
            show(session.id)
        return 0
    if word == "show" and len(rest) == 1:
        return _show(known(runtime, rest[0]))
    if word == "fork" and rest and len(rest) <= 2 and all(part.isdigit() for part in rest[1:]):  # noqa: PLR2004 (ID NNNN)
        show(session_copies.fork(runtime, known(runtime, rest[0]), int(rest[1]) if rest[1:] else None).id)
        return 0
    if word == "export" and len(names := [part for part in rest if part != "--json"]) == 1:
        session = known(runtime, names[0])
        as_json = "--json" in rest
        show(
            dumps(session_copies.as_json(session))
            if as_json
            else session_copies.markdown(session).removesuffix("\n")
        )
        return 0
    if word == "rm" and len(rest) == 1:
        show(
            "\n".join(f"removed: {name}" for name in session_copies.remove(runtime, known(runtime, rest[0])))
        )
        return 0
    if word == "dir" and len(rest) <= 1:
        show(session_store.directory(runtime) / rest[0] if rest else session_store.directory(runtime))
        return 0
    raise UsageError(f"hs session does not understand: {' '.join(args)}.", f"Usage: {_USAGE}")


def _show(session: Session) -> int:
    show(conf.render(session.conf), end="")
    files = session.files()
    account = accounts.total(session.messages())
    show(f"tokens_in={account.tokens_in}\ntokens_out={account.tokens_out}\ncost={account.shown()}")
    show(f"messages={len(files)}")
    for path in files:
        show(path.name)
    return 0


COMMAND = Builtin(f"Look at sessions: {_USAGE}", _session)
