"""Trust: the commands of a list that came with a clone run only after the user has trusted them.

The note about that is in the git directory, where no clone can bring one. Without it no check, no init script
and no cleanup of the list runs.
If machines share the list, each command is asked about by itself (`knows`): a task whose commands are not
known here is left alone, and the others go on.
Source: docs/design.md, "Trust".
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from harness_lib import sha256
from harness_lib.core.context import Context
from harness_lib.errors import (
    EnvSetupError,
    HeldError,
    RefusedError,
    UntrustedError,
    UntrustedTaskError,
)
from harness_lib.state.api import Questions, TaskCommands, Tx
from harness_lib.system import fs, state_lock
from harness_lib.task import Task
from harness_lib.text import Strings, escape, first, harmless, some

_FILE = "harness/trust.json"
UNTRUSTED = "commands that are not trusted here"

Note = Mapping[str, object]
"""The note on one list: the commands that it covers."""


class Runs(NamedTuple):
    """Everything that a list would run: checks, where they run, cleanups, and the digest of its script."""

    commands: Sequence[TaskCommands]
    script: str | None

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of all of it."""
        return _fingerprint(tuple(self.commands), self.script)

    @property
    def each(self) -> frozenset[str]:
        """The hashes of the different commands and of the init script."""
        rows = {(row.check, row.cwd, row.cleanup) for row in self.commands if row.check or row.cleanup}
        script = {self.script} if self.script else set()
        return frozenset(sha256.digest(json.dumps(row).encode()) for row in rows) | script


@lru_cache(maxsize=1)
def _fingerprint(commands: Sequence[TaskCommands], script: str | None) -> str:
    # A worker asks for each task, and the commands hardly ever change.
    return sha256.digest(json.dumps([sorted(commands), script]).encode())


def note_at(git_common_dir: Path, root: Path, runs: Runs, *, only: bool = False, mark: str = "") -> None:
    """Note that this user trusts the list in the directory `root` with what it runs now.

    `only`: with nothing else, also if git does not track the list. `mark`: that of the commands of a list
    which machines share.
    Raises HeldError if another process holds the note, OSError if the git directory cannot be written.
    """
    entry: dict[str, object] = {"fingerprint": runs.fingerprint}
    entry |= {"only": True} if only or mark else {}
    entry |= {"each": sorted(runs.each), "mark": mark} if mark else {}
    _write(git_common_dir / _FILE, root, lambda _: entry)


def _write(file: Path, root: Path, change: Callable[[Note], Note | None]) -> None:
    """Write what `change` makes of the note on the list in `root`, {} for none; None leaves it as it is."""
    # Several lists may share one git directory, each with its own lock: this file needs one, too.
    with state_lock.StateLock(file.with_suffix(".lock")):
        notes = _notes(file)
        entry = change(notes.get(os.fspath(root), {}))
        if entry is None:
            return
        text = json.dumps({**notes, os.fspath(root): entry}, indent=2, sort_keys=True) + "\n"
        fs.write(file, text.encode(), mode=0o600)


def _noted(git_common_dir: Path, root: Path) -> Note | None:
    return _notes(git_common_dir / _FILE).get(os.fspath(root))


def trusted_at(git_common_dir: Path, root: Path, runs: Runs, *, is_tracked: Callable[[], bool]) -> bool:
    """Return whether the list at `root` may run `runs`.

    A list that git does not track is changed only by users with write permission, so the note is enough;
    a tracked one changes with every pull, so the note covers only the commands it was made for. A note
    with `only` does so, too.
    `is_tracked`, which starts a git process, is called only if the answer depends on it.
    """
    entry = _noted(git_common_dir, root)
    if entry is None:
        return False
    return entry.get("fingerprint") == runs.fingerprint or not (entry.get("only") or is_tracked())


def _notes(file: Path) -> dict[str, Note]:
    """Return the notes of this user; a file of another user (a shared machine) is ignored."""
    try:
        with file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_uid != os.geteuid():
                return {}
            notes = json.loads(stream.read())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        # Torn or edited by hand: asking again is the safe answer.
        return {}
    # What harness has not written says nothing.
    found = notes.items() if isinstance(notes, dict) else ()
    return {place: entry for place, entry in found if isinstance(entry, Mapping)}


def _hint(ctx: Context) -> str:
    if ctx.agent:
        return "Ask the user to look at them and, if they are theirs, to type in a terminal: harness trust"
    return "See them: harness check. If you trust them, type: harness trust"


def not_yet(ctx: Context) -> str:
    """Return the warning that new commands are in a list that is not trusted, and who can change that."""
    return f"The list's commands are not trusted here yet. {_hint(ctx)}"


def runs_of(ctx: Context, commands: Sequence[TaskCommands]) -> Runs:
    """Return everything that this list would run if its tasks have these `commands`."""
    script = ctx.root.init_script
    return Runs(commands, sha256.digest(script.read_bytes()) if script.is_file() else None)


def prepare(ctx: Context) -> None:
    """Ask git in advance what `is_trusted` needs: no git runs while the list is locked."""
    _ = ctx.git, ctx.list_is_tracked


def is_trusted(ctx: Context, questions: Questions) -> bool:
    """Return whether this user trusts the list.

    Other machines may add commands to a list that they share: `knows` is asked about those of each task.
    """
    place = (ctx.git.common_dir, ctx.root.path)
    if not ctx.shared:
        return trusted_at(*place, runs_of(ctx, questions.commands()), is_tracked=lambda: ctx.list_is_tracked)
    return _knows_script(ctx)


def _knows_script(ctx: Context) -> bool:
    known = _each(_noted(ctx.git.common_dir, ctx.root.path))
    return known is not None and runs_of(ctx, ()).each <= known


def require_script(ctx: Context) -> None:
    """Raise UntrustedError unless the init script is known here, if machines share the list.

    It may have changed since the list was asked about: by what others have merged.
    """
    if ctx.shared and not _knows_script(ctx):
        script = ctx.root.init_script
        raise UntrustedError(
            f"{script} has not been trusted on this machine, so it does not run.", _hint(ctx)
        )


def is_whole(ctx: Context, questions: Questions) -> bool:
    """Return whether this user trusts the list and each command that it has."""
    return is_trusted(ctx, questions) and not unknown(ctx, questions)


def _each(entry: Note | None) -> frozenset[str] | None:
    known = (entry or {}).get("each")
    return frozenset(map(str, known)) if isinstance(known, list) else None


def unknown(ctx: Context, questions: Questions) -> Strings:
    """Return the ids of all tasks whose commands are not known here, if machines share the list.

    The whole list is read for that, but only once after its commands have changed.
    """
    if not ctx.shared:
        return ()
    place = (ctx.git.common_dir, ctx.root.path)
    entry, mark = _noted(*place) or {}, questions.commands_mark()
    if entry.get("mark") == mark:
        return ()
    seen = entry.get("unknown")
    if isinstance(seen, Mapping) and isinstance(seen.get(mark), list):
        return tuple(map(str, seen[mark]))
    known, rows = _known(ctx), questions.commands()
    found = tuple(dict.fromkeys(row.task for row in rows if not Runs((row,), None).each <= known))
    # The next look need not read the whole list again; it does where this cannot be written.
    with suppress(OSError, HeldError):
        looked = {**entry, **({"unknown": {mark: found}} if found else {"unknown": {}, "mark": mark})}
        _write(place[0] / _FILE, place[1], lambda now: looked if entry and now == entry else None)
    return found


def waiting(ctx: Context, questions: Questions) -> Strings:
    """Return the ids of the tasks that are to be done, and whose commands are not known here."""
    ids = unknown(ctx, questions)
    return tuple(task.id for task in questions.tasks(ids) if not task.is_done) if ids else ()


def told(ctx: Context, task_ids: Sequence[str]) -> str:
    """Return the sentences about tasks that wait for the user's trust; "" if there are none."""
    if not task_ids:
        return ""
    has = "has" if len(task_ids) == 1 else "have"
    return f"{some(task_ids)} {has} {UNTRUSTED}. {_hint(ctx)}"


def _known(ctx: Context) -> frozenset[str]:
    """Return the hash of each command that is known here, if machines share the list."""
    try:
        places = dict.fromkeys(git.common_dir for git in (ctx.git, ctx.main))
    except EnvSetupError:
        # Without a repository nothing runs.
        return frozenset()
    return frozenset[str]().union(*(_each(_noted(place, ctx.root.path)) or () for place in places))


def knows(ctx: Context, *tasks: Task) -> bool:
    """Return whether the commands of `tasks` are known here, if machines share their list.

    Whoever can write other commands into the database can write their mark, too.
    """
    return ctx.shared is None or _runs(tasks) <= _known(ctx)


def known(ctx: Context, tasks: Iterable[Task]) -> list[Task]:
    """Return those of `tasks` whose commands may run here as far as `knows` tells."""
    tasks = list(tasks)
    if not ctx.shared or not tasks:
        return tasks
    here = _known(ctx)
    return [task for task in tasks if _runs((task,)) <= here]


def _runs(tasks: Iterable[Task]) -> frozenset[str]:
    return Runs([row for task in tasks for row in TaskCommands.of(task)], None).each


def require_own(ctx: Context, task: Task) -> None:
    """Raise UntrustedTaskError unless the commands of `task` are known here, if machines share its list."""
    if ctx.shared and not knows(ctx, task):
        raise UntrustedTaskError(
            f"The commands of {task.id} have not been trusted on this machine, so they do not run.",
            _hint(ctx),
        )


def know(ctx: Context, tx: Tx, tasks: Sequence[Task]) -> None:
    """Let the list stay trusted with `tx`, by which this user has given `tasks` their commands.

    If machines share it, other commands that are not known here stay so.
    """
    if not ctx.shared:
        tx.on_commit(lambda: note(ctx, tx))
    elif tasks:
        tx.on_commit(lambda: _add(ctx, tasks))


def _add(ctx: Context, tasks: Sequence[Task]) -> None:
    here = runs_of(ctx, ())

    def change(entry: Note) -> Note:
        before = _each(entry)
        known = (here.each if before is None else before) | _runs(tasks)
        return {"only": True, **entry, "each": sorted(known)}

    _write(ctx.git.common_dir / _FILE, ctx.root.path, change)


def note(ctx: Context, questions: Questions, *, only: bool = False) -> None:
    """Note that this user trusts the list with its present commands; `only` as in `note_at`."""
    mark = "" if not ctx.shared else questions.commands_mark()
    note_at(ctx.git.common_dir, ctx.root.path, runs_of(ctx, questions.commands()), only=only, mark=mark)


def keep_to_present(ctx: Context, questions: Questions) -> None:
    """Let the note on this list count for its present commands only, also if git does not track it.

    For commands of a plan that another person may have written: the user looks at them first. If machines
    share the list, it never counts for others.
    """
    if not ctx.shared and _noted(ctx.git.common_dir, ctx.root.path) is not None:
        note(ctx, questions, only=True)


def require(ctx: Context, questions: Questions) -> None:
    """Raise RefusedError unless the user trusts the list, as `is_trusted` tells."""
    if not is_trusted(ctx, questions):
        said = _moved(ctx) or f"{_untrusted(ctx)} on this machine"
        kind = RefusedError if not ctx.shared else UntrustedError
        raise kind(f"{said}, so nothing of this list runs.", _hint(ctx))


def doubt(ctx: Context, questions: Questions | None = None, held: Task | None = None) -> str | None:
    """Return why nothing of this list will run, or not the commands of `held`, and who can change that.

    None if this user has trusted it. It is asked at each step, so it does not look whether a pull has changed
    commands since: `require` does.
    """
    try:
        entry = _noted(ctx.git.common_dir, ctx.root.path)
        if entry is not None and (not entry.get("only") or is_trusted(ctx, questions or ctx.ask())):
            if not held or knows(ctx, held):
                return None
            return f"{told(ctx, [held.id])} Until then harness finish will be refused."
    except EnvSetupError:
        # No repository any more: what asks for one says so.
        return None
    said = _moved(ctx) or f"The commands in {ctx.store.list_file} have not been trusted on this machine"
    return f"{said}, so harness finish will be refused. {_hint(ctx)}"


def _moved(ctx: Context) -> str:
    """Return that the project was moved, if the place where it was trusted is gone; "" if not.

    It is no trust: whoever packs a project may pack this note, too.
    """
    notes = _notes(ctx.git.common_dir / _FILE)
    gone = (place for place in notes if not os.path.lexists(place))
    place = None if os.fspath(ctx.root.path) in notes else next(gone, None)
    if place is None:
        return ""
    moved = f"This project has moved from {escape(place)} to {ctx.root.path}"
    return f"{moved}: its commands were trusted there, and not yet in the new place"


def _untrusted(ctx: Context) -> str:
    """Return which commands are not trusted, as far as the note of this user tells."""
    script = ctx.root.init_script
    is_noted = _noted(ctx.git.common_dir, ctx.root.path) is not None
    if is_noted and ctx.shared:
        # Its commands are asked about one by one.
        return f"The script {script} has not been trusted"
    if is_noted:
        return f"What {ctx.store.list_file} and {script.name} run has changed since this list was trusted"
    also = f" and the script {script}" if script.is_file() else ""
    return f"The commands in {ctx.store.list_file}{also} have not been trusted"


def runs_nothing(ctx: Context, questions: Questions) -> bool:
    """Return whether the list has no commands that a clone could have brought."""
    runs = runs_of(ctx, questions.commands())
    return runs.script is None and not any(task.check or task.cleanup for task in runs.commands)


def may_trust(ctx: Context, questions: Questions) -> bool:
    """Return whether the list may be trusted with new commands of this user: not if it came with a clone."""
    return is_trusted(ctx, questions) or runs_nothing(ctx, questions)


SHOWN = 20
LENGTH = 300


class Command(NamedTuple):
    """A command that would run: its purpose, its text, and which tasks share it."""

    purpose: str
    text: str
    tasks: Strings = ()

    def line(self, more: str | None) -> str:
        """Return the command as one line; control characters are escaped, as the user trusts what it shows.

        A long one is cut if the command `more` shows the rest.
        """
        whose = f" of {some(self.tasks, 1)}" if self.tasks else ""
        purpose, shown = harmless(escape(self.purpose)), harmless(escape(self.text))
        rest = len(shown) - LENGTH if more else 0
        cut = f"… ({rest} characters more: {more})" if rest > 0 else ""
        return f"{purpose}{whose}: {shown[: LENGTH if cut else None]}{cut}"


def commands(ctx: Context, questions: Questions, *, only_new: bool = False) -> list[Command]:
    """Return each different command once, in the order of the list.

    `only_new`: of a trusted list that machines share, those that are not known here, if there are any.
    """
    new = frozenset(unknown(ctx, questions) if only_new and is_trusted(ctx, questions) else ())
    tasks: dict[tuple[str, str], list[str]] = {}
    for row in questions.commands():
        if new and row.task not in new:
            continue
        where = f" in {row.cwd}" if row.cwd else ""
        for purpose, text in ((f"check{where}", row.check), ("cleanup", row.cleanup)):
            if text:
                tasks.setdefault((purpose, text), []).append(row.task)
    found = [Command(purpose, text, tuple(ids)) for (purpose, text), ids in tasks.items()]
    script = ctx.root.init_script
    if script.is_file() and not new:
        size = f"{script.stat().st_size} bytes; read it before you say yes"
        found.insert(0, Command("init script", f"{script} ({size})"))
    return found


def listing(found: Sequence[Command], more: str | None) -> list[str]:
    """Return the lines that show the commands; not all if `more` is a command that shows the rest."""
    if not found:
        return ["This list runs nothing yet."]
    number = "1 command" if len(found) == 1 else f"{len(found)} different commands"
    rows = [each.line(more) for each in found]
    rows = first(rows, SHOWN, f": {more}") if more else rows
    return [f"This list would run {number}:", *(f"  {row}" for row in rows)]
