"""A bug of ours is said in one line and kept in a file; a program that reads events hears of it, too."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

from tests.loop.conftest import CHAT, Serve
from tests.loop.environment import environment
from tests.loop.servers.script import say

# The program with something wrong in it.
BROKEN = """
import sys
from harness_lib.hs import main
from harness_lib.loop import turn
def take(*_):
    raise {error}
turn.take = take
sys.exit(main.entry())
"""


def broken(serve: Serve, cwd: Path, *args: str, error: str) -> subprocess.CompletedProcess[str]:
    server = serve(CHAT, say("never"))
    return subprocess.run(
        [sys.executable, "-c", BROKEN.format(error=error), *args],
        env=environment(CHAT.environment(server)),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_a_bug_is_one_line_and_a_file_with_the_traceback(serve: Serve, home: Path, project: Path) -> None:
    done = broken(serve, project, "go", error="ValueError('a line\\nand another')")

    (kept,) = (home / ".harness").glob("bug-*.txt")
    line = done.stderr.splitlines()[-1]
    expected = "hs: This is a bug in hs: ValueError: a line and another."
    assert (done.returncode, line) == (70, f"{expected} Please report it with {kept}.")
    assert "Traceback" not in done.stderr
    assert "Traceback" in kept.read_text(encoding="utf-8")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_last_event_tells_of_a_bug(serve: Serve, project: Path) -> None:
    done = broken(serve, project, "-p", "--json", "go", error="KeyError('x')")

    last = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, last["type"], last["stop"]) == (70, "result", "error")
    assert "bug in hs: KeyError" in last["error"]
    assert last["session"]


def test_where_it_cannot_be_kept_the_traceback_is_shown(serve: Serve, project: Path) -> None:
    spoil = "__import__('os').environ.update(HARNESS_HOME='/dev/null/nowhere')"

    done = broken(serve, project, "go", error=f"ValueError({spoil})")

    assert done.returncode == 70
    assert "with these lines:\nTraceback" in done.stderr


def test_what_the_system_refuses_is_no_bug(serve: Serve, home: Path, project: Path) -> None:
    done = broken(serve, project, "go", error="OSError(24, 'Too many open files', '/some/file')")

    assert (done.returncode, list((home / ".harness").glob("bug-*"))) == (7, [])
    assert done.stderr.splitlines()[-1] == "hs: The system said: Too many open files (/some/file)."
