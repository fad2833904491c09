"""Describe fields of the task list: what a field may hold, what it means, how a user gives it.

The records of `harness_lib.task` say it of each of their fields, once. `state/reading.py` makes of it the
reader and the writer, `given.py` the options of the command line, `docs/fields.py` the published schema.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

from harness_lib.text import Strings

LARGEST = 2**53 - 1
LONGEST_TIMEOUT = 366 * 24 * 3600
# `$` also matches before a last line break in Python, but not in other JSON Schema validators.
_END = r"(?![\s\S])"
ID_PATTERN = r"^(?![.-])[^\s\[\]/\\\x00-\x1f\x7f\ud800-\udfff]{1,100}" + _END
# What may be read is more than what may be made: a shell takes a new id as it is.
NEW_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*" + _END
COMMAND_PATTERN = r"^[^\x00\ud800-\udfff]*" + _END
REVISION_PATTERN = r"^(?!-)[^\s\x00-\x1f\x7f\ud800-\udfff]{0,200}" + _END
# Newer Pythons read more (24:00 and the like) than older ones: what all of them read alike.
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
MOMENT_PATTERN = (
    rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([Tt ]{_CLOCK}(:[0-5][0-9]([.][0-9]+)?)?([Zz]|[+-]{_CLOCK})?)?{_END}"
)
# The named tuple of a record.
Record = Callable[..., Any]
Form = Literal["text", "moment", "integer", "number", "flag", "choice", "list", "record", "version"]


# For these forms null does not count as absent, unless the field says so.
_NO_NULL = frozenset(("integer", "number", "flag"))


class Kind(NamedTuple):
    """What a value may be; `form` says which of the others matter.

    `least` and `most` bound a number, or the length of a text; `expected` says in words what `pattern` asks
    for. `of` is what a list holds, `record` the named tuple that an object becomes.
    `definition` names the part of the published schema that says the same.
    """

    form: Form
    least: int = 0
    most: int | None = None
    pattern: str = ""
    expected: str = ""
    words: Strings = ()
    of: "Kind | None" = None
    record: Record | None = None
    definition: str = ""


class Typed(NamedTuple):
    """How a user gives a field: an option of `harness add` and `harness edit`, and a line of a check list.

    `edit_help` is said by `edit` where it means something else there.
    `splits`: one option may name several, as ID,ID.
    `repeats`: a check list may say it in several lines.
    `words` may stand before the colon in a check list; the first is the one that messages name.
    """

    option: str = ""
    metavar: str | None = None
    help: str | None = None
    edit_help: str | None = None
    splits: bool = False
    repeats: bool = False
    words: Strings = ()


class About(NamedTuple):
    """All that is said of a field, for its `Annotated`: what it holds, and what it means.

    `null`: null counts as absent, unless it is required; where nothing is said, it does but for numbers and
    flags. `always`: it is written even when it holds its default. `required`: an object without it is
    refused, so it always is. `absent` is what a file means that leaves it out, where that is not the default
    of a new one. `columns` adds its name, and its default in a new record.
    """

    kind: Kind
    means: str
    null: bool | None = None
    always: bool = False
    required: bool = False
    absent: Any = None
    typed: Typed | None = None
    name: str = ""
    default: Any = None


@cache
def columns(record: Record) -> tuple[About, ...]:
    """Return the fields of `record` in the order in which they are written."""
    table: Any = record
    return tuple(
        [
            about._replace(
                name=name,
                default=table._field_defaults.get(name),
                null=not about.required
                and (about.kind.form not in _NO_NULL if about.null is None else about.null),
                always=about.always or about.required,
            )
            for name in table._fields
            if name != "extra"
            for about in table.__annotations__[name].__metadata__
        ]
    )


def integer(least: int = 0, most: int = LARGEST) -> Kind:
    """Return the kind of a whole number."""
    return Kind("integer", least, most)


def choice(literal: object) -> Kind:
    """Return the kind of one of the words of a `Literal`."""
    return Kind("choice", words=get_args(literal))


def listed(kind: Kind) -> Kind:
    """Return the kind of a list of `kind`."""
    return Kind("list", of=kind)


def record(build: Record, definition: str = "") -> Kind:
    """Return the kind of an object that becomes a `build`."""
    return Kind("record", record=build, definition=definition)


STRING = Kind("text")
TITLE = Kind("text", most=1000)
LONG = Kind("text", most=20000)
NOTE = Kind("text", most=2000)
SHORT_PATH = Kind("text", most=4096)
COMMAND = Kind(
    "text",
    most=20000,
    pattern=COMMAND_PATTERN,
    expected="text that a shell can be given (no NUL character)",
    definition="command",
)
PATH = Kind(
    "text", most=4096, pattern=COMMAND_PATTERN, expected="a path (no NUL character)", definition="path"
)
GLOB = Kind("text", 1, 4096, COMMAND_PATTERN, "a pattern of paths")
REVISION = Kind("text", pattern=REVISION_PATTERN, expected="the name of a git object", definition="revision")
ID = Kind(
    "text",
    pattern=ID_PATTERN,
    expected="1 to 100 characters without spaces, brackets and slashes, not beginning with a dot or a dash",
    definition="id",
)
MOMENT = Kind("moment", pattern=MOMENT_PATTERN, definition="moment")
AMOUNT = Kind("number", 0, LARGEST)
FLAG = Kind("flag")
VERSION_NUMBER = Kind("version")
