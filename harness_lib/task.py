"""The nouns: what a task list is made of, in the field names of the protocol.

All values are frozen; a change is `_replace`, so an object that is still the same object has not changed.
`extra` holds keys this version does not know; they survive every write.
The records stand in `harness_lib/records/`, each field once; everybody takes them from here.
"""

from __future__ import annotations

from typing import Literal

from harness_lib.records.attempt import (
    CATEGORIES,
    NO_EXTRA,
    Attempt,
    Category,
    Checkpoint,
    DoneAs,
    Excuse,
    Extra,
    Gate,
    Handback,
    Intent,
    Interruption,
    Merge,
    Outcome,
    Recheck,
    SentBack,
)
from harness_lib.records.task import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_TIMEOUT_SECONDS,
    HALT_KINDS,
    PRIORITIES,
    STATUSES,
    HaltKind,
    HeldOut,
    OnFailure,
    Priority,
    Source,
    Status,
    Task,
    Validation,
)
from harness_lib.records.task_list import MODES, VERSION, KeptPlan, Mode, Session, SessionConfig, State

# Why there is nothing to go on with, from the rule that finds it to the reply that says so.
StopReason = Literal["done", "recheck_failed", "blocked", "waiting", "max_tasks_per_session", "max_sessions"]
# Why an unattended run has ended before that.
RunStop = Literal["interrupted", "limit", "stuck"]
LogType = Literal[
    "INIT", "Starting", "Completed", "ERROR", "CHECKPOINT", "ROLLBACK", "RECOVERY", "STATS", "LOCK", "WARN"
]
