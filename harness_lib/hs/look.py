"""Commands that look (`hs tools`, `hooks`, `session`, `trust`, `version`), and those that run one plugin.

`hs hook|tool|provider` runs a plugin with the flags and streams of the protocol, as another engine, a test
or a curious user needs it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import harness_lib
from harness_lib.errors import UsageError
from harness_lib.hs import session_store
from harness_lib.hs.output import show
from harness_lib.hs.setup import known, resolve
from harness_lib.loop import discovery, disk, plugins, trust
from harness_lib.loop.piped import HookError, ProviderError, as_object, as_text, dumps
from harness_lib.loop.providers import hosted, keys
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.session import Session

AUTH_USAGE = "hs auth set|login|logout PROVIDER [--local] | list [PROVIDER] | rm PROVIDER INDEX [--local]"
SESSION_USAGE = "hs session list | show ID | dir [ID] | fork ID [NNNN] | export ID [--json] | rm ID"


def tools(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    """List the tools that the model gets."""
    for plugin in runtime.table.of("tools"):
        show(f"  {plugin.name:<20} {plugin.target.describe(runtime)}  [{plugin.origin}]")
    return 0


def hooks(runtime: Runtime, args: list[str]) -> int:
    """List the hooks of a stage, or all."""
    found = [plugin for plugin in runtime.table.all if plugin.kind == "hooks.d"]
    if args:
        found = [plugin for plugin in found if plugin.stage == args[0]]
        if not found:
            raise UsageError(f"There are no hooks in the stage {args[0]}.", "hs hooks lists all of them.")
    for plugin in found:
        show(f"  {plugin.stage}/{plugin.name}  [{plugin.origin}]")
    return 0


def version(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    """Print the version."""
    print(f"harness {harness_lib.__version__}")
    return 0


def trust_here(runtime: Runtime, args: list[str]) -> int:
    """Trust the sources of this project as they are now."""
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


def session(runtime: Runtime, args: list[str]) -> int:
    """Look at sessions, copy and remove them."""
    match args:
        case [] | ["list"]:
            for each in session_store.every(runtime):
                # Programs want the names; the user knows a session by its title.
                show(f"{each.id}  {each.title}".rstrip() if sys.stdout.isatty() else each.id)
        case ["show", name]:
            _show(known(runtime, name))
        case ["fork", name, *last] if not last or (len(last) == 1 and disk.number(last[0])):
            number = disk.number(last[0]) if last else None
            show(session_store.fork(runtime, known(runtime, name), number).id)
        case ["export", "--json", name] | ["export", name, "--json"]:
            show(dumps(session_store.as_json(known(runtime, name))))
        case ["export", name]:
            show(session_store.markdown(known(runtime, name)), end="")
        case ["rm", name]:
            for removed in session_store.remove(runtime, known(runtime, name)):
                show(f"removed: {removed}")
        case ["dir", *name] if len(name) <= 1:
            show(runtime.sessions.joinpath(*name))
        case _:
            raise _misused(args)
    return 0


def _misused(args: list[str]) -> UsageError:
    if args in (["show"], ["fork"], ["export"], ["rm"]):
        said = f"hs session {args[0]} wants the ID of a session."
        return UsageError(said, "hs session list shows those that there are.")
    return UsageError(f"hs session does not understand: {' '.join(args)}.", f"Usage: {SESSION_USAGE}")


def _show(session: Session) -> None:
    show(disk.render_conf(session.conf), end="")
    files = session.files()
    account = context.total(session.messages())
    show(f"tokens_in={account.tokens_in}\ntokens_out={account.tokens_out}\ncost={account.shown()}")
    show("\n".join([f"messages={len(files)}", *(path.name for path in files)]))


def hook(runtime: Runtime, args: list[str]) -> int:
    """Run one hook as a program."""
    _enter(runtime)
    stage, _, name = (args[0] if len(args) == 1 else "").partition("/")
    plugin = runtime.table.entries.get(("hooks.d", stage, name))
    if plugin is None:
        raise _unknown("hook", args if len(args) == 1 else [], "STAGE/NAME", "hs hooks")
    text, runtime.stage = sys.stdin.read(), stage
    try:
        result = plugin.target(runtime, as_object(text) or {} if plugin.is_ours else text)
    except HookError as failure:
        print(as_text(failure.result))
        print(failure, file=sys.stderr)
        return 1
    print(as_text(result))
    return 0


def tool(runtime: Runtime, args: list[str]) -> int:
    """Run one tool as a program."""
    name, flag = args if len(args) == 2 else ("", "")  # noqa: PLR2004 (the name and the flag)
    ours = plugins.tool(runtime, name)
    _enter(runtime)
    # A built-in tool can be run by its name even if the sources do not offer it to a model.
    found = plugins.tool(runtime, name) or ours
    if found is None or flag not in {"--schema", "--describe", "--exec"}:
        named = [name] if name and found is None else []
        raise _unknown("tool", named, "NAME and one of --schema, --describe, --exec", "hs tools")
    if flag == "--describe":
        print(found.describe(runtime))
        return 0
    if flag == "--schema":
        schema = found.schema(runtime)
        print(dumps(schema) if schema else "")
        return int(schema is None)
    tool_input = as_object(sys.stdin.read() or "{}")
    if tool_input is None:
        print("error: the input is not a JSON object")
        return 1
    result = found.execute(runtime, tool_input)
    print(result.text)
    return int(result.error)


def provider(runtime: Runtime, args: list[str]) -> int:
    """Run one provider as a program, or tell which one is ready."""
    if args == ["--ready"]:
        resolve(runtime)
        print(f"provider={runtime.provider}\nmodel={runtime.model}")
        return 0
    _enter(runtime)
    found = hosted.find_provider(runtime, args[0]) if args else None
    if found is None:
        raise _unknown("provider", args, "the NAME of one", "hs help")
    runtime.provider = args[0]
    flag = args[1] if len(args) > 1 else ""
    match flag:
        case "--ready":
            return int(not found.ready(runtime))
        case "--describe":
            print(found.describe(runtime))
        case "--env":
            print(found.environment_help(runtime).rstrip("\n"))
        case "--defaults":
            print(disk.render_conf(found.defaults(runtime)), end="")
        case "" | "--stream":
            try:
                print(dumps(hosted.asked(runtime).ask(runtime, as_object(sys.stdin.read()) or {})))
            except ProviderError as error:
                print(error, file=sys.stderr)
                return 1
        case _:
            raise UsageError(
                f"hs provider does not know {flag}.", "It is one of --ready --describe --env --defaults."
            )
    return 0


def _unknown(kind: str, args: list[str], wanted: str, lists: str) -> UsageError:
    """Return the error for a plugin that does not exist, or, without `args`, for a command without a name."""
    said = f"There is no {kind} {args[0]}." if args else f"hs {kind} wants {wanted}."
    return UsageError(said, f"{lists} lists them.")


def _enter(runtime: Runtime) -> None:
    """Use the session and the sources that the environment names, as every plugin that is a program does.

    A project's source is used only when it is trusted, whoever names it.
    """
    directory = os.environ.get("HARNESS_SESSION", "")
    if directory and Path(directory).is_dir():
        runtime.enter(Session(Path(directory)))
    if os.environ.get("HARNESS_SOURCES"):
        discovery.use(runtime, os.environ["HARNESS_SOURCES"].split(":"))
    keys.hide(runtime)
