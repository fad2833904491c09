"""Scripts of the model servers: steps used in order, the last one again and again."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.loop.servers.cache import PromptCache

Json = dict[str, Any]


@dataclass(frozen=True)
class Use:
    """A call that the model makes; `raw`: arguments sent as they are, in place of `input`.

    `namespace` is Codex's.
    """

    name: str
    input: Json = field(default_factory=dict)
    id: str | None = None
    raw: str | None = None
    namespace: str = ""

    @property
    def arguments(self) -> str:
        return json.dumps(self.input) if self.raw is None else self.raw

    @property
    def parts(self) -> list[str]:
        """The arguments in three pieces, as they are streamed."""
        third = len(self.arguments) // 3
        return [self.arguments[:third], self.arguments[third : 2 * third], self.arguments[2 * third :]]


@dataclass(frozen=True)
class Step:
    """One answer. `status` other than 200 is an error, of `code`; `events`: the stream is cut behind so many.

    `redacted` are thoughts that nobody may read, `inserted` further events behind the first, `glued` leaves
    out the space behind `data:`, `html` is what an error has in place of JSON, and a `silent` step says
    nothing at all; one that `hangs` says no more behind the events that it sends.
    """

    text: str = ""
    uses: tuple[Use, ...] = ()
    thinking: str = ""
    redacted: str = ""
    stop: str = ""
    status: int = 200
    said: str = "scripted"
    code: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    events: int | None = None
    inserted: tuple[Json, ...] = ()
    glued: bool = False
    html: str = ""
    silent: bool = False
    hangs: bool = False


def say(text: str) -> Step:
    return Step(text=text)


def use(name: str, **arguments: object) -> Step:
    return Step(uses=(Use(name, dict(arguments)),))


def bash(command: str) -> Step:
    return use("bash", command=command)


def new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"


class Refused(Exception):  # noqa: N818 (it is what the server says, not an error of the test)
    """What a real host answers with 400."""


def refuse_unless(condition: object, message: str) -> None:
    if not condition:
        raise Refused(message)


def _refuse_constant(name: str) -> None:
    message = f"the request is no JSON: {name}"
    raise AssertionError(message)


def check_name(name: str) -> None:
    """Raise Refused for a name of a tool that no host takes, be it offered or in what was said."""
    refuse_unless(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name), f"name does not match the pattern: {name!r}")


def check_tool(name: str, schema: Json) -> None:
    """Raise Refused for a tool that no host takes."""
    check_name(name)
    refuse_unless(schema.get("type") == "object", f"tools: schema must be of type object: {schema}")
    # OpenAI's words of one that has none.
    refuse_unless(isinstance(schema.get("properties"), dict), "object schema missing properties")


def _takes_all(_path: str, _body: Json) -> None:
    """Refuse nothing."""


class ModelServer(ThreadingHTTPServer):
    """A host of models on 127.0.0.1: what clients have sent is in `requests`, 400s in `refusals`."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler], steps: list[Step]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.steps = steps
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[str] = []
        # With one, the server counts what it is sent; without, every request has the same few tokens.
        self.cache: PromptCache | None = None
        # What this host refuses beside what all of its kind do, of the path and body of a request.
        self.peculiar: Callable[[str, Json], None] = _takes_all
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __exit__(self, *raised: object) -> None:
        """Stop; it must have refused nothing."""
        self.shutdown()
        self.server_close()
        assert raised[0] or self.refusals == []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def told(self, number: int) -> Any:
        """Return the content of the last message in a request."""
        return self.requests[number]["messages"][-1]["content"]

    def results(self, number: int) -> list[Any]:
        """Return what the calls so far came to, in a request of the chat wire."""
        return [said["content"] for said in self.requests[number]["messages"] if said["role"] == "tool"]

    def next_step(self, body: Json, headers: dict[str, str]) -> Step:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            return self.steps[min(len(self.requests), len(self.steps)) - 1]


class Quiet(BaseHTTPRequestHandler):
    """What every host of the tests does alike: it reads a body, sends an answer and logs nothing."""

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def reply(self, status: int, value: Json, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.send(status, "application/json", json.dumps(value).encode(), headers)

    def send(self, status: int, kind: str, data: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.send_response(status)
        for name, text in (("content-type", kind), ("content-length", str(len(data))), *headers):
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class Handler(Quiet):
    """A request: checked, then answered by the script, event by event."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def check(self, body: Json) -> None:
        """Raise Refused for what the real host would refuse."""
        raise NotImplementedError

    def events(self, step: Step, body: Json) -> list[tuple[str, Json | str]]:
        """Return the events of an answer: name and data."""
        raise NotImplementedError

    def error(self, message: str) -> Json:
        return {"error": {"message": message, "type": "invalid_request_error"}}

    def do_POST(self) -> None:
        body = json.loads(self.body(), parse_constant=_refuse_constant)
        step = self.server.next_step(body, {name.lower(): value for name, value in self.headers.items()})
        try:
            self.check(body)
            self.server.peculiar(self.path, body)
        except Refused as refused:
            self.server.refusals.append(str(refused))
            self.reply(400, self.error(str(refused)))
            return
        if step.silent:
            # Until the client goes.
            self.rfile.read(1)
            self.close_connection = True
            return
        if step.html:
            self.send(step.status, "text/html", step.html.encode())
            return
        if step.status != 200:
            # Some hosts repeat the key that they do not like.
            said = step.said.replace("{authorization}", self.headers.get("authorization") or "")
            answer = self.error(said)
            answer["error"] |= {"code": step.code} if step.code else {}
            self.reply(step.status, answer, step.headers)
            return
        events = self.events(step, body)
        named = self.path != "/v1/chat/completions"
        self.hangs = step.hangs
        events[1:1] = [(event.get("type", "") if named else "", event) for event in step.inserted]
        self.stream(events, step.events, "" if step.glued else " ")

    def stream(self, events: list[tuple[str, Json | str]], count: int | None, space: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events[:count]:
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data:{space}{text}\n\n".encode())
            self.wfile.flush()
        if self.hangs:
            # Until the client goes.
            self.rfile.read(1)
