"""Do a task and print the answer: `hs agent`, and `hs` with words that are no command."""

from __future__ import annotations

import os
import select
import stat
import sys
from itertools import takewhile

from harness_lib.errors import HarnessError, UsageError
from harness_lib.hs import output, session_store, setup
from harness_lib.hs.setup import Options
from harness_lib.loop import discovery, turn
from harness_lib.loop.processes import Interrupted
from harness_lib.loop.providers import keys
from harness_lib.loop.runtime import Runtime, start
from harness_lib.loop.sessions.context import Account
from harness_lib.loop.sessions.session import Session
from harness_lib.loop.turn import Turn

_DRAW_NOTHING = frozenset({"dumb", "unknown"})
_WAIT_SECONDS = 3.0
# How `hs acp` starts the process of a session.
SESSION_FLAG = "--session"


def agent(runtime: Runtime, args: list[str]) -> int:
    """Do a task, or talk with the user if none is given."""
    try:
        asked = setup.parse_options(args)
        streamed = runtime.env.get("HARNESS_STREAM") == "1" or sys.stdout.isatty()
        kind = output.Events if "json" in asked.flags else output.Streamed if streamed else output.Answer
        shown = kind()
        done = _do(runtime, asked, shown)
    except BaseException as error:
        tell_end(runtime, args, error)
        raise
    if done is not None:
        shown.end(done)
    return int(done is not None and bool(done.error))


def _do(runtime: Runtime, asked: Options, shown: output.Answer) -> Turn | None:
    session, words = setup.session(runtime, asked)
    if not words and not asked.flags & {"print", "json", "stdin"} and _is_at_a_terminal():
        _talk(runtime, session, asked)
        return None
    typed = " ".join(words)
    piped = read_input(typed, wait="stdin" in asked.flags)
    if session is None and not (typed + piped).strip():
        raise UsageError("hs was given nothing to do.", 'Say it: hs "find all TODO comments"')
    setup.enter(runtime, session, asked)
    # Only now it is known whose model is asked.
    if "/" in typed:
        _check_word(runtime, typed)
    shown.begin(runtime, is_new=session is None)
    if "@" in typed or sys.stderr.isatty():
        from harness_lib.hs import user_input  # noqa: PLC0415 (most tasks need none of it)

        runtime.asker = user_input.asker()
        typed = user_input.with_files(runtime, typed)
    message = "\n\n".join(part for part in (typed, piped) if part.strip())
    done = turn.take(runtime, message, at_once=True)
    if runtime.env.get("HARNESS_MAX_COST") and done.account.cost is None:
        runtime.log(f"hs: the cost is unknown: no price is known for {runtime.model}.")
    return done


def _check_word(runtime: Runtime, typed: str) -> None:
    """Raise UsageError if `typed` begins with a slash and a word that names no skill."""
    from harness_lib.hs import user_input  # noqa: PLC0415 (as above)

    problem = user_input.unknown(runtime.provider, typed, user_input.skill_names(runtime))
    if problem:
        session_store.remove_unused(runtime.session)
        raise UsageError(problem, "It was not sent. A word behind a slash is the name of a skill.")


def _is_at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _talk(runtime: Runtime, session: Session | None, asked: Options) -> None:
    """Talk with the user until they leave."""
    # Imported here: a task needs none of it.
    from harness_lib.hs.repl import conversation  # noqa: PLC0415

    if runtime.env.get("TERM", "").lower() in _DRAW_NOTHING:
        raise UsageError(
            "This terminal says that it can draw nothing (TERM), so there is no prompt to talk at.",
            'For one task: hs "find all TODO comments"',
        )
    ahead = conversation.Ahead()
    while True:
        runtime.approve = "ask"
        setup.enter(runtime, session, asked)
        try:
            session, ahead = conversation.talk(runtime, ahead)
        finally:
            runtime.close()
            session_store.remove_unused(runtime.session)
            runtime.session.release()
        if session is None:
            return
        # Another session is another run: with its own plugins, approvals, provider and model.
        runtime = start(os.environ, runtime.cwd)
        discovery.refresh(runtime)
        kept = {key: value for key, value in asked.values.items() if key not in {"model", "provider"}}
        asked = asked._replace(values=kept)


def tell_end(runtime: Runtime | None, args: list[str], error: BaseException) -> None:
    """Print the last event of a task that ended by `error`, if `args` ask for events."""
    if "--json" not in takewhile(lambda arg: arg != "--", args):
        return
    session = runtime.session.id if runtime else ""
    stop, words = "error", output.bug_line(error)
    if isinstance(error, Interrupted):
        stop = words = "interrupted"
    elif isinstance(error, HarnessError | OSError):
        words = str(error)
    account = runtime.spent() if runtime else Account()
    output.Events().end(Turn(stop=stop, error=words, session=session, account=account))


def resume(runtime: Runtime, args: list[str]) -> int:
    """Continue the session that changed last."""
    sessions = session_store.every(runtime)
    if not sessions:
        raise UsageError("No sessions were found.", 'Begin one: hs "find all TODO comments"')
    return agent(runtime, ["--resume", sessions[0].id, *args])


def repl(runtime: Runtime, args: list[str]) -> int:
    """Talk with the user."""
    if not _is_at_a_terminal():
        raise UsageError("hs repl needs a terminal.", 'For one task: hs "find all TODO comments"')
    return agent(runtime, args)


def read_input(typed: str, *, wait: bool = False) -> str:
    """Return the text on standard input.

    With words that were `typed`, input that does not begin within some seconds is ignored, unless `wait`:
    programs that start hs often leave a pipe open and never write to it.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    may_wait = not typed.strip() or wait or not _is_pipe(sys.stdin.fileno())
    if not may_wait and not select.select([sys.stdin], [], [], _WAIT_SECONDS)[0]:
        print(
            f"hs: nothing came on standard input within {_WAIT_SECONDS:.0f} s, so it is not read; "
            "for input that takes its time add the word -",
            file=sys.stderr,
        )
        return ""
    return sys.stdin.read().rstrip("\n")


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def acp(runtime: Runtime, args: list[str]) -> int:
    """Serve a client of the Agent Client Protocol."""
    if args == [SESSION_FLAG]:
        from harness_lib.hs.acp import worker  # noqa: PLC0415 (either of the two, in a process of its own)

        return worker.work(runtime)
    if args:
        raise UsageError("hs acp takes no arguments.", "Its client speaks over standard input and output.")
    # No client can be at the other end of a file or /dev/null.
    if not all(_is_pipe(descriptor) or os.isatty(descriptor) for descriptor in (0, 1)):
        raise UsageError(
            "hs acp needs a client on standard input and output.", "Let an editor start it: hs acp"
        )
    # The processes of its sessions, and their tools, can look at this one.
    keys.hide(runtime)
    from harness_lib.hs.acp import agent  # noqa: PLC0415 (the protocol's package is imported here only)

    return agent.serve()
