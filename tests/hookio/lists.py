"""Lists as hooks see them: in memory, where their decisions and words begin, and on disk for whole visits."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness_lib.hookio import facts, policy
from harness_lib.hookio.facts import BlockCounter, HookContext
from harness_lib.hookio.payload import Answer, Payload
from harness_lib.state import summary
from harness_lib.state.store import Store
from harness_lib.system.place import own_files
from harness_lib.system.place.roots import Root
from harness_lib.task import Checkpoint, Recheck, Session, SessionConfig, State, Task

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
LEASE = "2999-01-01T00:30:00Z"
ME, OTHER, BELL = "id-me", "id-other", "hooks"

SESSION = Session(3, "me", "host", agent_session_id=ME)
HALTED = SESSION._replace(halt="CONFIG: no check")
CHECKS = SESSION._replace(final_check=True)
PENDING = Task("a", "Title")
MINE = Task("a", "Title", status="in_progress", claimed_by="me", lease_expires_at=LEASE)
THEIRS = Task("b", status="in_progress", claimed_by="other", lease_expires_at=LEASE)
NOBODYS = Task("n", status="in_progress")
DONE = Task("d", status="completed")
RED = Task("r", "Red", status="completed", recheck=Recheck("abc", passed=False, at="T1"))
BUSY = Task("a", status="in_progress", claimed_by="me", attempts=2, checkpoints=(Checkpoint(1, 2),))
FAILED = Task("f", "Fix", status="failed", attempts=1, error_log=("[TEST_FAIL] 1 != 2",))
UNPROVEN = Task("u", "U", status="completed", unproven=True)
TORN = HookContext(None, trouble="torn", program="HARNESS")


# -- in memory


def ours(*tasks: Task, mine: bool = True, **fields: Any) -> HookContext:
    """Return how `tasks` look to the worker `me`, whose session is open unless said otherwise."""
    seen: dict[str, Any] = {
        name: fields.pop(name) for name in ("counter", "shared", "trouble", "workers") if name in fields
    }
    config = SessionConfig(fields.pop("mode", "exclusive"), max_sessions=fields.pop("most_sessions", 0))
    fields.setdefault("sessions", (SESSION,))
    state = State(tasks=tasks, session_config=config, **fields)
    cache = summary.build(state, NOW)
    own = [each for each in cache["sessions"] or () if mine and each["worker"] == "me"]
    seen.setdefault("workers", ["me"] if own else [])
    return HookContext(cache, mine=own, program="HARNESS", root="/p", **seen)


def legacy(
    *tasks: Task, most_sessions: int = 0, most_tasks: int = 0, attempted: int = 0, **fields: Any
) -> HookContext:
    """Return how a list that no command of ours has touched looks to the worker `me`."""
    mode = fields.pop("mode", "exclusive")
    config = SessionConfig(mode, max_tasks_per_session=most_tasks, max_sessions=most_sessions)
    state = State(tasks=tasks, session_config=config, session_count=fields.pop("session_count", 1))
    fields.setdefault("workers", ["me"])
    context = HookContext(summary.build(state, NOW), program="HARNESS", root="/p", **fields)
    context.attempted = attempted
    return context


def payload(event: str = "Stop", /, **fields: object) -> Payload:
    return Payload(event, fields)


def running(*kinds: object) -> dict[str, object]:
    """Return the fields of a payload whose agent has tasks of these kinds in the background."""
    return {"background_tasks": [{"type": kind, "status": "running"} for kind in kinds]}


def stop(context: HookContext, **fields: object) -> Answer:
    return policy.stop(context, payload("Stop", **fields))


def said(answer: Answer) -> tuple[str, str, str, str, bool, bool]:
    """Return all that an answer says, in the order of `allowed`."""
    return answer.kind, answer.text, answer.warning, answer.progress, answer.finished, answer.waits


def allowed(warning: str = "", progress: str = "", *, finished: bool = False, waits: bool = False) -> Any:
    return "allow", "", warning, progress, finished, waits


def own_tasks(context: HookContext, count: int) -> Any:
    """Return the first `count` tasks in progress, as the policy names them to whoever holds them."""
    assert context.cache is not None
    return context.cache["in_progress"][:count]


# -- on disk


def make(root: Root, *tasks: Task, mode: str = "exclusive", **fields: Any) -> None:
    """Make a list of harness, switched on, in which `me` works in session 3; no process stands for that."""
    root.state.unlink(missing_ok=True)
    fields.setdefault("sessions", (SESSION,))
    config = SessionConfig(mode)  # type: ignore[arg-type]
    assert Store(root, timeout=10).create(State(tasks=tasks, session_config=config, **fields)) == ()
    enable_flag(root).touch()


def by_hand(root: Root, *tasks: dict[str, object], **fields: object) -> None:
    """Make a list as the legacy protocol does."""
    root.state.write_text(json.dumps({"tasks": tasks, **fields}))
    enable_flag(root).touch()


def unreadable(root: Root, name: str) -> None:
    """Make the list no list at all, and let what was found out about it bear the new stamp."""
    before = root.state.stat()
    with root.state.open("r+b") as stream:
        stream.write(b"?" * before.st_size)
    os.utime(root.state, ns=(before.st_atime_ns, before.st_mtime_ns))
    place = root.path / ".harness" / name
    kept = json.loads(place.read_bytes())
    kept["stamp"][3] = root.state.stat().st_ctime_ns
    place.write_text(json.dumps(kept))


def enable_flag(root: Root) -> Path:
    return root.path / ".harness-active"


def log(root: Root) -> list[str]:
    if not root.log.exists():
        return []
    return [line.partition("] ")[2] for line in root.log.read_text().splitlines()]


def kept(root: Root, who: str = f"{ME} {BELL}") -> BlockCounter:
    return facts.counter(str(root.path), who)


def keep(root: Root, who: str = f"{ME} {BELL}", blocks: int = 1, progress: str = "p") -> None:
    """Let `who` have been held so often in a row at `progress`."""
    facts.count(str(root.path), who, BlockCounter(progress, blocks - 1), Answer("block", progress=progress))


def note(root: Root, kind: Any, session_id: str = ME) -> Path:
    return Path(own_files.note_path(str(root.path), kind, session_id))
