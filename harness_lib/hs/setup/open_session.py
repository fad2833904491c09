"""The options of `hs` for a task, told apart from the words of the task."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness_lib.errors import UsageError
from harness_lib.hs.setup import session_store
from harness_lib.hs.setup.choose_model import resolve
from harness_lib.loop import approval, plugins
from harness_lib.loop.mcp.tools import PREFIX
from harness_lib.loop.providers import keys
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.session import Session

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
_VARIABLES = {
    "model": "HARNESS_MODEL",
    "provider": "HARNESS_PROVIDER",
    "max-turns": "HARNESS_MAX_TURNS",
    "max-cost": "HARNESS_MAX_COST",
    "tools": "HARNESS_TOOLS",
    "approve": "HARNESS_APPROVE",
    "keep-env": keys.KEPT,
}


@dataclass(frozen=True)
class Options:
    """What was typed: flags without a value, options with theirs, and the words that are left."""

    flags: frozenset[str] = frozenset()
    values: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    def without(self, *names: str) -> Options:
        """Return them but for the options `names`."""
        return replace(self, values={key: value for key, value in self.values.items() if key not in names})


def parse_options(args: list[str]) -> Options:
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
    mode = values.get("approve", "auto")
    if mode not in approval.MODES:
        raise UsageError(f"--approve wants one of {', '.join(approval.MODES)}, not {mode}.")
    for variable in values.get("keep-env", "X").split(","):
        if not variable.isidentifier():
            raise UsageError(f"--keep-env wants the name of a variable, not {variable}.")


def _is_amount(text: str) -> bool:
    whole, _, part = text.partition(".")
    digits = whole + part
    return digits.isascii() and digits.isdigit()


def session(runtime: Runtime, asked: Options) -> tuple[Session | None, tuple[str, ...]]:
    """Return the session that was asked for, None for a new one, and the words that are left."""
    named = asked.values.get("resume")
    if named is not None:
        return to_go_on(runtime, named), asked.words
    if "continue" in asked.flags:
        return newest_here(runtime), asked.words
    existing = session_store.find(runtime, asked.words[0]) if asked.words else None
    if existing is not None and not session_store.is_own(runtime, existing):
        # A clone could have one of any name, and a task may begin with any word.
        runtime.notice(f"{existing.id} is a word of the task: you have not made the session of that name.")
        existing = None
    if existing is not None:
        session_store.check_own(runtime, existing)
    return existing, asked.words[1:] if existing else asked.words


def known(runtime: Runtime, name: str) -> Session:
    """Return the session `name`. Raises UsageError."""
    session = session_store.find(runtime, name)
    if session is None:
        raise UsageError(f"There is no session {name}.", "hs session list shows those that there are.")
    return session


def to_go_on(runtime: Runtime, name: str) -> Session:
    """Return the session `name` of this person, which works where it may. Raises UsageError, RefusedError."""
    session = known(runtime, name)
    session_store.check_own(runtime, session)
    return session


def newest_here(runtime: Runtime) -> Session:
    """Return the session of this directory in which something was said last. Raises UsageError."""
    cwd = str(runtime.cwd)
    of_here = (each for each in session_store.every(runtime) if each.conf.get("cwd") == cwd)
    newest = next((each for each in of_here if each.files()), None)
    if newest is None:
        raise UsageError("There is no session of this directory yet.", "Begin one: leave out --continue.")
    return newest


def enter(runtime: Runtime, existing: Session | None, asked: Options) -> None:
    """Hold the session, or make one, with what was asked for and otherwise with what it had."""
    other = asked.values.get("provider")
    if other and other != runtime.provider and "model" not in asked.values:
        # A model belongs to its provider.
        runtime.env["HARNESS_MODEL"] = ""
    for name, variable in _VARIABLES.items():
        if (value := asked.values.get(name)) is not None:
            runtime.env[variable] = value
    runtime.system = asked.values.get("system")
    if existing is not None:
        hold(runtime, existing)
        _restore(runtime, existing.conf)
    resolve(runtime)
    keys.hide(runtime)
    _check_tools(runtime)
    runtime.session = existing or session_store.create(runtime)
    if existing is None:
        runtime.session.hold()


def hold(runtime: Runtime, session: Session) -> None:
    """Let nobody else work in `session`; say so where that has ended something. Raises HeldError."""
    if ended := session.hold():
        runtime.notice(
            f"what was left running was ended ({ended}): hs was killed in the session {session.id}."
        )


def _restore(runtime: Runtime, conf: dict[str, str]) -> None:
    """Go on with the provider and model of the session; who asks for others gets them."""
    if not runtime.provider:
        runtime.env["HARNESS_PROVIDER"] = conf.get("provider", "")
        runtime.env["HARNESS_MODEL"] = runtime.model or conf.get("model", "")


def _check_tools(runtime: Runtime) -> None:
    asked = runtime.allowed_tools or ()
    # What a server has is known when it has been asked.
    missing = [name for name in asked if not name.startswith(PREFIX) and not plugins.tool(runtime, name)]
    if missing:
        raise UsageError(f"There is no tool {missing[0]}.", "hs tools lists those that there are.")
