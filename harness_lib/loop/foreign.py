"""Plugins that are programs: the same four protocols, spoken through flags, standard input and output."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.errors import EnvSetupError
from harness_lib.loop import disk, keys, processes
from harness_lib.loop.piped import HookError, Json, Piped, ProviderError, as_object, as_text, dumps
from harness_lib.loop.plugins import Result
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
        try:
            return processes.printed(self.path, flag, env=self._variables(runtime), cwd=runtime.cwd)
        except HookError:
            return None

    def _variables(self, runtime: Runtime) -> dict[str, str]:
        return runtime.variables()

    @property
    def fault(self) -> str:
        """What is wrong with its first line, so that it cannot be started; "" for nothing."""
        return processes.fault(self.path)

    def describe(self, runtime: Runtime) -> str:
        """Return the first line of `--describe`."""
        return (self.flag(runtime, "--describe") or "").partition("\n")[0]


class ForeignHook(Program):
    """A hook: standard input to standard output, failed if it exits with another code than 0."""

    def __call__(self, runtime: Runtime, piped: Piped) -> Piped:
        stdin = f"{as_text(piped)}\n".encode()
        return _printed(runtime, self.path, stdin=stdin, log=runtime.env["HARNESS_LOG"]).rstrip("\n")


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
                processes.command_of(self.path, "--exec"),
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
        args = ["--stream"] if "--stream" in disk.read_text(Path(self.path)) else []
        directory = runtime.session.directory if runtime.session else runtime.home
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        errors = directory / f".provider-{os.getpid()}.err"
        stdin = dumps(payload).encode()
        try:
            printed = _printed(runtime, self.path, *args, stdin=stdin, log=str(errors))
            if (answer := as_object(printed)) is not None:
                return answer
            problem = f"exited 0 and printed no answer: {printed.strip()[:_COMPLAINT]}".rstrip(": ")
        except HookError as failure:
            problem = str(failure)
        finally:
            complaint = disk.end_of(errors, _COMPLAINT)
            errors.unlink(missing_ok=True)
        said = problem.startswith("exited") and complaint
        raise ProviderError(said or f"{self.path} {problem}.")


class ForeignCommand(Program):
    """A command: replaces this process."""

    def __call__(self, runtime: Runtime, args: list[str]) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        command = processes.command_of(self.path, *args)
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


def _printed(runtime: Runtime, path: str, *args: str, stdin: bytes, log: str) -> str:
    """Return what a hook or a provider prints. Raises HookError."""
    env, seconds = runtime.variables(), _longest(runtime)
    return processes.printed(path, *args, env=env, cwd=runtime.cwd, stdin=stdin, log=log, seconds=seconds)


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
