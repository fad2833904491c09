"""Claude Code as a process: lines of JSON in both directions, and its questions whether a tool may run."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from harness_lib.loop import processes
from harness_lib.loop.failures import ProviderError
from harness_lib.loop.piped import Json, as_object, dumps
from harness_lib.text import harmless

_SHOWN = 1000
# It has said its last word, and saves its session.
_ENDING_SECONDS = 10.0


def events(
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
        complaint = harmless(errors.read().decode("utf-8", "replace").strip()[-_SHOWN:], keep="\n")
    raise ProviderError(f"Claude Code ended without a result (exit code {code}): {complaint or '(nothing)'}")


def _lines(stream: IO[bytes]) -> Iterator[Json]:
    """Yield the objects; what is none, a warning say, is passed over."""
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
    # Who has ended already is known by what it has said.
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
