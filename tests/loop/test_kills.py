"""`kill -9` before every effect of a turn; afterwards the session is resumed and no host refuses it.

Effects are what others can see: a file that is opened for writing, renamed or removed, a directory, a
connection, a program. With CRASH_EVERYWHERE=1 the process dies before each of them, otherwise before some.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loop.conftest import Hs, Wire
from tests.loop.environment import environment
from tests.loop.servers.script import Json, ModelServer, Step, Use, say

DYING = """
import os, signal, sys
last, seen = int(sys.argv.pop(1)), 0
def effect(event, args):
    if event == "open":
        return bool((args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return event in {
        "os.rename", "os.remove", "os.mkdir", "os.truncate", "subprocess.Popen", "socket.connect",
    }
def watch(event, args):
    global seen
    if effect(event, args) and not str(args[0]).endswith(".pyc") and "__pycache__" not in str(args[0]):
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)
from harness_lib.hs.main import entry
sys.addaudithook(watch)
sys.exit(entry())
"""
LEAST = 20
STRIDE = 1 if os.environ.get("CRASH_EVERYWHERE") else 5
CALLS = (Use("bash", {"command": "echo one"}), Use("write_file", {"path": "made", "content": "x"}))


class Answering(ModelServer):
    """Answers by what was said last, so that it does not matter how often somebody has died before."""

    def next_step(self, body: Json, headers: dict[str, str]) -> Step:
        super().next_step(body, headers)
        said = str((body.get("messages") or body["input"])[-1])
        called = any(word in said for word in ("tool_result", "'tool'", "function_call_output"))
        return say("Done.") if called else Step(text="I look.", thinking="hm", uses=CALLS)


@pytest.fixture
def server(wire: Wire) -> Iterator[Answering]:
    """Return a host on each of the wires."""
    server = Answering(wire.handler, [say("")])
    yield server
    server.shutdown()
    server.server_close()
    assert server.refusals == []


def dies(project: Path, env: dict[str, str], last: int) -> subprocess.CompletedProcess[str]:
    """Run a task that dies before its effect number `last`."""
    return subprocess.run(
        [sys.executable, "-c", DYING, str(last), "RUN it"],
        cwd=project, env=environment(env), stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
        timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.timeout(600)
def test_a_turn_that_is_killed_anywhere_goes_on(
    hs: Hs, wire: Wire, server: Answering, home: Path, project: Path
) -> None:
    env = wire.environment(server) | {"HARNESS_PROVIDER": wire.provider}
    store = home / ".harness" / "sessions"
    seen: set[Path] = set()

    last = 1
    while dies(project, env, last).returncode == -signal.SIGKILL:
        new = set(store.iterdir()) - seen if store.is_dir() else set()
        for session in new:
            messages_are_whole(session)
            answer = hs(session.name, "go on", env=env)
            assert (answer.code, answer.out) == (0, "Done.\n"), f"{last}: {answer.err}"
            messages_are_whole(session)
        seen |= new
        last += STRIDE

    assert last > LEAST
    assert set(hs("session", "list").out.split()) == {path.name for path in store.iterdir()}
    assert all(hs("session", "show", path.name).code == 0 for path in list(seen)[:2])


def messages_are_whole(session: Path) -> None:
    """Fail on a message that is half written."""
    for path in (session / "messages").glob("[0-9]*"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("---\nrole: "), path
        assert text.count("---\n") > 1, path
        assert text.endswith("\n"), path
    for path in (session / "native").glob("[0-9]*.json"):
        json.loads(path.read_text(encoding="utf-8"))
