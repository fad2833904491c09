"""Keep held-out checks outside of every repository, list and work tree.

Each is in `<data home>/hidden/<SHA-256>/check.json`, for its owner alone; the list has only the SHA-256.
It is salted, so that a short command cannot be found by trying.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_lib import sha256, typed
from harness_lib.core import rights
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, UsageError
from harness_lib.rules import input_files
from harness_lib.system import fs
from harness_lib.system.place import data_home, own_files
from harness_lib.task import HeldOut, Task

if TYPE_CHECKING:
    from harness_lib.core.import_parse import Drafts

FIELD = "validation.hidden"
FILE, LAST = "check.json", "last.txt"
MOST_BYTES = 10_000_000
_OTHERS = frozenset((".git", ".harness"))
_DIGEST = re.compile(r"[0-9a-f]{64}")
ELSEWHERE = "its held-out check is on another machine"


class Placed(NamedTuple):
    """A file for `path`, from the top of a checkout; of a script `path` is only its name."""

    path: str
    mode: int
    content: bytes


class Material(NamedTuple):
    """The parts of a held-out check: a command or a script, and files to put in place."""

    command: str
    files: tuple[Placed, ...] = ()
    script: Placed | None = None

    def describe(self) -> str:
        """Return what runs, in words for the user."""
        runs = self.script.path if self.script else self.command
        files = ", ".join(each.path for each in self.files)
        return f"{runs} (with {files} put in place)" if files else runs


def typed_with(ctx: Context, changes: Mapping[str, Any], old: Task, command: str) -> dict[str, Any]:
    """Return the typed `changes` of the task `old`, with what `--hidden` names kept in the data directory.

    Raises RefusedError inside an agent, which types `command`; UsageError if it names nothing usable.
    """
    words = [word for word in changes.get(FIELD) or () if word.strip()]
    if FIELD in changes or "validation.hidden_names" in changes:
        rights.require_user(ctx, "A held-out check", command)
    if not words:
        return {**changes, **({FIELD: None} if FIELD in changes else {})}
    check = changes.get("validation.command", old.validation.command)
    return {**changes, FIELD: keep(ctx, read(ctx, words, check))}


def read(ctx: Context, words: Sequence[str], check: str | None) -> Material:
    """Return the meaning of `words`: commands, and the present content of files.

    Files that are only put in place are for `check`. Raises UsageError where one cannot be used.
    """
    found = [_read(ctx, word) for word in words]
    files = tuple(each for each in found if isinstance(each, Placed) and each.path)
    runs = [each for each in found if not (isinstance(each, Placed) and each.path)]
    if len(runs) > 1:
        raise UsageError("A held-out check is one command.", "Join them: --hidden 'FIRST && SECOND'")
    paths = [file.path for file in files]
    for number, path in enumerate(paths):
        others = (*paths[:number], *paths[number + 1 :])
        if any(f"{other}/".startswith(f"{path}/") for other in others):
            raise UsageError(f"Two files would be put at {path!r}.", "Give each a place of its own.")
    if not runs:
        return Material(_of_task(check, paths), files)
    if isinstance(runs[0], Placed):
        name = Path(words[found.index(runs[0])]).name
        return Material("", files, runs[0]._replace(path=name))
    return Material(runs[0], files)


def _read(ctx: Context, word: str) -> Placed | str:
    """Return the file that `word` names, with its path in the checkout if it has one, or the command."""
    whole = _file(ctx, word)
    if whole.is_file():
        if not os.access(whole, os.X_OK):
            raise UsageError(
                f"{word} is not executable, so it cannot be the held-out check.",
                "Make it executable, or say where it goes and what runs it: "
                "--hidden FILE:PATH --hidden 'COMMAND'",
            )
        return _content(whole, "", word)
    name, colon, place = word.rpartition(":")
    source = _file(ctx, name)
    if colon and source.is_file():
        return _content(source, _place(source, place), name)
    is_one_word = not re.search(r"\s", word)
    if is_one_word and (("::" not in word and colon) or word.startswith(("/", "~", "./", "../"))):
        missing = name if colon else word
        what = "is not a file" if _file(ctx, missing).exists() else "is not there"
        raise UsageError(
            f"{missing} {what}, so it cannot be held out.", "Name a file, or a command: --hidden 'COMMAND'"
        )
    return word


def _file(ctx: Context, name: str) -> Path:
    return ctx.cwd / Path(os.path.expanduser(name))  # noqa: PTH111 (a ~ that no user has stays as it is)


def _content(source: Path, place: str, word: str) -> Placed:
    try:
        content = source.read_bytes()
    except OSError as error:
        raise UsageError(f"{word} cannot be read: {error.strerror}.", "Make it readable.") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"{word} is larger than {MOST_BYTES:,} bytes.", "Hold out a smaller file.")
    return Placed(place, 0o700 if os.access(source, os.X_OK) else 0o600, content)


def _place(source: Path, place: str) -> str:
    path = PurePosixPath(f"{place}{source.name}" if place.endswith("/") else place)
    if not path.parts or path.is_absolute() or ".." in path.parts or path.parts[0] in _OTHERS:
        raise UsageError(
            f"{place!r} is not a place in the work tree.",
            "Name one from its top: --hidden FILE:tests/test_x.py",
        )
    return str(path)


def _of_task(check: str | None, paths: Sequence[str]) -> str:
    """Return the task's own `check` to run with files at `paths`, unless it seems to ignore them."""
    example = f"Say what runs, too: --hidden FILE:{paths[0]} --hidden 'COMMAND {paths[0]}'"
    if not check or not check.strip():
        raise UsageError("The task has no check that could run with this file.", example)
    named = [PurePosixPath(name) for name in input_files.of(check).named if "/" in name or "." in name]
    for path in map(PurePosixPath, paths):
        if named and not any(name == path or name in path.parents for name in named):
            raise UsageError(f"The task's own check, {check!r}, does not name {path}.", example)
    return check


def keep(ctx: Context, material: Material) -> HeldOut:
    """Keep `material` in the data directory; UsageError where that lies in the project."""
    home = _home(ctx)
    for place in (ctx.root.path, ctx.git.top, ctx.git.common_dir):
        if home.is_relative_to(place):
            raise UsageError(
                f"The data directory {home} is in {place}, where agents work.", "Set HARNESS_HOME elsewhere."
            )
    salted = {"salt": os.urandom(16).hex(), **material._asdict()}
    text = json.dumps(salted, default=lambda content: base64.b64encode(content).decode()).encode()
    held_out = HeldOut(sha256.digest(text))
    fs.write(directory(ctx, held_out) / FILE, text, make=True)
    return held_out


def _home(ctx: Context) -> Path:
    return Path(os.path.realpath(data_home.directory(ctx.env))) / "hidden"


def directory(ctx: Context, held_out: HeldOut) -> Path:
    """Return the directory of a held-out check and its last output."""
    return _home(ctx) / held_out.sha256


def load(ctx: Context, task: Task) -> Material | None:
    """Return the parts of the held-out check of `task`; None if it has none.

    Raises ConfigError if that is not on this machine, or is not what was held out.
    """
    held_out = task.validation.hidden
    if not held_out:
        return None
    again = typed.harness("edit", task.id, rest="--hidden …")
    cure = f"The user completes it where the check was held out, or holds the check out again: {again}"
    try:
        if not _DIGEST.fullmatch(held_out.sha256):
            raise FileNotFoundError
        text = own_files.read(directory(ctx, held_out) / FILE)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        why = "is not on this machine" if gone else f"cannot be read: {error.strerror}"
        raise ConfigError(f"Task {task.id}: {FIELD}: what is held out {why}.", cure) from error
    if sha256.digest(text) != held_out.sha256:
        raise ConfigError(f"Task {task.id}: {FIELD}: what is held out was changed on this machine.", cure)
    fields = json.loads(text)
    return Material(fields["command"], tuple(_placed(fields["files"])), *_placed([fields["script"]]))


def cure(task: Task) -> str:
    """Return what to do about `task`, whose held-out check is on another machine."""
    again = typed.harness("edit", task.id, rest="--hidden …")
    return f"Run harness on that machine, or hold the check out again here: {again}"


def is_elsewhere(ctx: Context, task: Task) -> bool:
    """Return whether only another machine of the list has the held-out check of `task`."""
    kept = task.validation.hidden
    if not kept or not ctx.shared or not _DIGEST.fullmatch(kept.sha256):
        return False
    return not os.path.lexists(directory(ctx, kept) / FILE)


def tell(ctx: Context, task: Task, message: str, output: str, log: Path) -> None:
    """Keep the output of the held-out check of `task`, for a user."""
    assert task.validation.hidden is not None
    text = "\n".join(filter(None, (message, output, f"all of it: {log}"))) + "\n"
    fs.write(directory(ctx, task.validation.hidden) / LAST, text.encode(), durable=False)


def told(ctx: Context, task: Task) -> str:
    """Return what `tell` has kept; "" if the held-out check has not run on this machine."""
    assert task.validation.hidden is not None
    try:
        return own_files.read(directory(ctx, task.validation.hidden) / LAST).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _placed(rows: Sequence[Sequence[Any] | None]) -> Iterator[Placed]:
    yield from (Placed(row[0], row[1], base64.b64decode(row[2])) for row in rows if row is not None)


def imported(ctx: Context, drafts: Drafts, command: str, *, dry_run: bool) -> Drafts:
    """Return `drafts` with their held-out checks kept in the data directory; with `dry_run` only checked.

    Raises RefusedError inside an agent, which types `command`. Unusable ones are added to the problems.
    """
    from dataclasses import replace  # noqa: PLC0415 (only an import pays for it)

    items = list(drafts.items)
    for number, draft in enumerate(items):
        validation = draft.document.get("validation")
        if not isinstance(validation, dict) or draft.done:
            continue
        words = validation.get("hidden")
        words = [words] if isinstance(words, str) else words
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            continue
        rights.require_user(ctx, "A held-out check", command)
        try:
            material = read(ctx, words, validation.get("command"))
            kept = HeldOut("0" * 64) if dry_run else keep(ctx, material)
        except UsageError as error:
            problem = f"{draft.place_of(FIELD)}: {error.message} {error.hint}"
            drafts.problems.append((number, problem))
            kept = HeldOut("")
        told = {**validation, "hidden": {"sha256": kept.sha256}}
        items[number] = replace(draft, document={**draft.document, "validation": told})
    return replace(drafts, items=items)
