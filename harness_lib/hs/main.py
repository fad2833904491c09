"""`hs`: which command is meant, and what its failures come to.

Exit codes: 0 answered, 1 the provider or a hook failed, 2 usage, 3 configuration, 5 the session is held,
7 no provider is ready or the machine lacks something, 70 a bug of ours, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

from harness_lib.errors import EnvSetupError, Exit, HarnessError
from harness_lib.hs import output
from harness_lib.hs.commands.help import COMMANDS
from harness_lib.hs.output import complain
from harness_lib.loop import discovery, processes, runtime
from harness_lib.loop.failures import Interrupted, one_line
from harness_lib.system import os_errors
from harness_lib.system.files import standard_streams
from harness_lib.system.processes import signals

_INTERRUPTED = 130
_WORDS = {"--help": "help", "-h": "help", "--version": "version", "-v": "version"}


def entry() -> int:
    """Run the command line; return the exit code."""
    standard_streams.open_closed()
    standard_streams.take_any_character()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Who starts us in the background of a script may want Ctrl-C to pass us by.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signals.handle(number, processes.interrupt)
    code = _exit_code(sys.argv[1:])
    standard_streams.drop_unwritten()
    return code


def _exit_code(args: list[str]) -> int:
    """Do what `args` say; return the exit code, and say why where it failed."""
    try:
        done = _dispatch(args)
        sys.stdout.flush()
    except Interrupted:
        processes.end_all()
        text, code = "interrupted", _INTERRUPTED
    except HarnessError as error:
        text, code = one_line(error), int(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        return int(Exit.CHECK_FAILED)
    except OSError as error:
        text, code = os_errors.describe(error), int(Exit.ENV_SETUP)
    except Exception as error:  # noqa: BLE001 - the outermost counter of hs: a bug is reported, not shown
        text, code = _unforeseen(error)
    else:
        return done
    # Where nobody can read why, the exit code says which kind it is.
    with contextlib.suppress(OSError):
        complain(f"hs: {text}")
    return code


def _unforeseen(error: Exception) -> tuple[str, int]:
    """Return what is to be said of what nobody has foreseen, and the exit code."""
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("harness_lib"):
        return f"the package {error.name} is missing. Install harness-skill[hs].", int(Exit.ENV_SETUP)
    return f"{output.bug_line(error)} {output.keep_bug(error, os.environ)}", int(Exit.BUG)


def _dispatch(args: list[str]) -> int:
    try:
        cwd = Path.cwd()
    except FileNotFoundError as error:
        raise EnvSetupError("The current directory is gone.", "Go to one that is there.") from error
    run = runtime.start(os.environ, cwd)
    discovery.refresh(run)
    word = _WORDS.get(args[0], args[0]) if args else "agent"
    plugin = run.table.find("commands", word)
    command = plugin.target if plugin else COMMANDS.get(word)
    if command is not None:
        return int(command(run, args[1:]))
    # What is no command is the beginning of a task.
    agent = run.table.find("commands", "agent")
    return int((agent.target if agent else COMMANDS["agent"])(run, args))
