"""The words behind `hs`, and `hs help`: what can be typed, and what was found from here."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from harness_lib.hs.commands import agent, look
from harness_lib.hs.commands.look import AUTH_USAGE, Builtin
from harness_lib.hs.output import show
from harness_lib.loop.providers import models
from harness_lib.loop.runtime import Runtime

_USAGE = """\
hs: an agent loop in which everything is a plugin

  hs "find all TODO comments"    do a task and print the answer
  cat log | hs "why?"            with what stands on standard input
  hs SESSION "go on"             go on in a session (--resume ID, --continue: this directory's newest)
  hs -p --json "find it"         events for a program, one JSON object per line, the result last

Options of a task:
  --model M, --provider P        in place of the settings
  --max-turns N                  request limit
  --max-cost USD                 cost limit in USD; without a known price one request
  --approve auto|ask|read-only   whether a person is asked before what does not only read (auto)
  --tools a,b                    only these tools
  --keep-env NAME                let tools see this variable that holds a provider's key (repeatable)
  --system TEXT                  in place of the prompts
  -                              wait for standard input, however long it takes to begin
  --                             only words follow

Commands:"""
_VARIABLES = """\
Environment:
  HARNESS_PROVIDER       provider (default: the first that is ready)
  HARNESS_MODEL          model (default: the provider's)
  HARNESS_MAX_TURNS      requests in one run (100)
  HARNESS_SESSIONS       where sessions are (default: the nearest .harness/sessions, else home's)
  HARNESS_HOME           home of plugins (~/.harness); where set, of harness's data too
  HARNESS_KEEP_ENV       as --keep-env, names by commas
  HARNESS_LOG            where hooks and tools are shown (/dev/stderr)
  HARNESS_STREAM         1: show the answer as it comes, into a pipe too
  HARNESS_THINKING       how hard the model shall think (low, medium, high, max)
  HARNESS_TOOL_TIMEOUT   seconds for a command of the tool bash (120)
  HARNESS_READ_LIMIT     lines that read_file shows at once (2000)"""


def _help(runtime: Runtime, args: list[str]) -> int:  # noqa: ARG001 (as every command)
    show(_USAGE)
    foreign = {plugin.name: plugin.target for plugin in runtime.table.of("commands")}
    for name, command in sorted({**COMMANDS, **foreign}.items()):
        show(f"  {name:<12} {command.describe(runtime)}")
    show(f"\n{_VARIABLES}\n\nProviders:")
    for plugin in runtime.table.of("providers"):
        show(f"  {plugin.name:<12} {plugin.target.describe(runtime)}")
        for line in plugin.target.environment_help(runtime).splitlines():
            show(f"      {line}")
    for variant in models.every_variant(runtime):
        login = f"hs auth login {variant.name}" if variant.values.get("auth") else ""
        needs = login or variant.auth_env or "no key"
        show(f"  {variant.name:<12} {variant.values.get('description', '')} ({needs})")
    show("\nTools:")
    for plugin in runtime.table.of("tools"):
        show(f"  {plugin.name:<12} {plugin.target.describe(runtime)}")
    show("\nPlugins are looked for in:")
    for source in runtime.sources:
        show(f"  {Path(source)}")
    return 0


def _auth(runtime: Runtime, args: list[str]) -> int:
    from harness_lib.hs.commands import auth  # noqa: PLC0415 (most calls of hs do a task, and start sooner)

    return auth.run(runtime, args)


def _doctor(runtime: Runtime, args: list[str]) -> int:
    from harness_lib.hs.commands import doctor  # noqa: PLC0415 (as above)

    return doctor.run(runtime, args)


def _program(kind: str, runtime: Runtime, args: list[str]) -> int:
    from harness_lib.hs.commands import programs  # noqa: PLC0415 (as above)

    return programs.RUN[kind](runtime, args)


# A plugin of the same name takes the place of one of them.
COMMANDS = {
    "acp": agent.ACP,
    "agent": agent.AGENT,
    "auth": Builtin(f"Keep credentials: {AUTH_USAGE}", _auth),
    "doctor": Builtin("Say what may be wrong here, and what to do", _doctor),
    "help": Builtin("Show this", _help, is_help=True),
    "hook": Builtin("Run one hook as a program: hs hook STAGE/NAME", partial(_program, "hook")),
    "hooks": look.HOOKS,
    "provider": Builtin(
        "Run one provider as a program: hs provider NAME [--ready|...]; without NAME: is any ready?",
        partial(_program, "provider"),
    ),
    "repl": agent.REPL,
    "resume": agent.RESUME,
    "session": look.SESSION,
    "tool": Builtin(
        "Run one tool as a program: hs tool NAME --schema|--describe|--exec", partial(_program, "tool")
    ),
    "tools": look.TOOLS,
    "trust": look.TRUST,
    "version": look.VERSION,
}
