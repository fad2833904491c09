"""The provider `claude`: how the installed Claude Code is started, and what its results mean."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from harness_lib.loop import disk, processes, trust
from harness_lib.loop.claude import conversation as of_session
from harness_lib.loop.claude.conversation import Conversation, Scribe
from harness_lib.loop.piped import Json, ProviderError, as_object, dumps
from harness_lib.loop.providers import keys
from harness_lib.loop.stages import send, tool_calls
from harness_lib.text import harmless

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


# The model that the user has chosen in Claude Code.
DEFAULT = "default"
_PROTOCOL = (
    "-p",
    "--verbose",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--include-partial-messages",
    "--permission-prompt-tool=stdio",
    # hs cannot show its questions, so it has to decide by itself.
    "--disallowedTools=AskUserQuestion",
)
_READ_ONLY = ("--tools=Read,Glob,Grep", "--strict-mcp-config")
# Variables that it takes in place of its own login.
_ITS_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_TOKEN",
)
_GONE = "No conversation found"
_LIMITS = {"error_max_turns": "max_turns", "error_max_budget_usd": "max_cost"}
_SHOWN = 1000
_VARIABLES = "(the login of Claude Code: start claude and type /login)\n"
_SHOWN_COMPLAINT = 1000
# Time for it to save its session after its result.
_ENDING_SECONDS = 10.0


class GoneError(ProviderError):
    """Claude Code does not know the conversation any more."""


class Claude:
    """The provider; without state."""

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        return "the installed Claude Code, which does whole turns with its own login and tools"

    def ready(self, runtime: Runtime) -> bool:
        """Return whether it is installed; only a request shows whether the user is logged in."""
        return bool(_program(runtime))

    def defaults(self, runtime: Runtime) -> dict[str, str]:  # noqa: ARG002
        return {"model": DEFAULT}

    def environment_help(self, runtime: Runtime) -> str:  # noqa: ARG002
        return _VARIABLES

    def check(self, runtime: Runtime) -> None:
        """Raise ProviderError if Claude Code is not installed."""
        if not _program(runtime):
            raise ProviderError("Claude Code is not installed: there is no claude on the PATH.")
        if runtime.env.get("HARNESS_TOOLS") is not None:
            raise ProviderError("claude has tools of its own, so --tools cannot be kept; leave it out.")

    def ask(self, runtime: Runtime, payload: Json) -> Json:
        """Hand the turn over; return its result. Raises ProviderError; no turn is tried twice."""
        self.check(runtime)
        conversation = of_session.conversation(runtime)
        try:
            return _turn(runtime, payload, conversation)
        except GoneError:
            return _turn(runtime, payload, of_session.anew(runtime))


def _turn(runtime: Runtime, payload: Json, conversation: Conversation) -> Json:
    scribe = Scribe(runtime, conversation)
    result: Json = {}
    env = runtime.harness_environment()
    try:
        for event in talk(
            _command(runtime, payload, conversation),
            env={**keys.without(runtime, env), **{key: env[key] for key in _ITS_KEYS if key in env}},
            cwd=runtime.work_directory,
            prompt=conversation.prompt,
            decide=lambda request: _decide(runtime, request),
        ):
            scribe.hear(event)
            result = event
    except BaseException:
        # What it has cost is unknown, what it has said is not.
        scribe.write_last({})
        raise
    return _understood(runtime, scribe, result)


def _understood(runtime: Runtime, scribe: Scribe, result: Json) -> Json:
    """Return the result of a turn that was answered. Raises ProviderError if it was not."""
    spent = scribe.spent(result)
    words = str(result.get("result") or "")
    if result.get("is_error") is not True:
        if scribe.last is None:
            return {**result, "spent": spent}
        text, stop = scribe.last.text, scribe.last.stop
        scribe.write_last(spent)
        return {**result, "result": words or text, "stop": stop, "saved": True}
    errors = result.get("errors")
    words = words or "; ".join(map(str, errors if isinstance(errors, list) else [])) or "(no reason given)"
    problem = harmless(words, keep="\n")[:_SHOWN]
    if problem.startswith(_GONE):
        raise GoneError(problem)
    scribe.write_last({"cost": "0"})
    if spent:
        # What a turn without an answer has cost; no engine replays a message of this role.
        fields = {"provider": runtime.provider, "stop": "error", "tokens_in": "0", "tokens_out": "0"}
        runtime.session.append("error", {**fields, **spent}, problem)
    runtime.stop = _LIMITS.get(str(result.get("subtype")), runtime.stop)
    advice = " (start claude, and type it there)" if "/login" in problem else ""
    raise ProviderError(f"Claude Code says: {problem}{advice}")


def _command(runtime: Runtime, payload: Json, conversation: Conversation) -> list[str]:
    most_turns = disk.number(runtime.env["HARNESS_MAX_TURNS"], send.DEFAULT_TURNS)
    command = [_program(runtime), *_PROTOCOL, f"--max-turns={most_turns}"]
    command.append(f"--resume={conversation.id}" if conversation.known else f"--session-id={conversation.id}")
    if runtime.model not in {"", DEFAULT}:
        command.append(f"--model={runtime.model}")
    if payload.get("system"):
        command.append(f"--system-prompt={payload['system']}")
    if (effort := runtime.env.get("HARNESS_THINKING", "")) not in {"", "off"}:
        command.append(f"--effort={effort}")
    most = runtime.env.get("HARNESS_MAX_COST", "")
    if most:
        left = float(most) - (runtime.spent().cost or 0.0)
        command.append(f"--max-budget-usd={left:.6f}")
    return [*command, *(_READ_ONLY if trust.setting(runtime, "approve") == "read-only" else ())]


def _decide(runtime: Runtime, request: Json) -> Json:
    """Return whether a tool may run, as our permission hooks and the user say it."""
    tool_input = request.get("input")
    call: Json = {
        "id": str(request.get("tool_use_id") or ""),
        "name": str(request.get("tool_name") or ""),
        "input": tool_input if isinstance(tool_input, dict) else {},
    }
    verdict = tool_calls.decide(runtime, call)
    if verdict.decision != "allow":
        return {"behavior": "deny", "message": f"denied: {verdict.reason or 'no reason was given'}"}
    return {"behavior": "allow", "updatedInput": verdict.input}


def _program(runtime: Runtime) -> str:
    return shutil.which("claude", path=runtime.env.get("PATH")) or ""


PROVIDER = Claude()


def talk(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    prompt: str,
    decide: Callable[[Json], Json],
) -> Iterator[Json]:
    """Start `command`, say `prompt`, and yield what it tells, up to its result.

    `decide` answers its questions about tools. Raises ProviderError where it ends without a result, with what
    it has said on standard error.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            with processes.talking(command, env=env, cwd=cwd, errors=errors) as child:
                assert child.stdin is not None
                assert child.stdout is not None
                _send(child.stdin, {"type": "user", "message": {"role": "user", "content": prompt}})
                for event in _lines(child.stdout):
                    if event.get("type") == "control_request":
                        _send(child.stdin, _answer(event, decide))
                        continue
                    yield event
                    if event.get("type") == "result":
                        _end(child)
                        return
                code = child.wait()
        except OSError as error:
            raise ProviderError(f"{command[0]} cannot be started: {error.strerror}") from error
        errors.seek(0)
        complaint = harmless(errors.read().decode("utf-8", "replace").strip()[-_SHOWN_COMPLAINT:], keep="\n")
    raise ProviderError(f"Claude Code ended without a result (exit code {code}): {complaint or '(nothing)'}")


def _lines(stream: IO[bytes]) -> Iterator[Json]:
    """Yield the objects; skip other lines, such as warnings."""
    while line := stream.readline(processes.OUTPUT_LIMIT):
        event = as_object(line.decode("utf-8", "replace"))
        if event is not None:
            yield event


def _answer(event: Json, decide: Callable[[Json], Json]) -> Json:
    request = event.get("request") or {}
    response: Json = {"request_id": event.get("request_id")}
    if request.get("subtype") == "can_use_tool":
        response |= {"subtype": "success", "response": decide(request)}
    else:
        response |= {"subtype": "error", "error": f"hs does not know {request.get('subtype')}"}
    return {"type": "control_response", "response": response}


def _send(stream: IO[bytes], value: Json) -> None:
    # If it has ended already, its output says why.
    with suppress(BrokenPipeError):
        stream.write(f"{dumps(value)}\n".encode())
        stream.flush()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let it end by itself."""
    assert child.stdin is not None
    with suppress(BrokenPipeError):
        child.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        child.wait(_ENDING_SECONDS)
