"""Move a list from its file to a database and back, let another clone join it, and check it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from functools import partial

from harness_lib.errors import HarnessError, NotAllowedError, RefusedError, UsageError
from harness_lib.state import load, publishing
from harness_lib.state.api import Questions
from harness_lib.state.mirrored import Link, Mark
from harness_lib.state.pgstore import connecting, migrations, versions
from harness_lib.state.pgstore.doubts import Doubt
from harness_lib.state.pgstore.moments import MOVED
from harness_lib.state.pgstore.recount import Found
from harness_lib.state.pgstore.store import PgStore
from harness_lib.state.pgstore.versions import Seen
from harness_lib.state.store import MIRROR, Store
from harness_lib.system.clock import Clock
from harness_lib.system.files import atomic
from harness_lib.system.place.roots import Root
from harness_lib.task import State
from harness_lib.text import some


def to_database(store: Store, link: Link, clock: Clock) -> int:
    """Move the list to the database; its file becomes the mirror. Return the number of its tasks.

    Raises RefusedError (a session is open, or the name is taken there), EnvSetupError.
    """
    migrations.set_up(link.url)
    made = link
    try:
        with store.transaction() as tx:
            _require_nobody(tx)
            settings = tx.settings()._replace(concurrency_mode="concurrent")
            tx.configure(settings)
            log = tuple(store.log_tail())
            made = _created(PgStore(store.root, link, clock=clock), tx.state, log)
            tx.on_commit(lambda: made.save(store.root))
    except BaseException:
        if made.uuid:
            # The file stays the list: nobody may work on its copy.
            with suppress(HarnessError):
                PgStore(store.root, made, clock=clock).drop()
        raise
    moved = PgStore(store.root, made, clock=clock)
    with moved.transaction() as tx:
        tx.log("WARN", f"the list was moved to a database, as {link.name}", session=tx.session_count)
        return tx.counts().total


def _created(store: PgStore, state: State, log: tuple[str, ...]) -> Link:
    try:
        return store.create(state, log)
    except RefusedError as error:
        raise RefusedError(
            f"{connecting.shown(store.link.url)} has a list called {store.link.name} already.",
            "Choose another name: --list NAME",
        ) from error


def to_file(store: PgStore, now: datetime) -> int:
    """Move the list back to the file and return the number of tasks.

    In the database it stays, under another name. The file is written before that happens: whoever is cut off
    in between finds the list in one of the two.
    Raises RefusedError if a session is open.
    """
    with store.transaction() as tx:
        _require_nobody(tx)
        tx.log("WARN", "the list was moved to a file", session=tx.session_count)
        count = len(tx.state.tasks)
        tx.leave(f"{store.link.name} {MOVED}{now:%Y-%m-%d %H:%M:%S})")
        tx.on_commit(partial(_forget, store.root))
    return count


def _forget(root: Root) -> None:
    atomic.remove(root.link)


def join(root: Root, link: Link, clock: Clock) -> Questions:
    """Let this project work on the list of `link`, and return the answers about it.

    Raises UsageError (there is a list here), EnvSetupError (there is no such list).
    """
    if root.state.exists() and not root.link.exists() and not _is_mirror(root):
        raise UsageError(
            f"{root.path} has a task list of its own.", "Move it there instead: harness store move URL"
        )
    link = link._replace(uuid=PgStore(root, link, clock=clock).looked().version.uuid)
    with publishing.explained(root):
        link.save(root)
    store = PgStore(root, link, clock=clock)
    # A reader looks, and leaves no trace.
    with suppress(NotAllowedError), store.transaction() as tx:
        tx.log("WARN", "another machine has joined", session=tx.session_count)
    store.switch_hooks(on=True)
    return store.ask()


def _is_mirror(root: Root) -> bool:
    with suppress(HarnessError):
        return MIRROR in load.find(root).state.extra
    return False


def check(store: PgStore, *, repair: bool) -> list[str]:
    """Return what is wrong with the list in the database and with the files of this machine.

    `repair`: what rows say twice is put right, and a database that was set back goes on after what this
    machine has seen of it. Raises EnvSetupError, HeldError.
    """
    link = Link.of(store.root) or store.link
    whole = PgStore(store.root, link._replace(mirrored=0, op=""))
    found = versions.read(whole.looked().connection, link.name, Seen(link.mirrored, link.op))
    if found is not None and not found.goes_on:
        if not repair:
            return [f"the database was set back: it lacks event {link.mirrored}, which this machine has seen"]
        seen = load.find(store.root).state
        number, kept = whole.go_on(seen, link.mirrored)
        store.link = link._replace(mirrored=0, op="", mark=Mark(max(link.mark.floor, number - 1)))
        with publishing.explained(store.root):
            store.link.save(store.root)
        store.warn(_lost(store, seen, kept))
    problems = _recounted(store, repair=repair)
    problems += [str(problem) for problem in store.examine().problems]
    if Doubt(store.root).op is not None:
        with store.transaction() as tx:
            problems += tx.warnings
    return problems


def _lost(store: PgStore, seen: State, kept: str) -> str:
    """Return a sentence about the list that was `seen` before it was set back, and what only that one has."""
    present = {task.id for task in store.ask_to_change().search()}
    names = [task.id for task in seen.tasks if task.id not in present]
    which = f"; the database lacks {some(names, 5)} of it" if names else ""
    return f"The list as this machine had seen it is kept in {kept}{which}."


def _recounted(store: PgStore, *, repair: bool) -> list[str]:
    looking = store.looked()
    key = looking.version.key
    problems = Found(looking.connection, key).problems
    if problems and repair:
        with store.transaction() as tx:
            found = Found(tx.connection, key)
            found.repair()
            for problem in found.problems:
                tx.log("WARN", f"put right: {problem}", session=tx.session_count)
            problems = Found(tx.connection, key).problems
    return problems


def _require_nobody(questions: Questions) -> None:
    if questions.sessions():
        raise RefusedError(
            f"{len(questions.sessions())} sessions are open on this list.",
            "Let them end, or end them: harness stop",
        )
