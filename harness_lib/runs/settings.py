"""The settings of `harness run`: typed, from the user's file, or from `harness.toml` of the project.

What is typed counts. A project's file can narrow what the user allows, and never widen it; so it needs no
trust. Both files are read when a run starts, and no later change counts for that run. Source:
docs/unattended.md, "Settings".
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harness_lib import typed
from harness_lib.agents import registry
from harness_lib.core.context import MERGE_MODES, Context
from harness_lib.errors import ConfigError, UsageError
from harness_lib.rules.run_state import Budget
from harness_lib.system import fs
from harness_lib.system.place import find_root
from harness_lib.system.processes import sandbox

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

TABLE = "run"
MOST_WORKERS = 64
Kind = Literal["text", "texts", "number", "whole"]


class Key(NamedTuple):
    """A setting: its `kind` or the `words` that it may be, widest first, and its default.

    `in_project`: a project may narrow it. `zero_is_none`: 0 is no limit. `most`: the largest number.
    """

    kind: Kind = "text"
    words: tuple[str, ...] = ()
    default: Any = None
    in_project: bool = False
    zero_is_none: bool = False
    most: int | None = None


def _limit(name: str) -> Key:
    kind: Kind = "whole" if isinstance(getattr(Budget(), name), int) else "number"
    return Key(kind, default=0, in_project=True, zero_is_none=True)


# By the name of the option without its dashes.
KEYS: Mapping[str, Key] = {
    "agent": Key(words=tuple(registry.ADAPTERS)),
    "agent-command": Key(),
    "model": Key(),
    "jobs": Key("whole", default=1, in_project=True, most=MOST_WORKERS),
    **{name.replace("_", "-"): _limit(name) for name in Budget._fields},
    "silence": Key("number", default=15.0, in_project=True),
    "longest": Key("number", default=240.0, in_project=True),
    "max-file": Key("number", default=100.0, in_project=True, zero_is_none=True),
    "final-check": Key(words=("none", "changed", "all"), in_project=True),
    "notify": Key(),
    "protect": Key("texts", default=(), in_project=True),
    "merge": Key(words=MERGE_MODES, default="local", in_project=True),
    "merge-command": Key(),
    "sandbox": Key(words=sandbox.MODES, default=sandbox.DEFAULT, in_project=True),
    "network": Key(words=sandbox.NETWORKS, default="open", in_project=True),
    "allow-write": Key("texts", default=()),
    "allow-env": Key("texts", default=()),
}
# Two ways to say which agent works: the one that is typed replaces both.
ONE_OF = ("agent", "agent-command")
NAMED_ENGINES = ("bubblewrap", "nono")


class Setting(NamedTuple):
    """The value of a setting, and where it comes from: a path, "typed" or "default"."""

    value: Any
    origin: str


def user_file(env: Mapping[str, str]) -> Path:
    """Return the path of the user's file, whether it exists or not."""
    base = env.get("XDG_CONFIG_HOME", "")
    directory = Path(base) if base.startswith("/") else Path("~/.config").expanduser()
    return directory / "harness" / find_root.SETTINGS


def project_file(ctx: Context) -> Path | None:
    """Return the path of the project's file, whether it exists or not; None in no project."""
    try:
        return ctx.root.path / find_root.SETTINGS
    except UsageError:
        return None


def effective(ctx: Context, given: Mapping[str, Any]) -> dict[str, Setting]:
    """Return each setting as a run has it with the options `given` by name.

    Raises ConfigError naming the file and what is wrong in it.
    """
    file, project = user_file(ctx.env), project_file(ctx)
    users, projects = read(file), read(project, is_project=True) if project else {}
    settings: dict[str, Setting] = {}
    given = {**given, "sandbox": given.get("sandbox") or _of_variable(ctx.env)}
    for name, key in KEYS.items():
        own = Setting(users[name], str(file)) if name in users else Setting(key.default, "default")
        narrowed = _narrowed(key, own.value, projects[name]) if name in projects else own.value
        settings[name] = own if narrowed == own.value else Setting(narrowed, str(project))
        if given.get(name) is not None:
            settings[name] = Setting(given[name], "typed")
    for name, other in (ONE_OF, ONE_OF[::-1]):
        if settings[name].origin == "typed" and settings[other].origin != "typed":
            settings[other] = Setting(None, "default")
    return settings


def _of_variable(env: Mapping[str, str]) -> str | None:
    """Return the sandbox that the environment names, as if it was typed. Raises UsageError."""
    value = env.get(sandbox.CHOICE) or None
    if value is not None and (wanted := problem(KEYS["sandbox"], value)):
        raise UsageError(f"{sandbox.CHOICE} must be {wanted}, not {value!r}.", "Correct it, or unset it.")
    return value


def _narrowed(key: Key, own: Any, project: Any) -> Any:
    if key.words:
        ranks = {word: rank for rank, word in enumerate(key.words)}
        return project if own is None or ranks[project] > ranks[own] else own
    if key.kind == "texts":
        return tuple(dict.fromkeys((*own, *project)))
    both = [value for value in (own, project) if value or not key.zero_is_none]
    return min(both, default=own)


def read(path: Path, *, is_project: bool = False) -> dict[str, Any]:
    """Return the settings in the file at `path` by name; none if there is no file.

    Raises ConfigError: it is no TOML, or has an unknown name or a wrong value.
    """
    document = _document(path).unwrap()
    unknown = [name for name in document if name != TABLE]
    if unknown or not isinstance(document.get(TABLE, {}), dict):
        raise ConfigError(
            f"{path}: {(unknown or [TABLE])[0]!r} is not a table of settings.", f"The one table is [{TABLE}]."
        )
    settings = document.get(TABLE, {})
    return {name: _checked(path, name, value, is_project=is_project) for name, value in settings.items()}


def _document(path: Path) -> TOMLDocument:
    import tomlkit  # noqa: PLC0415 (it takes longer to load than most verbs to run)
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        # Some editors put a mark in front of it.
        return tomlkit.parse(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return tomlkit.document()
    except (TOMLKitError, ValueError) as error:
        number = getattr(error, "line", 0)
        where = f"{path}, line {number}" if number else f"{path}"
        why = "" if number else f": {error}".rstrip(".")
        raise ConfigError(f"{where} is not TOML{why}.", "Correct it, or move it away.") from error


def _checked(path: Path, name: str, value: Any, *, is_project: bool) -> Any:
    """Return `value` as the type of the setting. Raises ConfigError."""
    where = f"{path}: {TABLE}.{name}"
    if name not in KEYS:
        raise ConfigError(f"{where} is not a setting.", _meant(name))
    key = KEYS[name]
    if is_project and not key.in_project:
        raise ConfigError(
            f"{where} is the user's to set: a project may only narrow what a run does.",
            f"Move it to your own file: {typed.harness('config', name, str(value))}",
        )
    if is_project and value in NAMED_ENGINES:
        raise ConfigError(f'{where} may only be "auto" or "require" in a project.', "Choose one of them.")
    if is_project and name == "merge" and value != "branch":
        raise ConfigError(f'{where} may only be "branch" in a project.', "Choose that.")
    wanted = problem(key, value)
    if wanted:
        raise ConfigError(
            f"{where} must be {wanted}, not {value!r}.", f"See: {typed.harness('run', '--help')}"
        )
    return tuple(value) if key.kind == "texts" else value


def problem(key: Key, value: Any) -> str:
    """Return what `value` should be; "" if it is."""
    if key.words:
        return "" if value in key.words else f"one of {', '.join(key.words)}"
    if key.kind == "texts":
        is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return "" if is_list else "a list of texts"
    if key.kind == "text":
        return "" if isinstance(value, str) and value.strip() else "a text"
    return _problem_of_number(key, value)


def _problem_of_number(key: Key, value: Any) -> str:
    """Return what `value` should be as a number; "" if it is."""
    number = "a whole number" if key.kind == "whole" else "a number"
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        return number
    if key.kind == "whole" and value != int(value):
        return number
    if key.most is not None and value > key.most:
        return f"{number} of at most {key.most}"
    is_enough = value >= 0 if key.zero_is_none else value > 0
    return "" if is_enough else f"{number} {'of 0 or more' if key.zero_is_none else 'above 0'}"


def _meant(name: str) -> str:
    close = difflib.get_close_matches(name.replace("_", "-"), KEYS, n=1, cutoff=0.5)
    return f"Did you mean {close[0]}?" if close else f"There are: {', '.join(KEYS)}."


def change(path: Path, name: str, text: str | None, *, is_project: bool) -> Any:
    """Set `name` in the file at `path` to the typed `text`, or remove it (None); return the value.

    The rest of the file stays as it is. Raises UsageError (no such name or value), ConfigError (the file).
    """
    import tomlkit  # noqa: PLC0415 (as above)

    if name not in KEYS:
        raise UsageError(f"{name} is not a setting.", _meant(name))
    read(path, is_project=is_project)
    # Such a file is often a link into a repository of the user's.
    path = path.resolve()
    document = _document(path)
    table = document.setdefault(TABLE, tomlkit.table())
    value = None
    if text is None:
        table.pop(name, None)
    else:
        try:
            value = _checked(path, name, parsed(KEYS[name], text), is_project=is_project)
        except ConfigError as error:
            raise UsageError(
                f"{name} cannot be {text!r}. {error}", f"See: {typed.harness('config')}"
            ) from error
        table[name] = list(value) if isinstance(value, tuple) else value
    fs.write(path, tomlkit.dumps(document).encode(), make=True)
    return value


def parsed(key: Key, text: str) -> Any:
    """Return the value that was typed as `text`, unless that is nothing like it: see `problem`."""
    if key.kind == "texts":
        return text.split(os.pathsep)
    if key.kind == "text" or key.words:
        return text
    try:
        number = float(text)
    except ValueError:
        # What it must be is said where it is checked.
        return text
    return int(number) if number.is_integer() else number
