"""The interface of an agent's file: its signs, its hook files, and how to start it and read its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:  # every hook and verb loads this
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from harness_lib.text import Strings

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = ("user", "project")
# The events that most hosts name as we do.
EVENTS = {name: name for name in ("Stop", "SubagentStop", "SessionStart", "SessionEnd", "SubagentStart")}
TOOLS = {name: name for name in ("PreToolUse", "PostToolUse")}

# The placeholder for the text in an answer to a hook.
TEXT = "TEXT"
# Never changed; the default of optional fields.
_NONE: Mapping[str, Any] = {}


class Signs(NamedTuple):
    """Signs that an agent, not a human, typed a command.

    `variables` are set for each command that it runs; none of them is set in the terminals of users.
    `session` is the variable with the id of its conversation, `process` the one with its process id.
    `details` are set beside these. `hooks` are set for its hooks, whose payloads have one of the `fields`.
    `programs` are names of its process, for an agent that sets no variable.
    `one_at_a_time`: a process has one conversation at a time, and the next one ends it.
    """

    name: str
    variables: Strings = ()
    session: str = ""
    process: str = ""
    details: Strings = ()
    hooks: Strings = ()
    fields: Strings = ()
    programs: Strings = ()
    one_at_a_time: bool = False


class Host(NamedTuple):
    """How an agent's program loads our hooks, and which answers it expects.

    `files` holds the hooks, by scope: the first one is written to, the others may hold some as well. Paths
    begin at the home (user) or at the top of the project. `home` is (variable, directory below the home that
    it stands for). `events` says what our events are called there, `also` is its second names of some;
    `matchers` says which tools are meant, where the host has names of its own.
    `form`: `groups` of handlers as Claude Code has them, `flat` handlers, or TOML. `kept` are the keys of an
    entry in hooks.json that it takes beside the usual ones; `has_names`: an entry has a name.
    `is_named`: whether a hook is told that this host calls it; other hosts read the settings of one that is
    not. `shared` is a file of Claude Code in the project that it reads too.
    `holds` limits how often a hook can hold its agent. `wakes`: it wakes it at the end of a
    command that it has put into the background, of which it tells a hook nothing.
    `answers` are those of `hookio.payload.ANSWERS` that it spells in its own way.
    """

    name: str
    title: str
    files: Mapping[Scope, Strings]
    events: Mapping[str, str]
    trust: Mapping[Scope, str]
    form: Literal["groups", "flat", "toml"] = "groups"
    home: tuple[str, str] | None = None
    also: Mapping[str, str] = _NONE
    matchers: Mapping[str, str | None] = _NONE
    command_key: str = "command"
    timeout_key: str = "timeout"
    timeout_unit: int = 1
    root: Mapping[str, object] = _NONE
    extra: Mapping[str, Mapping[str, object]] = _NONE
    kept: Strings = ()
    is_named: bool = True
    has_names: bool = False
    shared: str = ""
    is_measured: bool = True
    holds: str = ""
    wakes: bool = False
    answers: Mapping[str, Mapping[str, Any] | None] = _NONE


class Launch(NamedTuple):
    """How an agent is started, which reads its brief from standard input; `env` is added to its environment.

    `cost_flag` is the argument before the cost limit in US dollars, `usage_flag` the one before the file into
    which it writes its usage when it ends, a JSON object for `read`, `dir_flag` the one before a directory
    beside its work tree that it may use; "": it has none.
    In a sandbox it may write `writable`, files and directories below the home, and the paths of `homes`: a
    variable that names a directory, or VARIABLE/NAME in there. What ends with a slash is made. Words of
    its arguments are replaced as `inside` says, and it gets the credentials of each of its `clouds` of which
    one word is the name of a variable, or in its arguments or settings.
    """

    argv: Strings
    env: Mapping[str, str] = _NONE
    cost_flag: str = ""
    usage_flag: str = ""
    dir_flag: str = ""
    writable: Strings = ()
    homes: Strings = ()
    inside: Mapping[str, str] = _NONE
    clouds: Mapping[str, Strings] = _NONE

    def command(self, cost_usd: float | None = None, usage: str = "", beside: str = "") -> Strings:
        """Return the command with a cost limit of `cost_usd`, the file `usage` for its usage, and `beside`.

        Each is added only if the agent has such a flag; the first two only if the user has not passed it.
        """
        typed = (*self.argv, self.dir_flag, beside) if beside and self.dir_flag else self.argv
        cost = "" if cost_usd is None else f"{cost_usd:.6f}"
        passed = {word.split("=")[0] for word in self.argv}
        for flag, value in ((self.cost_flag, cost), (self.usage_flag, usage)):
            if flag and value and flag not in passed:
                typed = (*typed, flag, value)
        return typed


def arguments(usual: Strings, flags: Collection[str], model: str | None, extra: Sequence[str]) -> Strings:
    """Return `usual` unless the user passes one of `flags`, then the model and the user's own arguments."""
    chosen = any(word.partition("=")[0] in flags for word in extra)
    return (*(() if chosen else usual), *(("--model", model) if model else ()), *extra)


class Trouble(NamedTuple):
    """A failure that is not the agent's and that would stop another attempt, too.

    limit: the provider's usage limit is reached; wait until `resets_at` (None: unknown).
    transient: overloaded, a server error, no network, too many requests at once; try again in a while.
    login: not logged in, no key, no money, a setting that stops every run; a human must act.

    Some agents do not end on a limit but wait silently, for hours: the run stops them.
    """

    kind: Literal["limit", "transient", "login"]
    message: str
    resets_at: datetime | None = None


class Report(NamedTuple):
    """The output so far; every text is bounded and safe to print on a terminal.

    last: the last message or tool call, one line
    action: the last tool call, tool and arguments in a canonical form; "" if there was none
    actions: the number of tool calls so far
    tokens: the input and output so far, cached input included
    cost_usd: in US dollars so far; None: this agent does not report it
    trouble: the last one, removed once the agent has answered again
    said: its last message
    mark: what the adapter itself has to remember from one line to the next
    session: what the agent calls its conversation; "" until it says so
    """

    last: str = ""
    action: str = ""
    actions: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    trouble: Trouble | None = None
    said: str = ""
    mark: str = ""
    session: str = ""


class Adapter(NamedTuple):
    """One agent.

    name: the name that users type
    title: the name that users read
    program: the executable, which must be on the PATH
    launch: how it is started with a model, None for its own, and with arguments of the user
    read: returns a report with what a line, printed at a moment, adds to it; any line is legal. The moment is
    aware; a time of day without a zone is in its zone.
    exit_tells: whether an exit code other than 0 means that the agent did not finish
    """

    name: str
    title: str
    program: str
    launch: Callable[[str | None, Sequence[str]], Launch]
    read: Callable[[Report, str, datetime], Report]
    exit_tells: bool = True
