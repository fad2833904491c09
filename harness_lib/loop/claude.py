"""The provider `claude`: it hands a whole turn to the installed Claude Code, with its login.

Claude Code keeps its own transcript. It counts as long as nobody else has spoken in the session and nobody
has edited it; otherwise a new conversation begins, and is told what has been said.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NamedTuple

from harness_lib.loop import context, disk, keys, plugins, processes, request, tasks, tool_calls, trust
from harness_lib.loop.piped import Json, ProviderError, as_object, dumps
from harness_lib.loop.session import CONVERSATION, Call, Message, Text
from harness_lib.loop.tools import asking
from harness_lib.loop.wires import anthropic
from harness_lib.loop.wires.answer import Answer, as_table, as_tables
from harness_lib.sha256 import digest
from harness_lib.text import harmless

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


# The model that the user has chosen in Claude Code.
_DEFAULT = "default"
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
# Time for it to save its session after its result.
_ENDING_SECONDS = 10.0
_ROLES = frozenset({"user", "assistant", "tool_result"})
_GO_ON = "Go on."
_BEGAN = "This conversation began elsewhere. What was said and done so far:"
_NOW = "Now:"
# In characters, about a quarter as many tokens; the newest part is kept.
_LONGEST = 200_000
_LONGEST_RESULT = 2_000
# The cost of the whole turn is known at its end, and saved with its last answer.
_COUNTED_LATER = {"cost": "0"}


class _GoneError(ProviderError):
    """Claude Code does not know the conversation any more."""


class Claude:
    """The provider; without state."""

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        return "the installed Claude Code, which does whole turns with its own login and tools"

    def ready(self, runtime: Runtime) -> bool:
        """Return whether it is installed; only a request shows whether the user is logged in."""
        return bool(_program(runtime))

    def defaults(self, runtime: Runtime) -> dict[str, str]:  # noqa: ARG002
        return {"model": _DEFAULT}

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
        conversation = _conversation(runtime)
        try:
            return _turn(runtime, payload, conversation)
        except _GoneError:
            return _turn(runtime, payload, _anew(runtime))


def _program(runtime: Runtime) -> str:
    return shutil.which("claude", path=runtime.env.get("PATH")) or ""


def _turn(runtime: Runtime, payload: Json, conversation: _Conversation) -> Json:
    scribe = _Scribe(runtime, conversation)
    result: Json = {}
    try:
        for event in _talk(runtime, _command(runtime, payload, conversation), conversation.prompt):
            scribe.hear(event)
            result = event
    except BaseException:
        # What it has cost is unknown, what it has said is not.
        scribe.write_last({})
        raise
    return _understood(runtime, scribe, result)


def _understood(runtime: Runtime, scribe: _Scribe, result: Json) -> Json:
    """Return the result of a turn that was answered. Raises ProviderError if it was not."""
    spent = scribe.spent(result)
    words = str(result.get("result") or "")
    if result.get("is_error") is not True:
        # It may not have streamed.
        answer = scribe.last = scribe.last or Answer([Text(words)] if words else [], "end")
        scribe.write_last(spent)
        return {**result, "result": words or answer.text, "stop": answer.stop}
    errors = result.get("errors")
    words = words or "; ".join(map(str, errors if isinstance(errors, list) else [])) or "(no reason given)"
    problem = harmless(words, keep="\n")[:_SHOWN]
    if problem.startswith(_GONE):
        raise _GoneError(problem)
    scribe.write_last(_COUNTED_LATER)
    if spent:
        # What a turn without an answer has cost; no engine replays a message of this role.
        fields = {"provider": runtime.provider, "stop": "error", "tokens_in": "0", "tokens_out": "0"}
        runtime.session.append("error", {**fields, **spent}, problem)
    runtime.stop = _LIMITS.get(str(result.get("subtype")), runtime.stop)
    advice = " (start claude, and type it there)" if "/login" in problem else ""
    raise ProviderError(f"Claude Code says: {problem}{advice}")


def _command(runtime: Runtime, payload: Json, conversation: _Conversation) -> list[str]:
    most_turns = disk.number(runtime.env["HARNESS_MAX_TURNS"], request.DEFAULT_TURNS)
    command = [_program(runtime), *_PROTOCOL, f"--max-turns={most_turns}"]
    command.append(f"--resume={conversation.id}" if conversation.known else f"--session-id={conversation.id}")
    if runtime.model not in {"", _DEFAULT}:
        command.append(f"--model={runtime.model}")
    if payload.get("system"):
        command.append(f"--system-prompt={payload['system']}")
    if (effort := runtime.env.get("HARNESS_THINKING", "")) not in {"", "off"}:
        command.append(f"--effort={effort}")
    if most := runtime.env.get("HARNESS_MAX_COST", ""):
        left = float(most) - (runtime.spent().cost or 0.0)
        command.append(f"--max-budget-usd={left:.6f}")
    return [*command, *(_READ_ONLY if trust.setting(runtime, "approve") == "read-only" else ())]


def _talk(runtime: Runtime, command: list[str], prompt: str) -> Iterator[Json]:
    """Start `command`, say `prompt`, and yield what it tells, up to its result; answer its questions.

    Raises ProviderError where it ends without a result, with what it has said on standard error.
    """
    env = runtime.harness_environment()
    env = {**keys.without(runtime, env), **{key: env[key] for key in _ITS_KEYS if key in env}}
    with tempfile.TemporaryFile() as errors:
        try:
            with processes.talking(command, env=env, cwd=runtime.work_directory, errors=errors) as child:
                assert child.stdin is not None
                assert child.stdout is not None
                _send(child.stdin, {"type": "user", "message": {"role": "user", "content": prompt}})
                for event in _lines(child.stdout):
                    if event.get("type") == "control_request":
                        _send(child.stdin, _answer(runtime, event))
                        continue
                    yield event
                    if event.get("type") == "result":
                        _end(child)
                        return
                code = child.wait()
        except OSError as error:
            raise ProviderError(f"{command[0]} cannot be started: {error.strerror}") from error
        errors.seek(0)
        complaint = harmless(errors.read().decode("utf-8", "replace").strip()[-_SHOWN:], keep="\n")
    raise ProviderError(f"Claude Code ended without a result (exit code {code}): {complaint or '(nothing)'}")


def _lines(stream: IO[bytes]) -> Iterator[Json]:
    """Yield the objects; skip other lines, such as warnings."""
    while line := stream.readline(processes.OUTPUT_LIMIT):
        event = as_object(line.decode("utf-8", "replace"))
        if event is not None:
            yield event


def _answer(runtime: Runtime, event: Json) -> Json:
    request = event.get("request") or {}
    response: Json = {"request_id": event.get("request_id")}
    if request.get("subtype") == "can_use_tool":
        response |= {"subtype": "success", "response": _decide(runtime, request)}
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


def _decide(runtime: Runtime, request: Json) -> Json:
    """Return whether a tool may run, as our permission hooks and the user say it."""
    call: Json = {
        "id": str(request.get("tool_use_id") or ""),
        "name": str(request.get("tool_name") or ""),
        "input": as_table(request.get("input")),
    }
    verdict = asking.decide(runtime, call)
    if verdict.decision != "allow":
        return {"behavior": "deny", "message": f"denied: {verdict.reason or 'no reason was given'}"}
    return {"behavior": "allow", "updatedInput": verdict.input}


class _Conversation(NamedTuple):
    """`id` is Claude Code's; `known`: it was started before; `prompt` is the next message.

    `cost` is what it has cost so far, in US dollars: Claude Code tells sums.
    """

    id: str
    known: bool
    prompt: str
    cost: float = 0.0


def _conversation(runtime: Runtime) -> _Conversation:
    """Return the conversation that the session continues."""
    messages = _messages(runtime)
    kept = disk.read_object(runtime.session.directory / CONVERSATION)
    seq, session_id = kept.get("seq"), kept.get("session")
    if isinstance(seq, int) and isinstance(session_id, str) and kept.get("cwd") == str(runtime.session.cwd):
        seen = [message for message in messages if message.seq <= seq]
        news = [message for message in messages if message.seq > seq]
        if kept.get("sha256") == _hash(seen) and all(message.role == "user" for message in news):
            prompt = "\n\n".join(message.body for message in news if message.body.strip())
            cost = kept.get("cost")
            before = float(cost) if isinstance(cost, int | float) else 0.0
            return _Conversation(session_id, known=True, prompt=prompt or _GO_ON, cost=before)
    return _anew(runtime)


def _anew(runtime: Runtime) -> _Conversation:
    """Return a new conversation whose prompt holds the whole session."""
    entries = context.entries(runtime.session.messages(), {})
    place = len(entries)
    while place and isinstance(entries[place - 1], context.User):
        place -= 1
    asked = "\n\n".join(entry.text for entry in entries[place:] if isinstance(entry, context.User)) or _GO_ON
    before = "\n\n".join(_as_text(entry) for entry in entries[:place])
    prompt = f"{_BEGAN}\n\n{before[-_LONGEST:]}\n\n{_NOW}\n\n{asked}" if before else asked
    return _Conversation(str(uuid.uuid4()), known=False, prompt=prompt)


def _messages(runtime: Runtime) -> list[Message]:
    return [message for message in runtime.session.messages() if message.role in _ROLES]


def _hash(messages: list[Message]) -> str:
    texts = (f"{message.seq}\0{message.role}\0{message.body}\0" for message in messages)
    return digest("".join(texts).encode("utf-8", "replace"))


def _as_text(entry: context.Entry) -> str:
    if isinstance(entry, context.User):
        return f"User: {entry.text}"
    if isinstance(entry, context.Answered):
        return f"Result of {entry.call.name}: {entry.text[:_LONGEST_RESULT]}"
    parts = [block.text for block in entry.blocks if isinstance(block, Text)]
    parts += [f"[{block.name} {block.arguments}]" for block in entry.blocks if isinstance(block, Call)]
    return "Assistant: " + "\n".join(parts)


class _Scribe:
    """Hear the events of one turn; `last` is its last answer, saved when the cost of the turn is known."""

    def __init__(self, runtime: Runtime, conversation: _Conversation) -> None:
        self._runtime = runtime
        self._total = conversation.cost
        self._reader = anthropic.Reader()
        self._calls: dict[str, Call] = {}
        self._session_id = ""
        self.last: Answer | None = None
        self.model = ""

    def hear(self, event: Json) -> None:
        """Take an event; ignore unknown ones and those of its subagents."""
        kind = event.get("type")
        if kind == "system" and event.get("subtype") == "init":
            self._session_id = str(event.get("session_id") or "")
            self._keep()
        elif event.get("parent_tool_use_id") is not None:
            return
        elif kind == "stream_event":
            self._streamed(event.get("event") or {})
        elif kind == "user":
            for block in as_tables(as_table(event.get("message")).get("content")):
                if block.get("type") == "tool_result":
                    self._result(block)

    def spent(self, result: Json) -> dict[str, str]:
        """Return the cost of the turn from its `result`; nothing if it has none."""
        total = result.get("total_cost_usd")
        if not isinstance(total, int | float):
            return {}
        before, self._total = self._total, float(total)
        self._keep()
        return {"cost": f"{total - before if total >= before else total:.6f}"}

    def write_last(self, spent: dict[str, str]) -> None:
        """Save the last answer, if there is one that is not saved yet; `spent` is what the turn has cost."""
        answer, self.last = self.last, None
        if answer:
            request.write(self._runtime, answer, self.model or self._runtime.model, spent)
            self._keep()

    def _streamed(self, event: Json) -> None:
        if event.get("type") == "message_start":
            self.write_last(_COUNTED_LATER)
            self._reader = anthropic.Reader()
            self.model = str((event.get("message") or {}).get("model") or "")
        for shown in self._reader.feed(event):
            self._runtime.stream.emit(shown.kind, **shown.values)
        native = self._reader.native()
        if event.get("type") != "message_stop" or native is None:
            return
        self.last = anthropic.answer(native)
        if self.last.calls:
            # Saved before its tools run: if hs is killed, the session must show what was started.
            self._calls |= {call.id: call for call in self.last.calls}
            self.write_last(_COUNTED_LATER)

    def _result(self, block: Json) -> None:
        call_id, error = str(block.get("tool_use_id") or ""), block.get("is_error") is True
        call = self._calls.pop(call_id, None)
        text = _text(block.get("content"))
        name, tool_input = call.name if call else "", (call.input if call else None) or {}
        tool_calls.show(self._runtime, name, tool_input, plugins.Result(text, error=error))
        tool_calls.record(self._runtime, {"call_id": call_id, "name": name, "result": text, "error": error})
        # The stage `tool_done` sees none of these calls.
        tasks.beat(self._runtime, {"name": name, "input": tool_input})
        self._keep()

    def _keep(self) -> None:
        """Store that the conversation knows the session as it is now, and its cost so far."""
        if not self._session_id:
            return
        messages = _messages(self._runtime)
        value = {
            "session": self._session_id,
            "seq": messages[-1].seq if messages else 0,
            "sha256": _hash(messages),
            "cwd": str(self._runtime.session.cwd),
            "cost": self._total,
        }
        self._runtime.session.write(CONVERSATION, dumps(value).encode())


def _text(content: object) -> str:
    """Return a result as text; only name blocks that are not text."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", f"({part.get('type')})")) for part in as_tables(content))


def _assemble(runtime: Runtime, payload: Json) -> Json:
    """Go on to `send` with the new messages of the user; Claude Code knows the others."""
    payload = {**payload, "messages": [], "tools": [], "next_state": "send"}
    return {**payload, "system": runtime.system} if runtime.system else payload


def _receive(runtime: Runtime, result: Json) -> Json:
    """Go on to `done` with the result, whose messages are saved."""
    runtime.stop = str(result.get("stop") or "end")
    return {"next_state": "done", "output": str(result.get("result") or "")}


HOOKS: list[tuple[str, str, plugins.Hook]] = [
    ("assemble", "10-messages", _assemble),
    # Claude Code brings its own.
    *(("assemble", name, lambda _, payload: payload) for name in ("20-tools", "30-prompts", "35-skills")),
    ("receive", "10-save", _receive),
]


PROVIDER = Claude()
