"""The options of `hs` for a task, told apart from the words of the task."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness_lib.errors import UsageError
from harness_lib.loop import approval

_FLAGS = {"-p": "print", "--print": "print", "--json": "json", "--continue": "continue", "-": "stdin"}
# Each may be given more than once; their values are joined by commas.
_REPEATED = ("--keep-env",)
_VALUES = (
    *_REPEATED,
    "--approve",
    "--max-turns",
    "--max-cost",
    "--model",
    "--provider",
    "--resume",
    "--system",
    "--tools",
)


@dataclass(frozen=True)
class Options:
    """What was typed: flags without a value, options with theirs, and the words that are left."""

    flags: frozenset[str] = frozenset()
    values: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    def value(self, name: str) -> str | None:
        """Return the value of the option `name`; None if it was not given."""
        return self.values.get(name)

    def without(self, *names: str) -> Options:
        """Return them but for the options `names`."""
        return replace(self, values={key: value for key, value in self.values.items() if key not in names})


def parse(args: list[str]) -> Options:
    """Return what `args` say; behind `--` all are words. Raises UsageError."""
    flags: set[str] = set()
    values: dict[str, str] = {}
    words: list[str] = []
    left = iter(args)
    for arg in left:
        name, assigned, value = arg.partition("=")
        if arg == "--":
            words += left
        elif arg in _FLAGS:
            flags.add(_FLAGS[arg])
        elif name in _VALUES:
            argument = value if assigned else next(left, None)
            if argument is None:
                raise UsageError(f"{name} wants a value.", "See hs help.")
            before = f"{values[name[2:]]}," if name in _REPEATED and name[2:] in values else ""
            values[name[2:]] = before + argument
        elif arg.startswith("--") and not any(c.isspace() for c in arg):
            raise UsageError(f"hs has no option {arg}.", f"If it is a word of the task: hs -- {arg} ...")
        else:
            words.append(arg)
    _check(values)
    return Options(frozenset(flags), values, tuple(words))


def _check(values: dict[str, str]) -> None:
    turns, cost = values.get("max-turns", "1"), values.get("max-cost", "0")
    if not (turns.isascii() and turns.isdigit() and int(turns)):
        raise UsageError(f"--max-turns wants a number of requests, not {turns}.")
    if not _is_amount(cost):
        raise UsageError(f"--max-cost wants an amount in US dollars, not {cost}.")
    _check_approve(values)
    for variable in values.get("keep-env", "X").split(","):
        if not variable.isidentifier():
            raise UsageError(f"--keep-env wants the name of a variable, not {variable}.")


def _check_approve(values: dict[str, str]) -> None:
    mode = values.get("approve", "auto")
    if mode not in approval.MODES:
        raise UsageError(f"--approve wants one of {', '.join(approval.MODES)}, not {mode}.")


def _is_amount(text: str) -> bool:
    whole, _, part = text.partition(".")
    digits = whole + part
    return digits.isascii() and digits.isdigit()
