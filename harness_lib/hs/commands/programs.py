"""`hs hook|tool|provider`: a plugin as a program of its own, with the flags and streams of the protocol.

That is how a foreign engine, a test or a curious person reaches it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness_lib.errors import UsageError
from harness_lib.hs.setup.choose_model import resolve
from harness_lib.loop import discovery, plugins
from harness_lib.loop.failures import HookError, ProviderError
from harness_lib.loop.piped import as_object, as_text, dumps
from harness_lib.loop.providers import endpoints, keys
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.session import Session


def _hook(runtime: Runtime, args: list[str]) -> int:
    _enter(runtime)
    stage, _, name = (args[0] if len(args) == 1 else "").partition("/")
    plugin = runtime.table.entries.get(("hooks.d", stage, name))
    if plugin is None:
        raise UsageError("hs hook wants STAGE/NAME.", "hs hooks lists them.")
    try:
        result = plugin.target(runtime.at(stage), sys.stdin.read())
    except HookError as failure:
        print(as_text(failure.result))
        print(failure, file=sys.stderr)
        return 1
    print(as_text(result))
    return 0


def _tool(runtime: Runtime, args: list[str]) -> int:
    name, flag = args if len(args) == 2 else ("", "")  # noqa: PLR2004 (the name and the flag)
    ours = plugins.tool(runtime, name)
    _enter(runtime)
    # By its name one of ours is run also where the sources do not offer it to a model.
    tool = plugins.tool(runtime, name) or ours
    if tool is None or flag not in {"--schema", "--describe", "--exec"}:
        raise UsageError(
            "hs tool wants NAME and one of --schema, --describe, --exec.", "hs tools lists them."
        )
    if flag == "--describe":
        print(tool.describe(runtime))
        return 0
    if flag == "--schema":
        schema = tool.schema(runtime)
        print(dumps(schema) if schema else "")
        return int(schema is None)
    tool_input = as_object(sys.stdin.read() or "{}")
    if tool_input is None:
        print("error: the input is no JSON object")
        return 1
    result = tool.execute(runtime, tool_input)
    print(result.text)
    return int(result.error)


def _provider(runtime: Runtime, args: list[str]) -> int:
    if args == ["--ready"]:
        resolve(runtime)
        print(f"provider={runtime.provider}\nmodel={runtime.model}")
        return 0
    _enter(runtime)
    provider = endpoints.find_provider(runtime, args[0]) if args else None
    if provider is None:
        raise UsageError("hs provider wants the NAME of one.", "hs help lists them.")
    runtime.env["HARNESS_PROVIDER"] = args[0]
    flag = args[1] if len(args) > 1 else ""
    if flag == "--ready":
        return int(not provider.ready(runtime))
    if flag == "--describe":
        print(provider.describe(runtime))
    elif flag == "--env":
        print(provider.environment_help(runtime).rstrip("\n"))
    elif flag == "--defaults":
        for key, value in provider.defaults(runtime).items():
            print(f"{key}={value}")
    elif flag in {"", "--stream"}:
        try:
            print(dumps(provider.ask(runtime, as_object(sys.stdin.read()) or {})))
        except ProviderError as error:
            print(error, file=sys.stderr)
            return 1
    else:
        raise UsageError(
            f"hs provider does not know {flag}.", "It is one of --ready --describe --env --defaults."
        )
    return 0


def _enter(runtime: Runtime) -> None:
    """Use the session and the sources that the environment names, as every plugin that is a program does.

    A project's source is used only when it is trusted, whoever names it.
    """
    directory = os.environ.get("HARNESS_SESSION", "")
    if directory and Path(directory).is_dir():
        runtime.session = Session(Path(directory))
    if os.environ.get("HARNESS_SOURCES"):
        discovery.use(runtime, os.environ["HARNESS_SOURCES"].split(":"))
    keys.hide(runtime)


RUN = {"hook": _hook, "provider": _provider, "tool": _tool}
