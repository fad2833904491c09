"""Move a list from its file to a database and back, and let another clone join it."""

from __future__ import annotations

from datetime import datetime

from harness_lib.errors import RefusedError, UsageError
from harness_lib.state import publishing
from harness_lib.state.answers import Answers
from harness_lib.state.pgstore.store import Link, PgStore, set_up
from harness_lib.state.store import Store
from harness_lib.system.clock import Clock
from harness_lib.system.files import atomic
from harness_lib.system.place.roots import Root


def to_database(store: Store, link: Link, clock: Clock) -> int:
    """Move the list to the database; its file becomes the mirror. Return the number of its tasks.

    Raises RefusedError (a session is open, or the name is taken there), EnvSetupError.
    """
    set_up(link.url)
    with store.transaction() as tx:
        _require_nobody(tx)
        settings = tx.settings()._replace(concurrency_mode="concurrent")
        PgStore(store.root, link, clock=clock).create(tx.state._replace(session_config=settings))
        tx.configure(settings)
        tx.log("WARN", f"the list was moved to a database, as {link.name}", session=tx.session_count)
        tx.on_commit(lambda: link.save(store.root))
    return len(tx.state.tasks)


def to_file(store: PgStore, link: Link, now: datetime) -> int:
    """Move the list back to the file; in the database it stays under another name. Return the number of tasks.

    Raises RefusedError if a session is open.
    """
    with store.transaction() as tx:
        _require_nobody(tx)
        tx.log("WARN", "the list was moved to a file", session=tx.session_count)
        state = tx.state
    store.rename(f"{link.name} (moved to a file {now:%Y-%m-%d %H:%M:%S})")
    publishing.publish(store.root, state, now, old=None)
    atomic.remove(store.root.link)
    return len(state.tasks)


def join(root: Root, link: Link, clock: Clock) -> Answers:
    """Let this project work on the list of `link`, and return the answers about it.

    Raises UsageError (there is a list here), EnvSetupError (there is no such list).
    """
    if root.state.exists():
        raise UsageError(
            f"{root.path} has a task list of its own.", "Move it there instead: harness store move URL"
        )
    store = PgStore(root, link, clock=clock)
    store.ask()
    link.save(root)
    with store.transaction() as tx:
        tx.log("WARN", "another machine has joined", session=tx.session_count)
    return store.ask()


def _require_nobody(questions: Answers) -> None:
    if questions.sessions():
        raise RefusedError(
            f"{len(questions.sessions())} sessions are open on this list.",
            "Let them end, or end them: harness stop",
        )
