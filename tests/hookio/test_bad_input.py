"""Bad input, bad places, and bugs of our own: no host crashes, no agent is held by accident."""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.hookio.conftest import EVENTS, HOOKS, Ring
from tests.hookio.lists import ME, make
from tests.run_to_end import run_to_end

LEFT = Task("a")


NONSENSE = {
    "empty": b"",
    "no-object": b"[1, 2]",
    "text": b"hello",
    "binary": bytes(range(256)) * 100,
    "deep": b"[" * 200_000,
    "open": b'{"session_id": "' + b"x" * 1000,
    "wrong-types": b'{"session_id": 1, "cwd": [], "hook_event_name": {}, "tool_input": 3}',
    "surrogate": b'{"session_id": "\\ud800", "cwd": "\\ud800", "agent_id": "\\udfff", "reason": "\\ud800"}',
    "null-bytes": b'{"cwd": "/tmp/\\u0000", "session_id": "\\u0000", "tool_input": {"file_path": "\\u0000"}}',
    "unknown-event": b'{"hook_event_name": "Nonesuch"}',
}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_is_survived_by_every_hook(hook: Ring, root: Root, nonsense: str) -> None:
    make(root, LEFT)
    before = root.state.read_bytes()
    for name in EVENTS:
        heard = hook(name, NONSENSE[nonsense], cwd=root.path)
        assert (heard.code, heard.err) == (0, ""), (name, heard)
        assert heard.out == "" or json.loads(heard.out), (name, heard)
    assert root.state.read_bytes() == before
    assert not list((root.path / ".harness").glob("bug-*"))


def test_fifty_megabytes_are_read_to_the_end(ring: Ring, root: Root) -> None:
    make(root, LEFT)

    assert ring("stop", {"last_assistant_message": "x" * 50_000_000, "session_id": ME}).reason


def test_a_block_that_cannot_be_counted_is_not_given(ring: Ring, root: Root) -> None:
    """It would be one of endlessly many."""
    make(root, LEFT)
    (root.path / ".harness/stops").write_text("in the way")

    heard = ring("stop", {"session_id": ME})

    assert (heard.code, heard.out, heard.err.count("\n")) == (0, "", 1)
    assert "hook disabled" in heard.err


STREAMS = {
    "closed": ">&-",
    "all closed": "<&- >&- 2>&-",
    "full": ">/dev/full",
    "both full": ">/dev/full 2>/dev/full",
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("streams", STREAMS.values(), ids=STREAMS)
def test_an_answer_that_nobody_can_hear_is_no_error(root: Root, streams: str) -> None:
    make(root, LEFT)
    bell = shlex.join([sys.executable, "-I", "-S", str(HOOKS / "harness-stop.py")])

    done = run_to_end(["/bin/sh", "-c", f"exec {bell} {streams}"], cwd=root.path, stdin="{}")

    heard = "hook disabled: [" if streams == STREAMS["full"] else ""
    assert (done.returncode, done.stdout) == (0, "")
    assert heard in done.stderr
    assert done.stderr.count("\n") == bool(heard)
    assert not list((root.path / ".harness").glob("bug-*"))


def test_a_host_whose_pipe_never_waits_is_heard_to_the_end(root: Root) -> None:
    make(root, LEFT)
    stdin, host = os.pipe()
    os.set_blocking(stdin, False)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(HOOKS / "harness-stop.py")],
        cwd="/", stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as hook:  # fmt: skip
        # Once it waits for more, it has found the pipe empty, or read its first half.
        assert hook.stdout is not None
        assert select.select([hook.stdout], [], [], 1)[0] == []
        os.write(host, json.dumps({"cwd": str(root.path)}).encode())
        os.close(host)
        os.close(stdin)
        out, err = hook.communicate(timeout=200)

    assert (hook.returncode, err) == (0, b"")
    assert json.loads(out)["decision"] == "block"
