"""What `hs` adds to a model's time, beside twelve lines of httpx2 that do the same work with the same server.

The server is scripted and in this process; it answers at once, so what is measured is the client.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.measuring import Row, at_most, in_turns, seconds
from benchmarks.projects import CHECKOUT
from tests.loop.servers.cache import PromptCache
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import Json, ModelServer, Step, Use, say

TWELVE = """\
import json, subprocess, sys, httpx2
url, said = sys.argv[1], [{"role": "user", "content": sys.argv[2]}]
with httpx2.Client(verify=False) as client:
    while True:
        body = {"model": "m", "messages": said, "stream": True}
        with client.sse(url, method="POST", json=body) as events:
            chunks = [json.loads(event.data)["choices"] for event in events if event.data != "[DONE]"]
        deltas = [chunk[0]["delta"] for chunk in chunks if chunk]
        calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
        if not calls:
            sys.exit(print("".join(delta.get("content", "") for delta in deltas)))
        given = json.loads("".join(call["function"].get("arguments", "") for call in calls))
        done = subprocess.run(["bash", "-c", given["command"]], capture_output=True, text=True)
        function = {"name": "bash", "arguments": json.dumps(given)}
        call = {"id": calls[0]["id"], "type": "function", "function": function}
        said += [{"role": "assistant", "tool_calls": [call]}]
        said += [{"role": "tool", "tool_call_id": call["id"], "content": done.stdout}]
"""
HS = (sys.executable, "-I", "-S", str(CHECKOUT / "bin" / "hs"))
FLOOR = "`python3 -I -S -c pass`"
CALL = Step(uses=(Use("bash", {"command": "echo hello"}),))
GAPS = 12
DELTAS = 20_000
GAP_SECONDS = 0.010
DELTAS_A_SECOND = 5000
CACHED = 0.9


class Timed(ModelServer):
    """Knows when each request came and when each answer had ended."""

    def __init__(self, *steps: Step) -> None:
        self.came: list[float] = []
        self.ended: list[float] = []
        super().__init__(TimedOpenAI, list(steps))

    @property
    def url(self) -> str:
        """Where clients send their requests."""
        return f"{self.address}/v1/chat/completions"

    def begin(self, *steps: Step) -> None:
        """Start anew with other steps."""
        self.steps = list(steps)
        for kept in (self.requests, self.headers, self.came, self.ended):
            kept.clear()


class TimedOpenAI(OpenAI):
    """Says when."""

    server: Timed

    def do_POST(self) -> None:
        """Answer, and note both ends."""
        self.server.came.append(time.perf_counter())
        super().do_POST()
        self.server.ended.append(time.perf_counter())

    def stream(self, events: list[tuple[str, Json | str]], count: int | None, space: str) -> None:
        """Send the whole answer at once: a server that takes its time would be measured instead."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        lines = (data if isinstance(data, str) else json.dumps(data) for _, data in events[:count])
        self.wfile.write("".join(f"data:{space}{line}\n\n" for line in lines).encode())


class Many(TimedOpenAI):
    """Says its text in as many pieces as it has words."""

    def events(self, step: Step, body: Json) -> list[tuple[str, Json | str]]:
        """Return an event for each word."""
        made = super().events(Step(), body)
        words = [{"choices": [{"index": 0, "delta": {"content": f"{word} "}}]} for word in step.text.split()]
        return [made[0], *(("", word) for word in words), *made[1:]]


def compare(place: Path, rounds: int) -> Iterator[Row]:
    """Return all rows."""
    place.mkdir()
    (place / "twelve.py").write_text(TWELVE, encoding="utf-8")
    with served() as server:
        yield from _whole(server, place, rounds)
        yield from _long(server, place, rounds)
        yield from _gaps(server, place)
        yield from _deltas(server, place, rounds)
        yield from _memory(server, place)
        yield _cached(server, place)


@contextmanager
def served() -> Iterator[Timed]:
    """Start a server for as long as the block lasts."""
    server = Timed(say("Done."))
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _whole(server: Timed, place: Path, rounds: int) -> Iterator[Row]:
    """Compare one tool call as a whole process, and the word that is typed most, with their floors."""
    taken = in_turns(
        {
            "hs": partial(_one_call, server, place, (*HS, "RUN it")),
            "twelve": partial(_one_call, server, place, (sys.executable, "twelve.py", server.url, "RUN it")),
            "version": partial(_start, (*HS, "version"), place, server),
            "floor": partial(_start, (sys.executable, "-I", "-S", "-c", "pass"), place, server),
        },
        rounds,
    )
    twelve = "twelve lines of httpx2"
    yield at_most("`hs`: one tool call, whole process", 1.4, taken["hs"] / taken["twelve"], twelve)
    yield at_most("`hs version`", 4, taken["version"] / taken["floor"], FLOOR)


def _one_call(server: Timed, place: Path, command: tuple[str, ...]) -> None:
    server.begin(CALL, say("Done."))
    said = _start(command, place, server)
    assert said.strip().endswith("Done."), said


def _long(server: Timed, place: Path, rounds: int) -> Iterator[Row]:
    """Compare a turn with one tool call in a session of 300 messages with one in a session of 3."""
    taken: dict[int, list[float]] = {3: [], 300: []}
    for messages in list(taken) * rounds:
        server.begin(say("First."))
        _start((*HS, "RUN it"), place, server)
        _fill(messages)
        server.begin(CALL, say("Done."))
        taken[messages].append(seconds(partial(_start, (*HS, "--continue", "go on"), place, server)))
    short, long = statistics.median(taken[3]), statistics.median(taken[300])
    yield at_most("`hs`: a turn with one tool call, 300 messages", 1.2, long / short, "3 messages")


def _gaps(server: Timed, place: Path) -> Iterator[Row]:
    """Compare the time between an answer's end and the next request in a short and in a long session."""
    for number in range(GAPS):
        (place / f"read{number}").write_text("one line\n", encoding="utf-8")
    short, long = _gap(server, place, 3), _gap(server, place, 300)
    what = "`hs`: from an answer's end to the next request, with a call of `read_file`"
    yield Row(f"{what}, 3 messages", "≤ 10 ms", f"{short * 1000:.1f} ms", short <= GAP_SECONDS)
    yield at_most(f"{what}, 300 messages", 2, long / short, "3 messages")


def _gap(server: Timed, place: Path, messages: int) -> float:
    server.begin(say("First."))
    _start((*HS, "RUN it"), place, server)
    _fill(messages)
    looks = [Step(uses=(Use("read_file", {"path": f"read{number}"}),)) for number in range(GAPS)]
    server.begin(*looks, say("Done."))
    _start((*HS, "--continue", "go on"), place, server)
    return statistics.median(
        later - ended for ended, later in zip(server.ended, server.came[1:], strict=False)
    )


def _fill(messages: int) -> None:
    """Let the newest session have as many messages."""
    store = Path(os.environ["HARNESS_HOME"], "sessions")
    newest = max(store.iterdir(), key=lambda path: path.stat().st_mtime_ns) / "messages"
    for number in range(3, messages + 1):
        role = "user" if number % 2 else "assistant"
        text = f"---\nrole: {role}\n---\n" + "a line of text\n" * 8
        (newest / f"{number:04d}-{role}.md").write_text(text, encoding="utf-8")


def _deltas(server: Timed, place: Path, rounds: int) -> Iterator[Row]:
    """Count how many pieces of an answer are taken in a second."""
    server.RequestHandlerClass = Many
    server.begin(say("word"))
    one = statistics.median(seconds(partial(_start, (*HS, "RUN it"), place, server)) for _ in range(rounds))
    server.begin(say("word " * DELTAS))
    all_ = statistics.median(seconds(partial(_start, (*HS, "RUN it"), place, server)) for _ in range(rounds))
    server.RequestHandlerClass = TimedOpenAI
    found = DELTAS / max(all_ - one, 0.001)
    yield Row(
        "`hs`: pieces of a streamed answer", "≥ 5,000 a second", f"{found:,.0f}", found >= DELTAS_A_SECOND
    )


def _memory(server: Timed, place: Path) -> Iterator[Row]:
    """Tell how much memory a large session and a large result take."""
    server.begin(say("Done."))
    small = _peak((*HS, "RUN it"), place, server)
    loud = Step(uses=(Use("bash", {"command": "head -c 50000000 /dev/zero | tr '\\0' x"}),))
    server.begin(loud, say("Done."))
    result = _peak((*HS, "RUN it"), place, server)
    _fill(10_000)
    server.begin(say("Done."))
    session = _peak((*HS, "--continue", "go on"), place, server)
    what = "`hs`: memory, beside that of a short session"
    yield Row(f"{what}: a result of 50 MB", "", f"{result / small:.1f} times ({result:.0f} MB)")
    yield Row(f"{what}: 10,000 messages", "", f"{session / small:.1f} times ({session:.0f} MB)")


# A process begins as a copy of the one that starts it, which counts as its own memory: a small one does.
PEAK = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=2)
_, status, used = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
assert child.returncode == 0
print(used.ru_maxrss)
"""


def _peak(command: tuple[str, ...], place: Path, server: Timed) -> float:
    """Return the most memory that `command` had, in MB."""
    done = subprocess.run(
        (sys.executable, "-I", "-S", "-c", PEAK, *command),
        cwd=place,
        env=environment(server),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return int(done.stdout) / (1024 if sys.platform == "linux" else 1024 * 1024)


def _cached(server: Timed, place: Path) -> Row:
    """Tell how much of the input a server has in its cache in a session of thirty requests."""
    steps = [Step(uses=(Use("bash", {"command": f"seq {each} {each + 150}"}),)) for each in range(29)]
    server.begin(*steps, say("Done."))
    server.cache = PromptCache()
    _start((*HS, "RUN it"), place, server)
    counts, server.cache = server.cache.counts[2:], None
    share = sum(count.read for count in counts) / sum(count.tokens for count in counts)
    what = "`hs`: input read from a host's cache, 30 requests, from the third on"
    return Row(what, "≥ 90 %", f"{share * 100:.0f} %", share >= CACHED)


def environment(server: Timed) -> dict[str, str]:
    """Return the environment of a client of `server`."""
    foreign = ("OPENAI", "ANTHROPIC")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**env, "OPENAI_API_URL": server.url, "HARNESS_MODEL": "m", "NO_PROXY": "127.0.0.1"}


def _start(command: tuple[str, ...], place: Path, server: Timed) -> str:
    done = subprocess.run(
        command,
        cwd=place,
        env=environment(server),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
