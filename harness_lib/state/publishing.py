"""Write a changed list to the disk, in an order that survives a crash at every step.

1. The contract is checked; a list that breaks it is never written.
2. `.bak`: the old bytes.
3. The list: atomic and durable. From here on the change has happened.
4. A generation, then the status cache. If the process dies or the disk fills before them, the next reader
   decodes the list instead, and the next writer adds a generation: nothing is lost but time.

Source: docs/design.md, "On disk".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

from harness_lib import errors
from harness_lib.state import codec, journal, load, reading, summary
from harness_lib.state.answers import Answers
from harness_lib.system import fs
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, State, Task
from harness_lib.text import counted


def check(state: State, old: State) -> None:
    """Raise ContractError if `state` breaks the contract; what `old` has too is known to be valid.

    It is checked by the tables of `records`, which say what the published schema says: to import jsonschema
    takes longer than the whole change.
    """
    shell = reading.encode_shell(state)
    problems = codec.shell_problems(shell)
    for index, session in enumerate(shell.get("sessions") or ()):
        problems += codec.record_problems(Session, session, f"sessions[{index}]")
    links_are_same = len(state.tasks) == len(old.tasks)
    for index in state.changed_since(old):
        task = state.tasks[index]
        problems += codec.record_problems(Task, reading.written(task), f"tasks[{index}]")
        was = old.tasks[index] if links_are_same else task
        links_are_same &= (task.id, task.depends_on) == (was.id, was.depends_on)
    if not links_are_same:
        problems += codec.links([(task.id, task.depends_on) for task in state.tasks])
    if problems:
        raise codec.ContractError(problems, "the change would break harness-tasks.json")


def publish(
    root: Root,
    state: State,
    now: datetime,
    *,
    old: load.Loaded | None,
    last_look: Callable[[], None] = lambda: None,
    cache: summary.Summary | None = None,
    is_mirror: bool = False,
) -> list[str]:
    """Make `state` the list at `root` and return warnings about what failed after that.

    `old` is the list that it replaces, and becomes the backup. `cache` is its status cache, if not all of it
    is in `state`. `is_mirror`: the list is elsewhere, so no copies are kept, and a power cut may take it.
    `last_look` is called right before the list is replaced, and may raise.
    Raises EnvSetupError (disk full, not writable) if the old list still stands.
    """
    known = load.remembered(root) if is_mirror else old
    before, kept = (known.state, known.texts) if known else (State(), ())
    texts = state.each_made(reading.task_text, before, kept)
    data = reading.render(state, texts).encode()
    # Built before anything is written: an error in the rules must not appear after the change has happened.
    cache = cache or summary.build(state, now)
    warnings: list[str] = []
    with explained(root):
        if old and old.data is not None:
            # A list that is private keeps a private backup.
            fs.write(root.backup, old.data, durable=False, mode=fs.permissions(root.state))
        if is_mirror:
            fs.write(root.state, data, durable=False)
        else:
            warnings += _replace(root, data, last_look)
    copy = load.backup_copy(root)
    if not is_mirror:
        twin = None
        with attempt("the copy in the git directory", warnings):
            twin = load.keep_backup_copy(copy, data)
        with attempt("the generation for a later repair", warnings):
            load.save(root, data, twin)
    load.keep_log(root, copy)
    with attempt("the summary for hooks", warnings):
        info = root.state.stat()
        # Another size: the list was edited externally since, and a stamp of that file would hide it.
        if info.st_size == len(data):
            cache["stamp"] = summary.stamp(info)
            if is_mirror:
                cache["ahead"] = now.timestamp() - time.time()
            summary.write(root, cache)
            load.remember(root, load.Loaded(state, None, data, cache["stamp"], ours=True, texts=texts))
    return warnings


def _replace(root: Root, data: bytes, last_look: Callable[[], None]) -> list[str]:
    """Write `data` as the list; return warnings. Raises OSError if it was not written."""
    try:
        fs.write(root.state, data, last_look=last_look)
    except OSError as error:
        # The rename came through and the sync of the directory did not.
        if not _stands(root, data):
            raise
        return [f"{root.state.name} was written, but may not survive a power cut: {error.strerror}"]
    return []


def _stands(root: Root, data: bytes) -> bool:
    try:
        return root.state.read_bytes() == data
    except OSError:
        return False


@contextmanager
def attempt(name: str, warnings: list[str]) -> Iterator[None]:
    """Add an OSError of the block, in which `name` is written, to `warnings`: the change has happened."""
    try:
        yield
    except OSError as error:
        warnings.append(f"The change is made, but {name} could not be written: {error.strerror or error}")


def append(root: Root, lines: Iterable[str]) -> list[str]:
    """Add `lines` to the log; a failure is a warning, as the change has happened already.

    A log that was removed without the list (`git clean`, if git tracks the list) is restored first.
    """
    warnings: list[str] = []
    try:
        for line in lines:
            if not warnings and not os.path.lexists(root.log) and load.give_back_log(root):
                warnings.append(f"{root.log.name} was gone and has been put back.")
            journal.append(root.log, line)
    except (OSError, errors.EnvSetupError) as error:
        return [*warnings, f"The change is made, but the log could not be written: {error}"]
    return warnings


@contextmanager
def explained(root: Root) -> Iterator[None]:
    """Turn an OSError of a write before the change has happened into an EnvSetupError."""
    try:
        yield
    except OSError as error:
        place = (
            os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else os.fspath(root.path)
        )
        message = f"{place} cannot be written, so nothing was changed: {error.strerror or error}"
        kind = errors.AwayError if errors.passes(error) else errors.EnvSetupError
        raise kind(message, f"{errors.cure(error)}; then type it again.") from error


def restore(root: Root, loaded: load.Loaded, now: datetime) -> list[str]:
    """Write the copy `loaded` in the place of the file; return warnings that say so.

    Raises EnvSetupError if it cannot be written; then the broken file is still there.
    """
    size = counted(len(loaded.state.tasks), "task")
    text = f"{root.state.name} {loaded.why}: restored from {loaded.source} ({size})"
    if loaded.data is None:
        text += "; if anything was written after that, it is lost"
        if not os.path.lexists(root.log):
            text += _rest_too(root, Answers(loaded.state, now))
    else:
        base = f"{root.state.name}.broken-{now:%Y%m%dT%H%M%SZ}"
        name, number = base, 0
        while os.path.lexists(root.path / name):
            number += 1
            name = f"{base}-{number}"
        with explained(root):
            fs.write(root.path / name, loaded.data)
        load.give_back_log(root)
        text += f"; what only the broken file holds is kept in {name} (diff -u {root.state.name} {name})"
    # .bak stays as it is: it may be what we restore from, and the broken bytes are no backup.
    warnings = [text, *publish(root, loaded.state, now, old=None)]
    line = journal.line("WARN", text, now=now, session=loaded.state.session_count)
    return warnings + append(root, [line])


def keep_past(root: Root, past: load.Copy, words: str, now: datetime, session: int) -> list[str]:
    """Keep the list that another program has replaced beside the file; return a warning, the first time.

    `words` say what was changed. Raises EnvSetupError if it cannot be written.
    """
    written = datetime.fromtimestamp(past.written / 1e9, timezone.utc)
    kept = root.path / f"{root.state.name}.old-{written:%Y%m%dT%H%M%SZ}"
    if os.path.lexists(kept):
        return []
    with explained(root):
        fs.write(kept, past.data, mode=fs.permissions(root.state))
    # What has replaced the list, such as `git reset`, may have replaced the log.
    load.give_back_log(root)
    text = f"{words}. The list as it was is kept in {kept.name}"
    return [text, *append(root, [journal.line("WARN", text, now=now, session=session)])]


def _rest_too(root: Root, questions: Answers) -> str:
    """Restore the enable flag and the log, which were lost with the list; return words for the warning."""
    if questions.sessions() and questions.holds_agents():
        with explained(root):
            root.enable_flag.touch(fs.PRIVATE)
    found = "was put back, too" if load.give_back_log(root) else "was lost with it and starts empty"
    return f"; {root.log.name} {found}"


def note_loss(root: Root, now: datetime) -> None:
    """Log that the list cannot be restored, as the protocol words it. Raises EnvSetupError if that fails."""
    text = f"{root.state.name} corrupted and unrecoverable"
    line = journal.line("ERROR", text, now=now, session=0, category="ENV_SETUP")
    with explained(root):
        journal.append(root.log, line)
