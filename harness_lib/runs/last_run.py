"""What is said of the last run where it left work: that it was killed, or what it lacked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness_lib.core import sessions
from harness_lib.core.context import Context
from harness_lib.state.api import Questions

RUN = "harness run"
_LACKED = re.compile(r"\[SESSION-(\d+)\] ERROR \[(?:ENV_SETUP|CONFIG)\] the run ended: (.*)")


def lacked(questions: Questions, log: Sequence[str]) -> list[str]:
    """Return what a person must see to before a run goes on, as the end of the `log` says.

    Nothing if another session was opened since, or no work is left.
    """
    matches = [match for line in log if (match := _LACKED.search(line))]
    if not matches or int(matches[-1][1]) != questions.session_count or not questions.work_remains():
        return []
    return [f"the last run ended: {matches[-1][2].removesuffix('.')}; then: {RUN}"]


def goes_on(ctx: Context, questions: Questions, log: Sequence[str]) -> bool:
    """Return whether another run goes on with what the last one has left."""
    killed = any(sessions.was_killed_run(each, ctx) for each in questions.sessions())
    return killed or bool(lacked(questions, log))
