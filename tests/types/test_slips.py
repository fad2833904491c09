"""A slip that would let an agent go, or lose an event of a run, is found by mypy before any test runs.

Each case breaks one line of a copy of the library and names what mypy must complain of.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Slip:
    """What is broken where, and what mypy says of it."""

    file: str
    right: str
    wrong: str
    said: str


SLIPS = {
    "a key of the summary, where a hook reads it": Slip(
        "hookio/policy.py", 'digest["work_remains"]', 'digest["work_remain"]', "work_remain"
    ),
    "a key of the summary, where it is made": Slip(
        "state/summary.py", '"sessions_spent":', '"session_spent":', "sessions_spent"
    ),
    "a key of a task in the summary": Slip(
        "hookio/policy.py", 'task["claimed_by"] in names', 'task["claimed"] in names', "claimed"
    ),
    "a field of an event, where it is told": Slip(
        "runs/agent_retries.py",
        "Stepped(step, until.timestamp(), why)",
        "Stepped(step, why, why)",
        "incompatible",
    ),
    "a field of an event, where it is heard": Slip(
        "rules/run_state.py", "last=news.last", "last=news.line", 'no attribute "line"'
    ),
    "a step that nobody knows": Slip(
        "runs/agent_attempt.py", 'Stepped("merges")', 'Stepped("merge")', "incompatible"
    ),
    "a reason to stop without words": Slip(
        "task.py", '"max_sessions"]', '"max_sessions", "too_warm"]', "Missing return statement"
    ),
    "an end of a run without words": Slip(
        "task.py", '"limit", "stuck"]', '"limit", "stuck", "cold"]', "incompatible type"
    ),
    "an ending of an attempt that costs nobody knows what": Slip(
        "rules/endings.py",
        "class Cost",
        "    LOST = 'nobody has seen it'\n\n\nclass Cost",
        "Missing return statement",
    ),
    "an ending that there is not": Slip(
        "verbs/release.py", "Ending.RELEASED", "Ending.RELEASE", 'no attribute "RELEASE"'
    ),
    "a kind of halt that nobody handles": Slip(
        "records/task.py",
        '"UNSTARTED", "SPENT"]',
        '"UNSTARTED", "SPENT", "LATE"]',
        "Missing return statement",
    ),
    "a kind of halt that there is not": Slip(
        "runs/worker.py", '== "UNSTARTED"', '== "UNSTARTET"', "Non-overlapping equality check"
    ),
    "a check that cannot be asked for its commands": Slip(
        "checks/shell.py", "def commands(self)", "def command(self)", "Incompatible return value"
    ),
    "a check that is asked for what it does not say": Slip(
        "attempts/baseline.py", "check_of(task).fingerprint()", "check_of(task).hash()", 'no attribute "hash"'
    ),
    "a reason to stop that is misspelt": Slip(
        "rules/stopping.py", 'return "waiting"', 'return "waits"', "Incompatible return value"
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the library that mypy has found nothing against."""
    top = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "harness_lib", top / "harness_lib", ignore=shutil.ignore_patterns("__pycache__"))
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (top / "pyproject.toml").write_text(
        settings.replace('files = ["harness_lib", "tests"]', 'files = ["harness_lib"]'), encoding="utf-8"
    )
    assert complaints(top) == ""
    return top


def complaints(top: Path) -> str:
    """Return what mypy has to say of the library in `top`; "" if nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(top / "cache"), "--no-error-summary"],
        cwd=top,
        env={**os.environ, "MYPYPATH": str(top)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("slip", SLIPS.values(), ids=SLIPS)
def test_mypy_says_so(copy: Path, slip: Slip) -> None:
    broken = copy / "harness_lib" / slip.file
    whole = broken.read_text(encoding="utf-8")
    assert slip.right in whole, f"{slip.file} has no {slip.right!r} to break"
    broken.write_text(whole.replace(slip.right, slip.wrong, 1), encoding="utf-8")
    try:
        assert re.search(re.escape(slip.said), complaints(copy))
    finally:
        broken.write_text(whole, encoding="utf-8")
