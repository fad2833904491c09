"""What a killed `hs` has left running: whoever goes on in its session ends it first."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, session_of
from tests.loop.environment import environment
from tests.loop.servers.script import Step, Use, say, use
from tests.loop.source_files import write

# Says who it is where the test reads it, and stays; of what it has started, too.
STAYS = "echo $$ > pids; (setsid sh -c 'echo $$ > pids; exec sleep 600') & sleep 600"
TOOL = f"""\
#!/bin/sh
if [ "$1" = --schema ]; then
echo '{{"name":"stay","input_schema":{{"type":"object"}}}}'
else
{STAYS}
fi
"""


def killed_in(project: Path, env: dict[str, str], count: int = 2) -> list[int]:
    """Kill a task while its tool is at work; return descriptors of the processes that it leaves.

    The tool may be quicker than the note of it: what is killed before that is known to nobody.
    """
    sessions = Path(os.environ["HOME"], ".harness", "sessions")
    os.mkfifo(project / "pids")
    # Our own end keeps it open, so that no line is missed between two writers.
    lines = os.fdopen(os.open(project / "pids", os.O_RDWR), encoding="ascii")
    command = [sys.executable, "-m", "harness_lib.hs", "RUN it"]
    with (
        lines,
        subprocess.Popen(
            command, cwd=project, env=environment(env), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run,
    ):
        left = [os.pidfd_open(int(lines.readline())) for _ in range(count)]
        while not all(note.stat().st_size for note in sessions.rglob("*.running")):
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    return left


def has_ended(descriptor: int, seconds: float = 60) -> bool:
    """Return whether that process ends."""
    return bool(select.select([descriptor], [], [], seconds)[0])


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are watched by descriptors")
@pytest.mark.parametrize("tool", ["bash", "stay", "agent"])
def test_it_is_ended_when_the_session_goes_on(
    hs: Hs, serve: Serve, home: Path, project: Path, tool: str
) -> None:
    write(home / ".harness/tools/stay", TOOL, 0o755)
    arguments = {"bash": {"command": f"trap '' TERM; {STAYS}"}, "stay": {}, "agent": {"prompt": "stay"}}[tool]
    inside = [use("stay")] if tool == "agent" else []
    server = serve(CHAT, Step(uses=(Use(tool, arguments),)), *inside, say("Where were we?"))
    left = killed_in(project, CHAT.environment(server))
    assert not any(has_ended(each, 0) for each in left)

    answer = hs("--continue", "go on", env=CHAT.environment(server))

    assert (answer.code, answer.out) == (0, "Where were we?\n"), answer.err
    assert all(has_ended(each) for each in left)
    assert "left running was ended" in answer.err


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are watched by descriptors")
def test_it_is_ended_when_the_session_is_removed(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    server = serve(CHAT, use("bash", command=STAYS))
    left = killed_in(project, CHAT.environment(server))

    assert hs("session", "rm", session_of(home).name).code == 0

    assert all(has_ended(each) for each in left)


def test_of_what_has_ended_nothing_is_noted(hs: Hs, serve: Serve, home: Path) -> None:
    # It may be faster than whoever notes it.
    looks = 'cd "$HARNESS_SESSION"; until [ -s *.running ]; do sleep 0.05; done; cat *.running'
    server = serve(CHAT, use("bash", command=looks), say("Done."))

    assert hs("RUN it", env=CHAT.environment(server)).code == 0

    session = session_of(home)
    noted = (session / "messages" / "0003-tool_result.md").read_text(encoding="utf-8").splitlines()[-1]
    assert len(noted.split()) >= 3, "it was not noted while it ran"
    assert list(session.glob("*.running")) == []
