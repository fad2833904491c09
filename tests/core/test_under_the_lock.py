"""A state change holds the locks for milliseconds: never while git, a check or an agent runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.run_to_end import run_to_end

# Every verb runs in one process whose locks are watched: a child started under them ends it.
PROGRAM = """
import os, shlex, sys
from harness_lib.cli.main import main
from harness_lib.system.state_lock import StateLock

held = []
enter, leave = StateLock.__enter__, StateLock.__exit__

def watched_enter(self):
    entered = enter(self)
    held.append(self)
    return entered

def watched_leave(self, *error):
    held.pop()
    return leave(self, *error)

def hook(event, args):
    if held and event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec"):
        os.write(2, f"under the lock: {args[1]!r}".encode())
        os._exit(73)

StateLock.__enter__, StateLock.__exit__ = watched_enter, watched_leave
sys.addaudithook(hook)
for line in sys.stdin.read().splitlines():
    words = shlex.split(line)
    if words[0] == "harness":
        assert main(words[1:]) in (0, 1, 9), line
    else:
        os.system(line)
"""

PLAN = """\
harness init
harness add one --validate 'test -f one' --protect 'README*'
harness add two --validate 'test -f two' --cleanup 'true' --max-attempts 1
harness add three --depends-on task-001 --validate 'true'
harness edit task-003 --title three!
harness start
harness claim
touch one
harness checkpoint task-001 1/1 made
harness finish
harness claim
touch junk
harness finish
harness retry task-002
harness claim
harness release
harness add four
harness remove task-004
harness claim
harness fail task-002 --message no
harness stop
harness status
"""


@pytest.mark.parametrize("mode", ["concurrent", *for_release("exclusive")])
def test_no_process_is_started_under_the_lock(repo: Path, mode: str) -> None:
    """The whole life of a list, and not one child while its lock is held."""
    plan = PLAN.replace("harness init", f"harness init --mode {mode}")

    done = run_to_end(
        [sys.executable, "-c", PROGRAM], cwd=repo, env={**os.environ, "HARNESS_WORKER_ID": "w"}, stdin=plan
    )

    assert done.returncode == 0, done.stderr
    assert "three!" in done.stdout
