"""`hs`: which command is meant, and what its failures come to.

Exit codes: 0 answered, 1 the provider or a hook failed, 2 usage, 3 configuration, 5 the session is held,
7 no provider is ready or the machine lacks something, 70 a bug of ours, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from harness_lib.errors import EnvSetupError, Exit, HarnessError
from harness_lib.hs import bug
from harness_lib.hs.showing import complain
from harness_lib.loop import discovery, processes, runtime, signals
from harness_lib.loop.failures import Interrupted, one_line
from harness_lib.system import os_errors

_INTERRUPTED = 130
_WORDS = {"--help": "help", "-h": "help", "--version": "version", "-v": "version"}


def entry() -> int:
    """Run the command line; return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Who starts us in the background of a script may want Ctrl-C to pass us by.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signals.handle(number, processes.interrupt)
    try:
        return _dispatch(sys.argv[1:])
    except Interrupted:
        processes.end_all()
        print("hs: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except HarnessError as error:
        complain(f"hs: {one_line(error)}")
        return int(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.CHECK_FAILED)
    except OSError as error:
        print(f"hs: {os_errors.describe(error)}", file=sys.stderr)
        return int(Exit.ENV_SETUP)
    except Exception as error:  # noqa: BLE001 - the outermost counter of hs: a bug is reported, not shown
        return _failed(error)


def _failed(error: Exception) -> int:
    """Say what nobody has foreseen; return the exit code."""
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("harness_lib"):
        print(f"hs: the package {error.name} is missing. Install harness-skill[hs].", file=sys.stderr)
        return int(Exit.ENV_SETUP)
    print(f"hs: {bug.one_line(error)} {bug.keep(error, os.environ)}", file=sys.stderr)
    return int(Exit.BUG)


def _dispatch(args: list[str]) -> int:
    try:
        cwd = Path.cwd()
    except FileNotFoundError as error:
        raise EnvSetupError("The current directory is gone.", "Go to one that is there.") from error
    run = runtime.start(os.environ, cwd)
    discovery.refresh(run)
    word = _WORDS.get(args[0], args[0]) if args else "agent"
    command = run.table.find("commands", word)
    if command is None:
        return int(run.table.entries["commands", "", "agent"].target(run, args))
    return int(command.target(run, args[1:]))
