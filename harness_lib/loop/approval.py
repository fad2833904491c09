"""Decide whether a call may run: by the setting, by earlier answers of the user, or by asking.

auto: no question is asked. ask: before everything that does not only read. read-only: nothing else runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.errors import ConfigError
from harness_lib.loop import asking, permissions, trust
from harness_lib.loop.asking import Question, Said, always_about

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

MODES = ("auto", "ask", "read-only")


def mode(runtime: Runtime) -> str:
    """Return the mode: the run's option, else the most local setting, else the default of the command."""
    chosen = runtime.env.get("HARNESS_APPROVE") or trust.setting(runtime, "approve") or runtime.approve
    if chosen not in MODES:
        message = f"approve={chosen} must be one of {', '.join(MODES)}"
        raise ConfigError(message, "It stands in HARNESS_APPROVE or in a settings.conf.")
    return chosen


def put(runtime: Runtime, question: Question) -> Said:
    """Ask the user of the outermost hs; without one, the answer is no."""
    known: set[str] = runtime.kept.setdefault("approved", set())
    subject = always_about(question)
    if subject and subject in known:
        return Said(allowed=True)
    address = runtime.env.get(asking.VARIABLE)
    if runtime.asker is not None:
        answer = runtime.asker(question)
    elif address:
        answer = asking.over(address, question)
    else:
        why = f": {question.reason}" if question.reason else ""
        return Said(allowed=False, reason=f"the user has to be asked, and there is none here{why}")
    if answer.allowed and answer.always and subject:
        known.add(subject)
        if answer.kept and (rule := asking.rule_for(question)):
            try:
                permissions.allow(runtime, rule)
            except (ConfigError, OSError) as error:
                runtime.notice(f"the rule {rule} is not saved: {error}")
    return answer
