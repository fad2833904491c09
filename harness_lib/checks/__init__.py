"""Make the check of a task; the only module that knows the kinds of checks.

All code that runs, trusts or fingerprints a check asks the result of `check_of`, so that a second kind
is a file beside `shell`, a line here and its field in `harness_lib/records/task.py`.
Standard library only: hooks read the list with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib import sha256
from harness_lib.checks.shell import ShellCheck

if TYPE_CHECKING:
    from harness_lib.checks.protocol import Check
    from harness_lib.task import Task


def check_of(task: Task) -> Check:
    """Return the check of `task`; for a task without a check, an empty one (`is_given` is false)."""
    asked = task.validation
    return ShellCheck(task.id, asked.command, asked.cwd, asked.timeout_seconds)


def held_out(task: Task) -> str:
    """Return what identifies the held-out check of `task` and who may read its result; "" without one."""
    asked = task.validation
    names = " with names" if asked.hidden_names else ""
    return f"{asked.hidden.sha256}{names}" if asked.hidden else ""


def fingerprint(task: Task) -> str:
    """Return the fingerprint of the check of `task`, with the held-out one if it has one."""
    seen, hidden = check_of(task).fingerprint(), held_out(task)
    return f"sha256:{sha256.digest(f'{seen} {hidden}'.encode())}" if hidden else seen
