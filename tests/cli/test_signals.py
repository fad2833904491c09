"""Being asked to end: nothing is left running, and the next command goes on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.system.processes import process
from tests.waiting import number_in

if TYPE_CHECKING:
    from tests.conftest import Harness

# It tells its pid, ignores TERM, and would run for a minute.
CHECK = "trap '' TERM; echo $$ > {file}; sleep 60"


def test_a_terminated_finish_takes_its_check_with_it(harness: Harness, repo: Path, tmp_path: Path) -> None:
    """The time-out of an agent's tool ends `finish`; its check ends too, and the task is still held."""
    pid_file = tmp_path / "check-pid"
    me = {"HARNESS_WORKER_ID": "w"}
    harness("init")
    harness("add", "Wait", "--validate", CHECK.format(file=shlex.quote(str(pid_file))))
    harness("claim", env=me)
    with subprocess.Popen(
        [sys.executable, "-m", "harness_lib", "finish"],
        cwd=repo,
        env={**os.environ, **me},
        stderr=subprocess.PIPE,
        text=True,
    ) as finish:
        check = number_in(pid_file)
        finish.send_signal(signal.SIGTERM)
        _out, err = finish.communicate(timeout=200)

    assert finish.returncode == 128 + signal.SIGTERM
    assert "harness recover" in err
    assert not process.alive(check)
    assert harness("status", "--json", env=me).json["counts"]["in_progress"] == 1
