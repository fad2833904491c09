"""Tools and hooks that flood or hang: their run goes on or ends, in bounded memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.loop import flags, follower
from harness_lib.loop.follower import Ending
from tests.loop.conftest import CHAT, Hs, Serve, Wire, session_of
from tests.loop.environment import environment
from tests.loop.in_process import started
from tests.loop.memory import MEASURED
from tests.loop.servers.script import say, use
from tests.loop.source_files import write_program

pytestmark = pytest.mark.usefixtures("in_process")


def test_a_result_of_fifty_megabytes_takes_bounded_memory(hs: Hs, serve: Serve, home: Path) -> None:
    loud = use("bash", command="head -c 50000000 /dev/zero | tr '\\0' x")
    server = serve(CHAT, loud, say("Done."))

    answer = hs("go", env=CHAT.environment(server), through=MEASURED)

    said, kilobytes = answer.out.splitlines()
    assert (answer.code, said) == (0, "Done."), answer.err
    (kept,) = (session_of(home) / "output").iterdir()
    assert kept.stat().st_size == 50_000_000
    assert int(kilobytes) < 90_000


def test_a_tool_whose_flag_hangs_or_floods_is_left_out(
    serve: Serve, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "SECONDS", 0.5)
    write_program(home / ".harness" / "tools" / "hangs", "#!/bin/sh\nsleep 600\n")
    write_program(home / ".harness" / "tools" / "floods", "#!/bin/sh\nexec yes\n")
    server = serve(CHAT, say("Done."))

    assert follower.follow(started(home, project, CHAT, server)) == Ending("Done.", failed=False)

    assert {"hangs", "floods"}.isdisjoint(tool["function"]["name"] for tool in server.requests[0]["tools"])


def test_a_hook_that_floods_ends_its_stage(hs: Hs, serve: Serve, home: Path) -> None:
    write_program(home / ".harness" / "hooks.d" / "start" / "50-floods", "#!/bin/sh\nexec yes\n")
    server = serve(CHAT, say("never"))

    answer = hs("RUN it", env=CHAT.environment(server))

    assert answer.code == 1
    assert "printed more than" in answer.err
    assert server.requests == []


def test_a_tool_that_floods_gives_both_ends_and_the_run_goes_on(hs: Hs, serve: Serve, wire: Wire) -> None:
    server = serve(wire, use("bash", command="yes"), say("Done."))

    answer = hs("RUN it", env=wire.environment(server))

    assert (answer.code, answer.out) == (0, "Done.\n"), answer.err
    assert "all of it in" in str(server.requests[-1])
    assert len(str(server.requests[-1])) < 300_000


def test_a_hook_that_hangs_is_ended_with_the_run(serve: Serve, home: Path, project: Path) -> None:
    fifo = project / "pid"
    os.mkfifo(fifo)
    write_program(
        home / ".harness" / "hooks.d" / "start" / "50-hangs",
        f"#!/bin/sh\necho $$ >'{fifo}'\nexec sleep 600\n",
    )
    server = serve(CHAT, say("never"))
    run = subprocess.Popen(
        [sys.executable, "-m", "harness_lib.hs", "RUN it"],
        env=environment(CHAT.environment(server)),
        cwd=project,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pid = int(fifo.read_text(encoding="utf-8"))

    run.send_signal(signal.SIGINT)

    assert run.wait(60) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
