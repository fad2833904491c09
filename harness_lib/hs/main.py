"""`hs`: find which command is meant, run it, and say how it failed; `hs help`, and commands about plugins.

`hs hook|tool|provider` runs a plugin with the flags and streams of the protocol, as another engine, a test
or a curious user needs it.

Exit codes: 0 answered, 1 the provider or a hook failed, 2 usage, 3 configuration, 5 the session is held,
7 no provider is ready or the machine lacks something, 8 refused, 70 a bug in harness, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

import harness_lib
from harness_lib import errors
from harness_lib.errors import EnvSetupError, Exit, HarnessError, UsageError
from harness_lib.hs import agent, auth, session_store, setup, terminal
from harness_lib.hs.terminal import complain, one_line, show
from harness_lib.loop import discovery, disk, hosted, keys, plugins, processes, runtime, session, trust
from harness_lib.loop.piped import HookError, ProviderError, as_object, as_text, dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.system.processes import environment, own_process

_USAGE = """\
hs: an agent loop in which everything is a plugin

  hs "find all TODO comments"    do a task and print the answer
  cat log | hs "why?"            with standard input as context
  hs SESSION "go on"             continue a session (--resume ID; --continue: the newest of this directory)
  hs -p --json "find it"         events for a program, one JSON object per line, the result last

Options of a task:
  --model M, --provider P        override the settings
  --max-turns N                  request limit
  --max-cost USD                 cost limit in USD; without a known price one request
  --approve auto|ask|read-only   ask before tools that change something; read-only refuses those (auto)
  --sandbox auto|require|off     confine calls that you are not asked about (auto; on macOS off)
  --tools a,b                    only these tools
  --keep-env NAME                let tools see this variable with a provider's key (repeatable)
  --system TEXT                  replace the prompts
  -                              wait for standard input without a time limit
  --                             the rest is the task

Commands:"""
_VARIABLES = """\
Environment:
  HARNESS_PROVIDER       provider (default: the first that is ready)
  HARNESS_MODEL          model (default: the provider's)
  HARNESS_MAX_TURNS      requests in one run (100)
  HARNESS_SESSIONS       where sessions are (default: the nearest .harness/sessions, else home's)
  HARNESS_HOME           home of plugins (~/.harness); where set, of harness's data too
  HARNESS_KEEP_ENV       as --keep-env, names by commas
  HARNESS_SANDBOX        as --sandbox
  HARNESS_LOG            file for the output of hooks and tools (/dev/stderr)
  HARNESS_STREAM         1: stream the answer, also into a pipe
  HARNESS_THINKING       reasoning effort (low, medium, high, max)
  HARNESS_TOOL_TIMEOUT   time limit in seconds for a command (120) or a tool of yours (3600)
  HARNESS_READ_LIMIT     most lines that read_file shows at once (2000)"""


class Builtin(NamedTuple):
    """A built-in command."""

    description: str
    function: Callable[[Runtime, list[str]], int]


def _help(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    show(_USAGE)
    foreign = {plugin.name: plugin.target for plugin in runtime.table.of("commands")}
    for name in sorted({*COMMANDS, *foreign}):
        described = foreign[name].describe(runtime) if name in foreign else COMMANDS[name].description
        show(f"  {name:<12} {described}")
    show(f"\n{_VARIABLES}\n\nProviders:")
    for plugin in runtime.table.of("providers"):
        show(f"  {plugin.name:<12} {plugin.target.describe(runtime)}")
        for line in plugin.target.environment_help(runtime).splitlines():
            show(f"      {line}")
    configs = (hosted.find_config(runtime, name) for name in sorted(discovery.candidates(runtime)))
    for config in filter(None, configs):
        login = f"hs auth login {config.name}" if config.values.get("auth") else ""
        needs = login or config.values.get("auth_env") or "no key"
        show(f"  {config.name:<12} {config.values.get('description', '')} ({needs})")
    show("\nTools:")
    for plugin in runtime.table.of("tools"):
        show(f"  {plugin.name:<12} {plugin.target.describe(runtime)}")
    show("\nPlugins are looked for in:")
    for source in runtime.sources:
        show(f"  {Path(source)}")
    return 0


def _doctor(runtime: Runtime, args: list[str]) -> int:
    from harness_lib.hs import doctor  # noqa: PLC0415 (most calls of hs do a task, and start sooner)

    return doctor.run(runtime, args)


def _tools(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    """List the tools that the model gets."""
    for plugin in runtime.table.of("tools"):
        show(f"  {plugin.name:<20} {plugin.target.describe(runtime)}  [{plugin.origin}]")
    return 0


def _hooks(runtime: Runtime, args: list[str]) -> int:
    """List the hooks of a stage, or all."""
    found = [plugin for plugin in runtime.table.all if plugin.kind == "hooks.d"]
    if args:
        found = [plugin for plugin in found if plugin.stage == args[0]]
        if not found:
            raise UsageError(f"There are no hooks in the stage {args[0]}.", "hs hooks lists all of them.")
    for plugin in found:
        show(f"  {plugin.stage}/{plugin.name}  [{plugin.origin}]")
    return 0


def _version(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    """Print the version."""
    print(f"harness {harness_lib.__version__}")
    return 0


def _trust(runtime: Runtime, args: list[str]) -> int:
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


def _hook(runtime: Runtime, args: list[str]) -> int:
    """Run one hook as a program."""
    _enter(runtime)
    stage, _, name = (args[0] if len(args) == 1 else "").partition("/")
    plugin = runtime.table.entries.get(("hooks.d", stage, name))
    if not plugin:
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


def _tool(runtime: Runtime, args: list[str]) -> int:
    """Run one tool as a program."""
    name, flag = args if len(args) == 2 else ("", "")  # noqa: PLR2004 (the name and the flag)
    ours = plugins.tool(runtime, name)
    _enter(runtime)
    # A built-in tool can be run by its name even if the sources do not offer it to a model.
    found = plugins.tool(runtime, name) or ours
    if not found or flag not in {"--schema", "--describe", "--exec"}:
        named = [name] if name and not found else []
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


def _provider(runtime: Runtime, args: list[str]) -> int:
    """Run one provider as a program, or tell which one is ready."""
    if args == ["--ready"]:
        setup.resolve(runtime)
        print(f"provider={runtime.provider}\nmodel={runtime.model}")
        return 0
    _enter(runtime)
    found = hosted.find_provider(runtime, args[0]) if args else None
    if not found:
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
            plugin, payload = hosted.with_own_api(runtime), as_object(sys.stdin.read()) or {}
            try:
                print(dumps((plugin.target if plugin else hosted.host(runtime)).ask(runtime, payload)))
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
        runtime.enter(session.Session(Path(directory)))
    if os.environ.get("HARNESS_SOURCES"):
        discovery.use(runtime, os.environ["HARNESS_SOURCES"].split(":"))
    keys.hide(runtime)


# A plugin of the same name replaces one of them.
COMMANDS = {
    "acp": Builtin("Serve a client of the Agent Client Protocol on standard input and output", agent.acp),
    "agent": Builtin("Do a task: hs [SESSION] WORDS...", agent.agent),
    "auth": Builtin(f"Keep credentials: {auth.USAGE}", auth.run),
    "doctor": Builtin("Say what may be wrong here, and what to do", _doctor),
    "help": Builtin("Show this", _help),
    "hook": Builtin("Run one hook as a program: hs hook STAGE/NAME", _hook),
    "hooks": Builtin("List hooks: hs hooks [STAGE]", _hooks),
    "provider": Builtin(
        "Run one provider as a program: hs provider NAME [--ready|...]; hs provider --ready: is any ready?",
        _provider,
    ),
    "repl": Builtin("Talk: hs repl [SESSION], the same as hs without words", agent.repl),
    "resume": Builtin("Go on in the session that changed last: hs resume WORDS...", agent.resume),
    "session": Builtin(f"Look at sessions: {session_store.USAGE}", session_store.session),
    "tool": Builtin("Run one tool as a program: hs tool NAME --schema|--describe|--exec", _tool),
    "tools": Builtin("List the tools that the model gets", _tools),
    "trust": Builtin("Let this project's plugins and settings be used as they are now", _trust),
    "version": Builtin("Say which version this is", _version),
}


_INTERRUPTED = 130
_WORDS = {"--help": "help", "-h": "help", "--version": "version", "-v": "version"}


def entry() -> NoReturn:
    """Run the command line, and exit with its code."""
    own_process.open_closed_streams()
    own_process.take_any_character("replace")
    if not os.environ.get("HOME"):
        # An empty one would mean the root directory.
        os.environ.pop("HOME", None)
    environment.settle_path(os.environ)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A script that starts hs in the background may ignore Ctrl-C for it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            own_process.handle(number, processes.interrupt)
    code = _exit_code(sys.argv[1:])
    own_process.drop_unwritten()
    # All that was opened is closed. Shutting the interpreter down would only take time.
    os._exit(code)


def _exit_code(args: list[str]) -> int:
    """Do what `args` say; return the exit code, and say why where it failed."""
    try:
        done = _dispatch(args)
        sys.stdout.flush()
    except processes.Interrupted:
        processes.end_all()
        text, code = "interrupted", _INTERRUPTED
    except HarnessError as error:
        text, code = one_line(error), int(error.exit_code)
    except BrokenPipeError:
        # The reader of the output has closed the pipe.
        return int(Exit.CHECK_FAILED)
    except OSError as error:
        text, code = errors.describe(error), int(Exit.ENV_SETUP)
    except Exception as error:  # noqa: BLE001 - the outermost counter of hs: a bug is reported, not shown
        text, code = _unforeseen(error)
    else:
        return done
    complain(f"hs: {text}")
    return code


def _unforeseen(error: Exception) -> tuple[str, int]:
    """Return the message and the exit code for an unforeseen error."""
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("harness_lib"):
        from harness_lib.system.install import launcher  # noqa: PLC0415 (only here)

        older = " (Python 3.14 or older; later ones have none)" if error.name == "acp" else ""
        install = launcher.adding("hs")
        return f"the package {error.name} is missing. Install it: {install}{older}", int(Exit.ENV_SETUP)
    return f"{terminal.bug_line(error)} {terminal.keep_bug(error, os.environ)}", int(Exit.BUG)


def _started(args: list[str]) -> Runtime:
    """Return the run with its plugins found."""
    try:
        cwd = Path.cwd()
    except FileNotFoundError as error:
        raise EnvSetupError("The current directory is gone.", "Go to one that is there.") from error
    run = runtime.start(os.environ, cwd)
    if args[:1] == ["trust"]:
        # It shows itself what was not used.
        run.kept[trust.TOLD] = None
    discovery.refresh(run)
    return run


def _dispatch(args: list[str]) -> int:
    run: Runtime | None = None
    try:
        run = _started(args)
        word, *rest = [_WORDS.get(args[0], args[0]), *args[1:]] if args else ["agent"]
        if word not in COMMANDS and not run.table.find("commands", word):
            # Any other word begins a task.
            word, rest = "agent", args
        if plugin := run.table.find("commands", word):
            return int(plugin.target(run, rest))
        if rest in (["--help"], ["-h"]) and word != "help":
            show(f"{COMMANDS[word].description}\nEverything else: hs help")
            return 0
        return COMMANDS[word].function(run, rest)
    except BaseException as error:
        if not args or args[0] not in COMMANDS or args[0] in {"agent", "resume"}:
            agent.tell_end(run, args, error)
        raise
    finally:
        if run:
            # The answer is shown by now: servers take their time to end.
            run.close()
