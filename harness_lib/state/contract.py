"""The contract of harness-tasks.json as tables: which keys an object has, and what each may hold.

Standard library only. `schemas/harness-tasks.schema.json` publishes the same contract; tests compare the two.
Source: docs/protocol.md, "Progress Persistence"; docs/design.md, "On disk".
"""

from __future__ import annotations

from typing import Any

from harness_lib.state import shapes
from harness_lib.state.shapes import (
    Problem,
    Problems,
    Shape,
    amount,
    choice,
    flag,
    integer,
    items,
    moment,
    text,
)
from harness_lib.task import (
    CATEGORIES,
    MODES,
    PRIORITIES,
    STATUSES,
    VERSION,
    Attempt,
    Checkpoint,
    Gate,
    Handback,
    Intent,
    Interruption,
    OnFailure,
    Session,
    SessionConfig,
    State,
    Task,
    Validation,
)

TITLE_LIMIT = 1000
TEXT_LIMIT = 20000
NOTE_LIMIT = 2000
PATH_LIMIT = 4096
LONGEST_TIMEOUT = 366 * 24 * 3600

_string = text()
_long = text(TEXT_LIMIT)
_command = text(TEXT_LIMIT, shapes.COMMAND_PATTERN, "text that a shell can be given (no NUL character)")
_path = text(PATH_LIMIT, shapes.COMMAND_PATTERN, "a path (no NUL character)")
_revision = text(None, shapes.REVISION_PATTERN, "the name of a git object")
_id = text(
    None,
    shapes.ID_PATTERN,
    "1 to 100 characters without spaces, brackets and slashes, not beginning with a dot or a dash",
)

_VALIDATION = Shape(
    Validation,
    plain={"red_first": flag},
    nullable={
        "command": _command,
        "timeout_seconds": integer(1, LONGEST_TIMEOUT),
        "cwd": _path,
        "protect": items(text(PATH_LIMIT, shapes.COMMAND_PATTERN, "a pattern of paths", least=1)),
    },
)
_ON_FAILURE = Shape(OnFailure, nullable={"cleanup": _command})
_CHECKPOINT = Shape(
    Checkpoint,
    required={"step": integer(0), "total": integer(0)},
    nullable={"description": _long, "timestamp": moment, "tree": _revision},
)
_GATE = Shape(
    Gate,
    nullable={
        "command": _string,
        "cwd": _path,
        "protected": _revision,
        "judges": _revision,
        "before": _revision,
        "branch": _revision,
        "target": _revision,
    },
)
_HANDBACK = Shape(
    Handback,
    required={"reason": _string},
    plain={"rounds": integer(0)},
    nullable={"rescue": _revision, "base": _revision},
)
_INTERRUPTION = Shape(
    Interruption,
    plain={"checkpoints": integer(0), "times": integer(0)},
    nullable={"tree": _revision},
)
_ATTEMPT = Shape(
    Attempt,
    required={"number": integer(1)},
    plain={"fence": integer(0), "cost_usd": amount, "tokens": integer(0)},
    nullable={
        "outcome": choice("completed", "failed", "pending"),
        "started_at": moment,
        "ended_at": moment,
    },
)
_INTENT = Shape(
    Intent,
    required={"action": choice("commit", "rollback", "merge"), "at": moment},
    plain={"outcome": choice("failed", "pending")},
    nullable={
        "base": _revision,
        "head": _revision,
        "commit": _revision,
        "ref": _revision,
        "rescue": _revision,
        "category": choice(*CATEGORIES),
        "message": _string,
    },
)
TASK = Shape(
    Task,
    required={"id": _id, "status": choice(*STATUSES)},
    plain={
        "title": text(TITLE_LIMIT),
        "priority": choice(*PRIORITIES),
        "attempts": integer(0),
        "max_attempts": integer(1),
        "fence": integer(0),
        "interruptions": integer(0),
        "unproven": flag,
    },
    nullable={
        "depends_on": items(_string),
        "started_at_commit": _revision,
        "validation": _VALIDATION,
        "on_failure": _ON_FAILURE,
        "error_log": items(_string),
        "checkpoints": items(_CHECKPOINT),
        "completed_at": moment,
        "completed_commit": _revision,
        "description": _long,
        "claimed_by": _string,
        "claimed_at": moment,
        "lease_expires_at": moment,
        "worktree": _path,
        "gate": _GATE,
        "intent": _INTENT,
        "failed_at": moment,
        "halt": _string,
        "notes": items(text(NOTE_LIMIT)),
        "handback": _HANDBACK,
        "touched": items(text(PATH_LIMIT)),
        "attempted_by": items(_string),
        "interrupted": _INTERRUPTION,
        "attempt_log": items(_ATTEMPT),
        "proof": _string,
    },
)
SESSION = Shape(
    Session,
    required={"number": integer(0), "worker": _string, "host": _string},
    plain={"finished_attempts": integer(0)},
    nullable={
        "boot_id": _string,
        "pid": integer(1),
        "pid_started": _string,
        "agent_session_id": _string,
        "started_at": moment,
        "halt": _string,
    },
)


def _config(**known: Any) -> SessionConfig:
    # A limit that a file does not name is no limit, whatever `init` writes into a new one.
    return SessionConfig(**{"max_tasks_per_session": 0, "max_sessions": 0, **known})


_CONFIG = Shape(
    _config,
    plain={"concurrency_mode": choice(*MODES)},
    nullable={"max_tasks_per_session": integer(0), "max_sessions": integer(0)},
)


def _version(value: Any, path: str, problems: Problems) -> Any:
    if type(value) in (int, float) and value > VERSION:
        problems.append(Problem(path, f"is {shapes.show(value)}: made by a newer harness, upgrade this one"))
    elif type(value) not in (int, float) or value != VERSION:
        problems.append(Problem(path, f"is {shapes.show(value)}, must be {VERSION}"))
    return VERSION


def _state(**known: Any) -> State:
    return State(**{"session_config": _config(), **known})


STATE = Shape(
    _state,
    required={"tasks": items(TASK)},
    plain={"version": _version, "session_count": integer(0), "attempts_reset": integer(0), "proofs": flag},
    nullable={
        "created": moment,
        "session_config": _CONFIG,
        "last_session": moment,
        "sessions": items(SESSION),
        "proposals": items(TASK),
    },
)
