"""Bring a question to the person of the outermost hs, over a socket that its subagents are told of."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness_lib.loop.piped import Json, as_object, dumps

VARIABLE = "HARNESS_ASK"
_LONGEST = 16 * 1024 * 1024


@dataclass(frozen=True)
class Question:
    """A call that a person decides about; `who` is the subagent that wants it, "" for the session itself.

    `place` names the directories outside of the project that it is about, "" for none.
    """

    name: str
    input: Json
    reason: str = ""
    who: str = ""
    id: str = ""
    place: str = ""


@dataclass(frozen=True)
class Said:
    """What the person said; `always`: of the like, too."""

    allowed: bool
    reason: str = ""
    always: bool = False


Asker = Callable[[Question], Said]


@contextlib.contextmanager
def served(asker: Asker | None) -> Iterator[str]:
    """Answer questions of other processes by `asker` as long as the block lasts; yield the address."""
    if asker is None:
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="hs-") as directory, socket.socket(socket.AF_UNIX) as server:
        # The directory is ours alone, so that nobody else can ask or answer.
        address = str(Path(directory, "ask"))
        server.bind(address)
        server.listen()
        ended = threading.Event()
        threading.Thread(target=_serve, args=(server, asker, ended), daemon=True).start()
        try:
            yield address
        finally:
            ended.set()
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)


def over(address: str, question: Question) -> Said:
    """Return what the person at `address` says; where nobody is there any more, no."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
            client.sendall(f"{dumps(_as_json(question))}\n".encode())
            reply = as_object(_line(client)) or {}
    except OSError as error:
        return Said(allowed=False, reason=f"the person who has to be asked cannot be reached: {error}")
    reason = str(reply.get("reason") or "")
    return Said(allowed=reply.get("allowed") is True, reason=reason, always=reply.get("always") is True)


def _as_json(question: Question) -> Json:
    return {
        "name": question.name,
        "given": question.input,
        "reason": question.reason,
        "who": question.who,
        "id": question.id,
        "place": question.place,
    }


def _serve(server: socket.socket, asker: Asker, ended: threading.Event) -> None:
    """Answer one question after another: there is one person."""
    while not ended.is_set():
        try:
            client, _ = server.accept()
            with client:
                request = as_object(_line(client)) or {}
                tool_input = request.get("given")
                question = Question(
                    str(request.get("name") or ""),
                    tool_input if isinstance(tool_input, dict) else {},
                    str(request.get("reason") or ""),
                    str(request.get("who") or ""),
                    place=str(request.get("place") or ""),
                )
                client.sendall(f"{json.dumps(vars(asker(question)))}\n".encode())
        except OSError:
            # Who asked is gone.
            continue


def _line(peer: socket.socket) -> str:
    with peer.makefile("rb") as stream:
        return stream.readline(_LONGEST).decode("utf-8", "replace")
