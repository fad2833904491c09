"""Make the check of a task: the one place that knows which kinds of checks there are.

Everybody who runs, trusts, fingerprints or misses a check asks what this gives them, so that a second kind
is a file beside `shell`, a line here and its field in `harness_lib/records/task.py`.
Standard library only: hooks read the list with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.checks.shell import ShellCheck

if TYPE_CHECKING:
    from harness_lib.checks.protocol import Check
    from harness_lib.task import Task


def check_of(task: Task) -> Check:
    """Return what decides whether `task` is done; one without a check has one that is not given."""
    return ShellCheck.of(task)
