"""Commands that look: `hs tools`, `hooks`, `session`, `trust`, `version`; and what a command is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import harness_lib
from harness_lib.errors import UsageError
from harness_lib.hs.output import show
from harness_lib.hs.setup import session_store
from harness_lib.hs.setup.open_session import known
from harness_lib.loop import disk, trust
from harness_lib.loop.piped import dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.session import Session

AUTH_USAGE = "hs auth set|login|logout PROVIDER [--local] | list [PROVIDER] | rm PROVIDER INDEX [--local]"
_USAGE = "hs session list | show ID | dir [ID] | fork ID [NNNN] | export ID [--json] | rm ID"


@dataclass(frozen=True)
class Builtin:
    """One of our commands."""

    description: str
    function: Callable[[Runtime, list[str]], int]
    is_help: bool = False

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        """Return one line for people."""
        return self.description

    def __call__(self, runtime: Runtime, args: list[str]) -> int:
        """Do it and return the exit code; asked for help, say the line for people and do nothing."""
        if args in (["--help"], ["-h"]) and not self.is_help:
            show(f"{self.description}\nEverything else: hs help")
            return 0
        return self.function(runtime, args)


def _tools(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    for plugin in runtime.table.of("tools"):
        show(f"  {plugin.name:<20} {plugin.target.describe(runtime)}  [{plugin.origin}]")
    return 0


def _hooks(runtime: Runtime, args: list[str]) -> int:
    hooks = [plugin for plugin in runtime.table.all if plugin.kind == "hooks.d"]
    if args:
        hooks = [plugin for plugin in hooks if plugin.stage == args[0]]
        if not hooks:
            raise UsageError(f"There are no hooks in the stage {args[0]}.", "hs hooks lists all of them.")
    for plugin in hooks:
        show(f"  {plugin.stage}/{plugin.name}  [{plugin.origin}]")
    return 0


TOOLS = Builtin("List the tools that the model gets", _tools)

HOOKS = Builtin("List hooks: hs hooks [STAGE]", _hooks)


def _version(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    print(f"harness {harness_lib.__version__}")
    return 0


VERSION = Builtin("Say which version this is", _version)


def _trust(runtime: Runtime, args: list[str]) -> int:
    if args:
        raise UsageError(
            "hs trust takes no arguments.", "It trusts the .harness directories from here upwards."
        )
    sources = [source for source in runtime.sources if trust.content(runtime, source)]
    if not sources:
        show("There is nothing to trust here.")
        return 0
    trust.save(runtime, sources)
    for source in sources:
        show(f"trusted: {source}")
        for path in trust.content(runtime, source):
            show(f"  {path.relative_to(source)}")
    return 0


TRUST = Builtin("Let this project's plugins and settings be used as they are now", _trust)


def _session(runtime: Runtime, args: list[str]) -> int:
    word, rest = (args[0], args[1:]) if args else ("list", [])
    if word == "list" and not rest:
        for session in session_store.every(runtime):
            # Programs want the names; a person knows a session by its title.
            show(f"{session.id}  {session.title}".rstrip() if sys.stdout.isatty() else session.id)
        return 0
    if word == "show" and len(rest) == 1:
        return _show(known(runtime, rest[0]))
    if word == "fork" and rest and len(rest) <= 2 and all(part.isdigit() for part in rest[1:]):  # noqa: PLR2004 (ID NNNN)
        show(session_store.fork(runtime, known(runtime, rest[0]), int(rest[1]) if rest[1:] else None).id)
        return 0
    if word == "export" and len(names := [part for part in rest if part != "--json"]) == 1:
        session = known(runtime, names[0])
        as_json = "--json" in rest
        show(
            dumps(session_store.as_json(session))
            if as_json
            else session_store.markdown(session).removesuffix("\n")
        )
        return 0
    if word == "rm" and len(rest) == 1:
        show("\n".join(f"removed: {name}" for name in session_store.remove(runtime, known(runtime, rest[0]))))
        return 0
    if word == "dir" and len(rest) <= 1:
        show(session_store.store(runtime) / rest[0] if rest else session_store.store(runtime))
        return 0
    raise UsageError(f"hs session does not understand: {' '.join(args)}.", f"Usage: {_USAGE}")


def _show(session: Session) -> int:
    show(disk.render_conf(session.conf), end="")
    files = session.files()
    account = context.total(session.messages())
    show(f"tokens_in={account.tokens_in}\ntokens_out={account.tokens_out}\ncost={account.shown()}")
    show(f"messages={len(files)}")
    for path in files:
        show(path.name)
    return 0


SESSION = Builtin(f"Look at sessions: {_USAGE}", _session)
