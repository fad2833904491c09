"""Prepare a turn: parse the options, and find the session, its provider and its model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from harness_lib.errors import ConfigError, EnvSetupError, HarnessError, UsageError
from harness_lib.hs import session_store
from harness_lib.loop import (
    confined,
    discovery,
    hosted,
    keys,
    mcp_servers,
    permissions,
    piped,
    plugins,
    trust,
)
from harness_lib.loop.runtime import Runtime, Table
from harness_lib.loop.session import Session
from harness_lib.system.processes import sandbox
from harness_lib.text import Strings

_FLAGS = {"-p": "print", "--print": "print", "--json": "json", "--continue": "continue", "-": "stdin"}
# Each may be given more than once; their values are joined by commas.
_REPEATED = ("--keep-env",)
_VARIABLES = {
    "max-turns": "HARNESS_MAX_TURNS",
    "max-cost": "HARNESS_MAX_COST",
    "tools": "HARNESS_TOOLS",
    "approve": "HARNESS_APPROVE",
    "keep-env": keys.KEPT,
    "sandbox": sandbox.CHOICE,
}
_VALUES = {f"--{name}" for name in (*_VARIABLES, "model", "provider", "resume", "system")}
# The values of options as a pattern, and in words.
_WANTED = {
    "max-turns": ("0*[1-9][0-9]*", "a number of requests"),
    "max-cost": (r"[0-9]+\.?[0-9]*|\.[0-9]+", "an amount in US dollars"),
    **{name: ("|".join(words), f"one of {', '.join(words)}") for name, (_, words) in trust.SETTINGS.items()},
    "keep-env": (r"([^\W\d]\w*)(,[^\W\d]\w*)*", "the name of a variable"),
    "resume": (".+", "the name of a session"),
}
# The names of sessions.
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]+(-[0-9]+)?")


class Options(NamedTuple):
    """What was typed: flags without a value, options with theirs, and the words that are left."""

    flags: frozenset[str] = frozenset()
    values: Mapping[str, str] = MappingProxyType({})
    words: Strings = ()


def parse_options(args: list[str]) -> Options:
    """Parse `args`; after `--` all are words. Raises UsageError."""
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
        elif re.fullmatch(r"--\S*|-[A-Za-z]" if not words else r"--\S*", arg):
            raise UsageError(f"hs has no option {arg}.", f"If it is a word of the task: hs -- {arg} ...")
        else:
            words.append(arg)
    for name, (pattern, wanted) in _WANTED.items():
        if name in values and not re.fullmatch(pattern, values[name]):
            raise UsageError(f"--{name} wants {wanted}, not {values[name] or 'an empty text'}.")
    return Options(frozenset(flags), values, tuple(words))


def session(runtime: Runtime, asked: Options) -> tuple[Session | None, Strings]:
    """Return the session that was asked for, None for a new one, and the words that are left."""
    named = asked.values.get("resume")
    if named is not None:
        return session_store.to_go_on(runtime, named), asked.words
    if "continue" in asked.flags:
        return session_store.newest_here(runtime), asked.words
    word = asked.words[0] if asked.words else ""
    # What looks like an id is one, perhaps misspelt or of another project: as a task it would cost a request.
    existing = (session_store.known if _ID.fullmatch(word) else session_store.find)(runtime, word)
    if existing is not None and not session_store.is_own(runtime, existing):
        # A clone could have one of any name, and a task may begin with any word.
        runtime.notice(f"{existing.id} is a word of the task: you have not made the session of that name.")
        existing = None
    if existing is None:
        return None, asked.words
    return session_store.to_go_on(runtime, existing.id), asked.words[1:]


def enter(runtime: Runtime, existing: Session | None, asked: Options) -> None:
    """Hold the session or make one, with the options that were given and otherwise its own."""
    before, runtime.provider = runtime.provider, asked.values.get("provider", runtime.provider)
    # A model that came with a provider belongs to that one.
    belongs = not runtime.provider or before in ("", runtime.provider)
    runtime.model = asked.values.get("model", runtime.model if belongs else "")
    for name, variable in _VARIABLES.items():
        if (value := asked.values.get(name)) is not None:
            runtime.env[variable] = value
    _check_limits(runtime)
    runtime.system = asked.values.get("system")
    if existing is not None:
        hold(runtime, existing)
        own = existing.conf.get("provider", "")
        if runtime.provider in ("", own):
            # The session goes on with its own unless others were asked for.
            runtime.provider, runtime.model = own, runtime.model or existing.conf.get("model", "")
    resolve(runtime)
    # Raise an error for rules or a mode that cannot be understood.
    permissions.rules(runtime)
    trust.setting(runtime, "approve")
    if trust.setting(runtime, "sandbox") not in ("off", "auto"):
        with confined.within(agreed=False):
            confined.wall(runtime)
    keys.hide(runtime)
    # What the tools of an MCP server are is known when it has been asked.
    named = (name for name in runtime.table.allowed or () if not name.startswith(mcp_servers.PREFIX))
    if missing := next((name for name in named if not plugins.tool(runtime, name)), ""):
        raise UsageError(f"There is no tool {missing}.", "hs tools lists those that there are.")
    session = existing or session_store.create(runtime)
    runtime.enter(session)
    if existing is None:
        session.hold(is_new=True)


def hold(runtime: Runtime, session: Session) -> None:
    """Lock `session`; say if tools that were left running have been ended. Raises HeldError."""
    if ended := session.hold():
        runtime.notice(
            f"what was left running was ended ({ended}): hs was killed in the session {session.id}."
        )


def resolve(runtime: Runtime) -> None:
    """Set the run's provider and model by the stage `resolve`. Raises EnvSetupError where none is ready."""
    asked = {"provider": runtime.provider, "model": runtime.model}
    try:
        resolved = plugins.call(runtime, "resolve", asked, is_told=True)
    except piped.GarbageError as failure:
        raise piped.HookFailedError(f"{failure}.", "See hs hooks resolve.") from failure
    except piped.HookError as failure:
        problem = (piped.as_object(failure.result) or {}).get("error") or str(failure)
        raise EnvSetupError(str(problem)) from failure
    runtime.provider = str(resolved.get("provider") or "")
    runtime.model = str(resolved.get("model") or "")
    discovery.refresh(runtime)
    try:
        # A session needs the key, the login or the program of its provider.
        plugin = hosted.with_own_api(runtime)
        if not plugin:
            hosted.host(runtime).at(runtime)
        elif plugin.is_ours:
            plugin.target.check(runtime)
    except piped.ProviderError as error:
        raise EnvSetupError(str(error)) from error


def _check_limits(runtime: Runtime) -> None:
    """Raise ConfigError for a limit in the environment that cannot be read: it would not hold."""
    limits = {_VARIABLES[name]: _WANTED[name] for name in ("max-turns", "max-cost")}
    limits["HARNESS_TOOL_TIMEOUT"] = ("0*[1-9][0-9]*", "a number of seconds")
    for variable, (pattern, wanted) in limits.items():
        value = runtime.env.get(variable, "")
        if value and not re.fullmatch(pattern, value):
            raise ConfigError(f"{variable} wants {wanted}, not {value}.", "Correct or unset it.")


def switch(runtime: Runtime, provider: str, model: str) -> None:
    """Go on with `model`. Raises HarnessError and changes nothing if it fails."""
    before = runtime.provider, runtime.model
    runtime.provider, runtime.model = provider, model
    try:
        resolve(runtime)
    except HarnessError:
        runtime.provider, runtime.model = before
        discovery.refresh(runtime)
        raise
    runtime.session.goes_on_with(runtime.provider, runtime.model)


def meant(runtime: Runtime, name: str) -> tuple[str, str]:
    """Return the provider and the model that the user means by MODEL or PROVIDER/MODEL."""
    mine = hosted.find_provider(runtime, runtime.provider)
    own = mine.defaults(runtime).get("model", "") if mine else ""
    provider, _, model = name.partition("/")
    # A host of many vendors' models calls them VENDOR/MODEL.
    others = [] if "/" in own else discovery.candidates(_everywhere(runtime))
    if model and name != own and provider in (runtime.provider, *others):
        return provider, model
    return runtime.provider, name


def offered(runtime: Runtime) -> list[str]:
    """Return names for `meant`: the models of the provider in use, and PROVIDER/MODEL of others."""
    own, names = f"{runtime.provider}/", models(runtime)
    mine = [name.removeprefix(own) for name in names if name.startswith(own)]
    is_of_many = any("/" in name for name in mine)
    return [*mine, *(name for name in names if not (is_of_many or name.startswith(own)))]


def models(runtime: Runtime) -> list[str]:
    """Return PROVIDER/MODEL for each provider that is ready: its default, and what its pack knows.

    Providers that are programs are not asked: one of them may take its time.
    """
    wide = _everywhere(runtime)
    names: dict[str, None] = {}
    for name in discovery.candidates(wide):
        plugin, provider = wide.table.find("providers", name), hosted.find_provider(wide, name)
        if provider and (not plugin or plugin.is_ours) and provider.ready(wide):
            names[f"{name}/{provider.defaults(wide)['model']}"] = None
            lines = hosted.by_prefix(str(runtime.root / "plugins" / name))
            # Another one is only the beginning of a name.
            names |= {f"{name}/{line}": None for line in lines if not line.endswith(("-", "."))}
    return list(names)


def _everywhere(runtime: Runtime) -> Runtime:
    """Return the run without a provider, so with the packs of all providers."""
    wide = replace(runtime, provider="", model="", table=Table())
    discovery.refresh(wide)
    return wide
