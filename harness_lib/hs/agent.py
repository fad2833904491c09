"""Do a task and show the turn: as its answer, as it streams in, or as events for a program."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
from itertools import takewhile

from harness_lib.errors import HarnessError, UsageError
from harness_lib.hs import session_store, setup, terminal
from harness_lib.hs.terminal import complain, harmless_lines, tell
from harness_lib.loop import discovery, keys, processes, turn
from harness_lib.loop.context import Account
from harness_lib.loop.piped import Json
from harness_lib.loop.runtime import Runtime, start
from harness_lib.loop.session import Session
from harness_lib.loop.turn import Turn

_DRAW_NOTHING = frozenset({"dumb", "unknown"})
_WAIT_SECONDS = 3.0
# How `hs acp` starts the process of a session.
SESSION_FLAG = "--session"


def agent(runtime: Runtime, args: list[str]) -> int:
    """Do a task, or talk with the user if none is given."""
    asked = setup.parse_options(args)
    streamed = runtime.env.get("HARNESS_STREAM") == "1" or sys.stdout.isatty()
    kind = _Events if "json" in asked.flags else _Streamed if streamed else _Answer
    shown = kind()
    done = _do(runtime, asked, shown)
    if done:
        shown.end(done)
    return int(done is not None and bool(done.error))


def _do(runtime: Runtime, asked: setup.Options, shown: _Answer) -> Turn | None:
    session, words = setup.session(runtime, asked)
    if not words and not asked.flags & {"print", "json", "stdin"} and _is_at_a_terminal():
        _talk(runtime, session, asked)
        return None
    typed = " ".join(words)
    piped = read_input(typed, wait="stdin" in asked.flags)
    if not (typed + piped).strip() and (session is None or session.is_answered):
        raise UsageError("hs was given nothing to do.", 'Say it: hs "find all TODO comments"')
    setup.enter(runtime, session, asked)
    # Only now it is known whose model is asked.
    if "/" in typed:
        _check_word(runtime, typed)
    shown.begin(runtime, is_new=session is None)
    if "@" in typed or sys.stderr.isatty():
        runtime.asker = terminal.asker()
        typed = terminal.with_files(runtime, typed)
    message = "\n\n".join(part for part in (typed, piped) if part.strip())
    done = turn.take(runtime, message, at_once=True)
    if runtime.env.get("HARNESS_MAX_COST") and done.account.cost is None:
        runtime.log(f"hs: the cost is unknown: no price is known for {runtime.model}.")
    return done


def _check_word(runtime: Runtime, typed: str) -> None:
    """Raise UsageError if `typed` begins with a slash and a word that names no skill."""
    problem = terminal.unknown(runtime.provider, typed, terminal.skill_names(runtime))
    if problem:
        session_store.remove_unused(runtime.session)
        raise UsageError(problem, "It was not sent. A word behind a slash is the name of a skill.")


def _is_at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _talk(runtime: Runtime, session: Session | None, asked: setup.Options) -> None:
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
        runtime.provider = runtime.model = ""
        discovery.refresh(runtime)
        kept = {key: value for key, value in asked.values.items() if key not in {"model", "provider"}}
        asked = asked._replace(values=kept)


class _Answer:
    """A way to show a turn: the answer alone, when it is complete, as pipes and files want it."""

    def begin(self, runtime: Runtime, *, is_new: bool) -> None:
        """Say on standard error which session begins, before its turn does."""
        if is_new:
            directory, home = str(runtime.session.directory), runtime.env.get("HOME", "")
            if home and directory.startswith(f"{home}/"):
                directory = f"~{directory.removeprefix(home)}"
            complain(f"session: {directory}\nprovider: {runtime.provider}\nmodel: {runtime.model}")

    def end(self, done: Turn) -> None:
        """Show how it ended."""
        if done.output:
            print(done.output)
        if done.error:
            complain(f"error: {done.error}")


class _Streamed(_Answer):
    """The answer as it comes: for the user at a terminal."""

    # What was printed last.
    _last = "\n"

    def begin(self, runtime: Runtime, *, is_new: bool) -> None:
        super().begin(runtime, is_new=is_new)
        runtime.stream.listeners.append(self._hear)

    def end(self, done: Turn) -> None:
        self._break()
        super().end(done._replace(output=""))

    def _hear(self, event: Json) -> None:
        if event["type"] == "text":
            # The text of a model must not move the cursor.
            text = harmless_lines(event.get("text", ""))
            self._last = text or self._last
            sys.stdout.write(text)
            sys.stdout.flush()
        elif event["type"] in {"tool_start", "stop", "retry"}:
            self._break()

    def _break(self) -> None:
        if not self._last.endswith("\n"):
            print(flush=True)
        self._last = "\n"


class _Events(_Answer):
    """One JSON object per line: the session, its events, the usage so far, and the result."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        if isinstance(sys.stdout, io.TextIOWrapper):
            # JSON for a program is UTF-8, whatever the locale of the user is.
            sys.stdout.reconfigure(encoding="utf-8")

    def begin(self, runtime: Runtime, *, is_new: bool) -> None:  # noqa: ARG002 (its first event says it)
        self._runtime = runtime
        tell({
            "type": "session",
            "session": runtime.session.id,
            "directory": str(runtime.session.directory),
            "provider": runtime.provider,
            "model": runtime.model,
        })  # fmt: skip
        runtime.stream.listeners.append(self._hear)

    def end(self, done: Turn) -> None:
        tell({
            "type": "result",
            "output": done.output,
            "session": done.session,
            "stop": done.stop,
            **_sums(done.account),
            "error": done.error or None,
        })  # fmt: skip

    def _hear(self, event: Json) -> None:
        tell(event)
        if event["type"] == "stop" and self._runtime:
            tell({"type": "usage", **_sums(self._runtime.spent())})


def _sums(account: Account) -> Json:
    return {"tokens_in": account.tokens_in, "tokens_out": account.tokens_out, "cost": account.cost}


def tell_end(runtime: Runtime | None, args: list[str], error: BaseException) -> None:
    """Print the last event of a task that ended by `error`, if `args` ask for events."""
    if "--json" not in takewhile(lambda arg: arg != "--", args):
        return
    session = runtime.session.id if runtime else ""
    stop, words = "error", terminal.bug_line(error)
    if isinstance(error, processes.Interrupted):
        stop = words = "interrupted"
    elif isinstance(error, HarnessError | OSError):
        words = str(error)
    account = runtime.spent() if runtime else Account()
    _Events().end(Turn(stop=stop, error=words, session=session, account=account))


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
