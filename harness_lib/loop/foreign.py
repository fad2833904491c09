"""Plugins that are programs: the same four protocols, spoken through flags, standard input and output.

Claude Code keeps its own transcript. It counts as long as nobody else has spoken in the session and nobody
has edited it; otherwise a new conversation begins, and is told what has been said.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import disk, processes
from harness_lib.loop.failures import HookError, ProviderError
from harness_lib.loop.piped import Json, Piped, as_object, as_text, dumps
from harness_lib.loop.plugins import Result
from harness_lib.loop.providers import keys
from harness_lib.loop.tools import builtin

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

import hashlib
from typing import NamedTuple

from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.context import Answered, Entry, User
from harness_lib.loop.sessions.message import Call, Message, Text
from harness_lib.loop.sessions.session import Session
from harness_lib.system.files import atomic


@dataclass(frozen=True)
class Program:
    """The executable file behind a plugin."""

    path: str

    def flag(self, runtime: Runtime, flag: str) -> str | None:
        """Return what the program prints for `flag`; None if it fails or does not end."""
        return processes.answer_to_flag(self.path, flag, self._variables(runtime), runtime.cwd)

    def _variables(self, runtime: Runtime) -> dict[str, str]:
        return runtime.variables()

    def describe(self, runtime: Runtime) -> str:
        """Return the first line of `--describe`."""
        return (self.flag(runtime, "--describe") or "").partition("\n")[0]


class ForeignHook(Program):
    """A hook: standard input to standard output, failed if it exits with another code than 0."""

    def __call__(self, runtime: Runtime, piped: Piped) -> Piped:
        stdin = f"{as_text(piped)}\n".encode()
        try:
            done = processes.run(
                [self.path],
                env=runtime.variables(),
                cwd=runtime.cwd,
                stdin=stdin,
                log=runtime.env["HARNESS_LOG"],
            )
        except OSError as error:
            raise HookError(f"cannot be started: {error.strerror}", "") from error
        text = done.text().rstrip("\n")
        if done.reason == "loud":
            raise HookError(f"printed more than {processes.OUTPUT_LIMIT} bytes", "")
        if done.code != 0:
            raise HookError(f"exited {done.code}", text)
        return text


class ForeignTool(Program):
    """A tool: `--schema`, `--describe`, `--exec`."""

    def schema(self, runtime: Runtime) -> Json | None:
        """Return the schema, asked once for each state of the file; None, reported once, if it is invalid."""

        def ask(path: Path) -> Json | None:
            printed = as_object(self.flag(runtime, "--schema") or "")
            if printed and _is_schema(printed):
                return printed
            runtime.notice(f"the tool {path} is left out: its --schema prints no tool.")
            return None

        return disk.remembered(runtime.kept, Path(self.path), ask)

    def execute(self, runtime: Runtime, tool_input: Json) -> Result:
        try:
            text, done = builtin.run_program(
                runtime,
                [self.path, "--exec"],
                {**self._variables(runtime), "HARNESS_CWD": str(runtime.work_directory)},
                stdin=dumps(tool_input).encode(),
            )
        except OSError as error:
            return Result(f"error: the tool cannot be started: {error.strerror}", error=True)
        return Result(text, error=done.code != 0)

    def _variables(self, runtime: Runtime) -> dict[str, str]:
        return keys.without(runtime, runtime.variables())


class ForeignProvider(Program):
    """A provider: the payload on standard input, its native answer on standard output."""

    def ready(self, runtime: Runtime) -> bool:
        return self.flag(runtime, "--ready") is not None

    def defaults(self, runtime: Runtime) -> dict[str, str]:
        return disk.parse_conf(self.flag(runtime, "--defaults") or "")

    def environment_help(self, runtime: Runtime) -> str:
        return self.flag(runtime, "--env") or ""

    def ask(self, runtime: Runtime, payload: Json) -> Json:
        """Run it; its standard error is the message if it fails."""
        command = [self.path, "--stream"] if self._streams() else [self.path]
        directory = runtime.session.directory if runtime.session else runtime.home
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        errors = directory / f".provider-{os.getpid()}.err"
        try:
            done = processes.run(
                command,
                env=runtime.variables(),
                cwd=runtime.cwd,
                stdin=dumps(payload).encode(),
                log=str(errors),
            )
            complaint = errors.read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            raise ProviderError(f"{self.path} cannot be started: {error.strerror}") from error
        finally:
            errors.unlink(missing_ok=True)
        answer = as_object(done.text())
        if done.code != 0 or answer is None:
            raise ProviderError(complaint or f"{self.path} exited {done.code} without an answer.")
        return answer

    def _streams(self) -> bool:
        try:
            return b"--stream" in Path(self.path).read_bytes()
        except OSError:
            return False


class ForeignCommand(Program):
    """A command: replaces this process."""

    def __call__(self, runtime: Runtime, args: list[str]) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(self.path, [self.path, *args], runtime.variables())  # noqa: S606 (a command is a program)


KINDS: dict[str, type[Program]] = {
    "commands": ForeignCommand,
    "tools": ForeignTool,
    "providers": ForeignProvider,
    "hooks.d": ForeignHook,
}


def _is_schema(schema: Json) -> bool:
    """Return whether hosts accept the schema; one invalid tool makes them refuse the whole request."""
    input_schema = schema.get("input_schema") or {}
    described = isinstance(schema.get("description") or "", str)
    if not (described and isinstance(schema.get("name"), str) and isinstance(input_schema, dict)):
        return False
    required = input_schema.get("required") or []
    return (
        input_schema.get("type", "object") == "object"
        and isinstance(input_schema.get("properties") or {}, dict)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
    )


NAME = "claude"
_ROLES = frozenset({"user", "assistant", "tool_result"})
_GO_ON = "Go on."
_BEGAN = "This conversation began elsewhere. What was said and done so far:"
_NOW = "Now:"
# In characters, about a quarter as many tokens; the newest part is kept.
_LONGEST = 200_000
_LONGEST_RESULT = 2_000


class Conversation(NamedTuple):
    """`id` is Claude Code's; `known`: it was started before; `prompt` is the next message.

    `cost` is what it has cost so far, in US dollars: Claude Code tells sums.
    """

    id: str
    known: bool
    prompt: str
    cost: float = 0.0


def conversation(runtime: Runtime) -> Conversation:
    """Return the conversation that the session continues."""
    if runtime.session is None:
        return Conversation(_new_id(), known=False, prompt=_GO_ON)
    messages = _messages(runtime.session)
    kept = disk.read_object(_path(runtime.session))
    seq, session_id = kept.get("seq"), kept.get("session")
    if isinstance(seq, int) and isinstance(session_id, str) and kept.get("cwd") == str(runtime.session.cwd):
        seen = [message for message in messages if message.seq <= seq]
        news = [message for message in messages if message.seq > seq]
        if kept.get("sha256") == _hash(seen) and all(message.role == "user" for message in news):
            prompt = "\n\n".join(message.body for message in news if message.body.strip())
            cost = kept.get("cost")
            before = float(cost) if isinstance(cost, int | float) else 0.0
            return Conversation(session_id, known=True, prompt=prompt or _GO_ON, cost=before)
    return anew(runtime)


def anew(runtime: Runtime) -> Conversation:
    """Return a new conversation whose prompt holds the whole session."""
    entries = context.entries(runtime.session.messages(), {}) if runtime.session else []
    place = len(entries)
    while place and isinstance(entries[place - 1], User):
        place -= 1
    asked = "\n\n".join(entry.text for entry in entries[place:] if isinstance(entry, User)) or _GO_ON
    before = "\n\n".join(_as_text(entry) for entry in entries[:place])
    prompt = f"{_BEGAN}\n\n{before[-_LONGEST:]}\n\n{_NOW}\n\n{asked}" if before else asked
    return Conversation(_new_id(), known=False, prompt=prompt)


def _new_id() -> str:
    import uuid  # noqa: PLC0415 (only where Claude Code is asked)

    return str(uuid.uuid4())


def known_as(runtime: Runtime) -> str:
    """Return the session id that commands of a turn see: with Claude Code, that of its conversation."""
    if runtime.session is None:
        return ""
    kept = disk.read_object(_path(runtime.session)) if runtime.provider == NAME else {}
    return str(kept.get("session") or runtime.session.id)


def keep(runtime: Runtime, session_id: str, cost: float) -> None:
    """Store that the conversation `session_id` knows the session as it is now, and its cost so far."""
    if runtime.session is None:
        return
    messages = _messages(runtime.session)
    value = {
        "session": session_id,
        "seq": messages[-1].seq if messages else 0,
        "sha256": _hash(messages),
        "cwd": str(runtime.session.cwd),
        "cost": cost,
    }
    path = _path(runtime.session)
    with runtime.session.writing():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        atomic.write(path, dumps(value).encode(), durable=False, mode=0o600)


def _messages(session: Session) -> list[Message]:
    return [message for message in session.messages() if message.role in _ROLES]


def _hash(messages: list[Message]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        digest.update(f"{message.seq}\0{message.role}\0{message.body}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


def _path(session: Session) -> Path:
    return session.directory / "native" / "claude.json"


def _as_text(entry: Entry) -> str:
    if isinstance(entry, User):
        return f"User: {entry.text}"
    if isinstance(entry, Answered):
        return f"Result of {entry.call.name}: {entry.text[:_LONGEST_RESULT]}"
    parts = [block.text for block in entry.blocks if isinstance(block, Text)]
    parts += [f"[{block.name} {block.arguments}]" for block in entry.blocks if isinstance(block, Call)]
    return "Assistant: " + "\n".join(parts)
