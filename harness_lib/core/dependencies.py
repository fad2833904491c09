"""Fail the tasks of a ring, and those behind a permanent failure, before every choice."""

from __future__ import annotations

from harness_lib.state.api import Tx


def record_blocked(tx: Tx, session: int) -> None:
    """Mark the tasks in a cycle and those behind a permanent failure as failed, and log each."""
    for finding in tx.validate_dependencies():
        tx.log("ERROR", finding.message, session=session, task=finding.task_id, category="DEPENDENCY")
