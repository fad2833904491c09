"""A slip that would let an agent go, or lose an event of a run, is found by mypy before any test runs.

Each slip breaks one line of a copy of the library, and names the file in which mypy must say what of it.
All are made at once, in different places, so that mypy is asked once.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import CHECKOUT
from tests.run_to_end import run_to_end


class Slip(NamedTuple):
    """What is broken in which file, and what mypy says of it there, or in the file `place`."""

    file: str
    right: str
    wrong: str
    said: str
    place: str = ""


SLIPS = {
    "a key of the summary, where a hook reads it": Slip(
        "hookio/policy.py", 'cache["work_remains"]', 'cache["work_remain"]', 'no key "work_remain"'
    ),
    "a key of the summary, where it is made": Slip(
        "state/summary.py", '"sessions_spent":', '"session_spent":', 'Missing key "sessions_spent"'
    ),
    "a key of a task in the summary": Slip(
        "hookio/policy.py", 'task["claimed_by"] in names', 'task["claimed"] in names', 'no key "claimed"'
    ),
    "a field of an event, where it is told": Slip(
        "runs/agent_attempt.py",
        "Stepped(step, until.timestamp(), why)",
        "Stepped(step, why, why)",
        'Argument 2 to "Stepped"',
    ),
    "a field of an event, where it is heard": Slip(
        "rules/run_state.py", "last=news.last", "last=news.line", 'no attribute "line"'
    ),
    "a step that nobody knows": Slip(
        "runs/agent_attempt.py", 'Stepped("merges")', 'Stepped("merge")', 'Argument 1 to "Stepped"'
    ),
    "a reason to stop without words": Slip(
        "task.py",
        '"max_sessions"]',
        '"max_sessions", "too_warm"]',
        "Missing return statement",
        place="core/stops.py",
    ),
    "an end of a run without words": Slip(
        "task.py",
        '"limit", "stuck"]',
        '"limit", "stuck", "cold"]',
        "incompatible type",
        place="runs/ending.py",
    ),
    "an ending of an attempt that costs nobody knows what": Slip(
        "rules/attempts.py",
        "class Cost",
        "    LOST = 'nobody has seen it'\n\n\nclass Cost",
        "Missing return statement",
    ),
    "an ending that there is not": Slip(
        "verbs/release.py", "Ending.RELEASED", "Ending.RELEASE", 'no attribute "RELEASE"'
    ),
    "a kind of halt that nobody handles": Slip(
        "records/task.py",
        '    "HUMAN",\n]',
        '    "HUMAN",\n    "LATE",\n]',
        "Missing return statement",
        place="rules/attempts.py",
    ),
    "a kind of halt that there is not": Slip(
        "runs/worker.py", '== "UNSTARTED"', '== "UNSTARTET"', "Non-overlapping equality check"
    ),
    "a check that cannot be asked for its commands": Slip(
        "checks/__init__.py",
        'def commands(self) -> tuple[tuple[str | None, str | None], ...]:\n        """Return the command and',
        'def command(self) -> tuple[tuple[str | None, str | None], ...]:\n        """Return the command and',
        "Incompatible return value",
    ),
    "a check that is asked for what it does not say": Slip(
        "checks/__init__.py", "check_of(task).fingerprint()", "check_of(task).hash()", 'no attribute "hash"'
    ),
    "a reason to stop that is misspelt": Slip(
        "rules/stats.py", 'return "waiting"', 'return "waits"', "Incompatible return value"
    ),
}


@pytest.mark.release
@pytest.mark.timeout(600)
def test_mypy_says_so(tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT / "harness_lib", tmp_path / "harness_lib")
    settings = (CHECKOUT / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(
        re.sub(r"^files = .*", 'files = ["harness_lib"]', settings, flags=re.MULTILINE)
    )
    for slip in SLIPS.values():
        file = tmp_path / "harness_lib" / slip.file
        whole = file.read_text()
        assert slip.right in whole, f"{slip.file} has no {slip.right!r} to break"
        file.write_text(whole.replace(slip.right, slip.wrong, 1))

    said = _complaints(tmp_path)

    unseen = [
        name
        for name, slip in SLIPS.items()
        if not any(
            line.startswith(f"harness_lib/{slip.place or slip.file}:") and slip.said in line for line in said
        )
    ]
    assert not unseen, said


def _complaints(top: Path) -> list[str]:
    """Return what mypy has to say of the library in `top`."""
    command = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--no-error-summary"]
    done = run_to_end(command, cwd=top, env={**os.environ, "MYPYPATH": str(top)})
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()
