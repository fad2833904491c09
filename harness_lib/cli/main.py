"""The outermost function of a command: turn every failure into one message and one exit code."""

from __future__ import annotations

import gc
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from harness_lib import errors, typed
from harness_lib.cli import lazily, parser
from harness_lib.core import rights, sessions
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, Exit, HarnessError
from harness_lib.system.install import launcher
from harness_lib.system.place import own_files, roots
from harness_lib.system.processes import environment, own_process
from harness_lib.terminal import render

# Verbs that are typed again after Ctrl-C: they look, or ask the user before they change anything.
AGAIN = frozenset(
    (
        *("run", "trust", "status", "show", "log", "report", "graph"),
        *("check", "doctor", "config", "validate", "export"),
    )
)


class Terminated(KeyboardInterrupt):
    """A signal asked this process to end, for example when an agent's tool reached its time limit."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def entry() -> NoReturn:
    """Run the command that the process was started with, and exit with its code."""
    own_process.open_closed_streams()
    # A umask may take the owner's own rights: then nobody could open the files of the list again.
    os.umask(os.umask(0) & ~stat.S_IRWXU)
    # So that a running check ends with us.
    for number in (own_process.END, own_process.HANG_UP):
        own_process.raise_once(number, Terminated)
    argv = sys.argv[1:]
    is_short = lazily.FOR_HOURS.isdisjoint(argv)
    if not is_short:
        # The launcher switches it off, but a long run makes garbage.
        gc.enable()
    code = main(argv)
    own_process.drop_unwritten()
    if is_short:
        # Shutting the interpreter down would take about 5 % of the time of a verb.
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str]) -> int:
    """Run `argv` (without the program's name) and return the exit code that docs/commands.md lists."""
    # Names may be no valid Unicode.
    own_process.take_any_character("backslashreplace")
    environment.settle_path(os.environ)
    screen = render.Screen(json="--json" in argv)
    argv = parser.current(argv, screen.talk)
    verb = next((word for word in argv if not word.startswith("-")), "harness")
    ctx: Context | None = None
    reply: Reply | None = None
    try:
        args = parser.parse(argv)
        args.screen = screen
        ctx = _context(screen)
        if ctx.env.get("HARNESS_SUPERVISED"):
            rights.require_admitted(ctx, args.verb)
            reply = rights.without_refused(args.command.answer(ctx, args))
        else:
            reply = args.command.answer(ctx, args)
        if "store" in ctx.__dict__:
            sessions.show(ctx)
        warnings = dict.fromkeys((*reply.warnings, *_list_warnings(ctx)))
        return render.reply(reply._replace(verb=verb, warnings=tuple(warnings)), screen)
    except HarnessError as error:
        problem = error
    except BrokenPipeError:
        # The reader closed the pipe, as in `log -f | head`: that is not an error.
        return int(reply.exit if reply else Exit.DONE)
    except OSError as error:
        problem = _unsaid(verb, error) if reply else _machine_error(error)
    except KeyboardInterrupt as interrupt:
        # Where the list was not looked at, or only that, nothing of it can be half done.
        has_begun = ctx is not None and "store" in ctx.__dict__ and verb not in AGAIN
        again = typed.harness("recover") if has_begun else typed.harness(*argv)
        screen.talk(f"interrupted; nothing is lost. Go on with: {again}")
        return 128 + getattr(interrupt, "number", own_process.INTERRUPT)
    except ImportError as error:
        problem = _package_error(error) or _bug_error()
    except Exception:  # noqa: BLE001 - the outermost error handler: a bug is reported, not shown as a traceback
        problem = _bug_error()
    return render.error(problem, verb, screen, _list_warnings(ctx))


def _context(screen: render.Screen) -> Context:
    try:
        cwd = Path.cwd()
    except FileNotFoundError as error:
        raise EnvSetupError(
            "The current directory no longer exists.", "cd to the project and try again"
        ) from error
    return Context(
        env=dict(os.environ), cwd=cwd, say=screen.talk, busy=screen.busy, at_terminal=screen.is_answerable
    )


def _list_warnings(ctx: Context | None) -> tuple[str, ...]:
    """Return the warnings of the list's transactions so far."""
    return ctx.store.warnings if ctx and "store" in ctx.__dict__ else ()


def _machine_error(error: OSError) -> HarnessError:
    return EnvSetupError(
        f"{errors.describe(error)} What was recorded before stays as it was.",
        f"{errors.cure(error)}; then type the same command again.",
    )


def _unsaid(verb: str, error: OSError) -> HarnessError:
    """Return the error of a verb that did its work and cannot print what it has to answer."""
    look = "; see what was done: harness status" if _root() else ""
    return EnvSetupError(
        f"harness {verb} was carried out; only its answer could not be printed. {errors.describe(error)}",
        f"{errors.cure(error)}, or print it elsewhere{look}",
    )


def _package_error(error: ImportError) -> HarnessError | None:
    """Return the error about a package that harness needs, if it is the cause: it may be an older one."""
    package = (error.name or "").partition(".")[0]
    if package not in launcher.DEPENDENCIES:
        return None
    return EnvSetupError(
        f"The package {package} cannot be used: {error}.", "See what harness needs: harness doctor"
    )


def _bug_error() -> HarnessError:
    """Write the current exception to a file, and return the error for the user."""
    import traceback  # noqa: PLC0415 (rarely needed)

    report = traceback.format_exc()
    problem = HarnessError(f"This is a bug in harness: {report.strip().splitlines()[-1]}")
    root = _root()
    file = own_files.keep_bug(str(root.path), report) if root and root.private.is_dir() else None
    if file is None:
        sys.stderr.write(report)
    problem.hint = f"Please report it with {file or 'the lines above'}"
    return problem


def _root() -> roots.Root | None:
    """Return the project directory, or None on any error."""
    try:
        return roots.find(os.environ, Path.cwd())
    except (HarnessError, OSError):
        return None
