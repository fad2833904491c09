"""Plugins that are programs: the same four protocols, spoken through flags, standard input and output."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.errors import EnvSetupError
from harness_lib.loop import disk, processes
from harness_lib.loop.failures import HookError, ProviderError
from harness_lib.loop.piped import Json, Piped, as_object, as_text, dumps
from harness_lib.loop.plugins import Result
from harness_lib.loop.providers import keys
from harness_lib.loop.tools import builtin

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


# A tool may deploy or test something large, but a hanging plugin must not hold a run for ever.
LONGEST_SECONDS = 3600
# Bytes of what a provider says of its failure: the end.
_COMPLAINT = 4000


@dataclass(frozen=True)
class Program:
    """The executable file behind a plugin."""

    path: str

    def flag(self, runtime: Runtime, flag: str) -> str | None:
        """Return what the program prints for `flag`; None if it fails or does not end."""
        return processes.answer_to_flag(self.command(flag), self._variables(runtime), runtime.cwd)

    def _variables(self, runtime: Runtime) -> dict[str, str]:
        return runtime.variables()

    def command(self, *args: str) -> list[str]:
        """Return the command line."""
        return processes.command_of(self.path, *args)

    @property
    def fault(self) -> str:
        """What is wrong with its first line, so that it cannot be started; "" for nothing."""
        first = processes.first_line(self.path)
        words = first.removeprefix("#!").split()
        if not first.startswith("#!") or not words:
            return ""
        if first.endswith("\r"):
            return "its first line ends in a carriage return (CRLF); save it with LF"
        return "" if Path(words[0]).exists() else f"its first line names {words[0]}, which is not there"

    def describe(self, runtime: Runtime) -> str:
        """Return the first line of `--describe`."""
        return (self.flag(runtime, "--describe") or "").partition("\n")[0]


class ForeignHook(Program):
    """A hook: standard input to standard output, failed if it exits with another code than 0."""

    def __call__(self, runtime: Runtime, piped: Piped) -> Piped:
        stdin = f"{as_text(piped)}\n".encode()
        try:
            done = processes.run(
                self.command(),
                env=runtime.variables(),
                cwd=runtime.cwd,
                stdin=stdin,
                log=runtime.env["HARNESS_LOG"],
                timeout=(seconds := _longest(runtime)),
            )
        except OSError as error:
            raise HookError(f"cannot be started: {self.fault or error.strerror}", "") from error
        text = done.text().rstrip("\n")
        if done.reason == "timeout":
            raise HookError(f"did not end within {seconds} seconds", "")
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
            why = self.fault or "its --schema prints no tool"
            runtime.notice(f"the tool {path} is left out: {why}.")
            return None

        return disk.remembered(runtime.kept, Path(self.path), ask)

    def execute(self, runtime: Runtime, tool_input: Json) -> Result:
        seconds = builtin.usual_seconds(runtime.env, LONGEST_SECONDS)
        try:
            text, done = builtin.run_program(
                runtime,
                self.command("--exec"),
                {**self._variables(runtime), "HARNESS_CWD": str(runtime.work_directory)},
                stdin=dumps(tool_input).encode(),
                timeout=seconds,
            )
        except OSError as error:
            return Result(f"error: the tool cannot be started: {self.fault or error.strerror}", error=True)
        # What it says of its failure is enough, if it could say anything.
        note = "" if text and done.code > 0 else builtin.ending(done, seconds)
        return Result("\n".join(part for part in (text, note) if part), error=done.code != 0)

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
        command = self.command()
        with suppress(OSError):
            command += ["--stream"] if b"--stream" in Path(self.path).read_bytes() else []
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
                timeout=(seconds := _longest(runtime)),
            )
            with errors.open("rb") as stream:
                stream.seek(max(0, errors.stat().st_size - _COMPLAINT))
                complaint = stream.read().decode("utf-8", "replace").strip()
        except OSError as error:
            raise ProviderError(f"{self.path} cannot be started: {self.fault or error.strerror}") from error
        finally:
            errors.unlink(missing_ok=True)
        answer = as_object(done.text())
        if done.reason == "timeout":
            raise ProviderError(f"{self.path} did not end within {seconds} seconds.")
        if done.code != 0 or answer is None:
            raise ProviderError(complaint or f"{self.path} exited {done.code} without an answer.")
        return answer


class ForeignCommand(Program):
    """A command: replaces this process."""

    def __call__(self, runtime: Runtime, args: list[str]) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        command = self.command(*args)
        try:
            os.execve(command[0], command, runtime.variables())  # noqa: S606 (a command is a program)
        except OSError as error:
            message = f"The command {self.path} cannot be started: {self.fault or error.strerror}."
            raise EnvSetupError(message, "hs doctor says what else is broken.") from error


KINDS: dict[str, type[Program]] = {
    "commands": ForeignCommand,
    "tools": ForeignTool,
    "providers": ForeignProvider,
    "hooks.d": ForeignHook,
}


def _longest(runtime: Runtime) -> int:
    """Return the seconds for a hook or a provider: no fewer than a tool has, which a hook may run."""
    return max(LONGEST_SECONDS, builtin.usual_seconds(runtime.env))


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
