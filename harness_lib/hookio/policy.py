"""Decide who is held and who is let go: pure functions of a situation and a payload.

The order of the questions in `stop` is the table of docs/design.md, "The Stop hook", row by row.
The texts are in `messages`.
"""

from __future__ import annotations

from harness_lib.hookio import messages
from harness_lib.hookio.situation import Answer

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lib.hookio.payload import Payload
    from harness_lib.hookio.situation import Kind, Situation
    from harness_lib.state.summary_shape import OpenSession, Summary, WorkingTask

PATIENCE = 8
UNREADABLE = "unreadable"
KEPT_BY_HARNESS = (
    "harness-tasks.json",
    "harness-tasks.json.bak",
    "harness-progress.txt",
    ".harness-active",
)


def stop(now: Situation, payload: Payload) -> Answer:
    """Return whether the agent may stop."""
    digest = now.digest
    # Copilot rings here for a subagent too, and then once more as SubagentStop.
    is_concerned = not payload.parent_agent_id and not _is_elsewhere(now)
    wakes, may_wake = payload.background()
    waits = is_concerned and may_wake and not wakes and not now.tally.waited
    if wakes or waits or not is_concerned:
        return Answer("allow", waits=waits)
    if now.trouble or digest is None:
        return _unreadable(now, payload)
    halt = _halt(now.mine, held(now))
    if halt:
        return Answer("allow", warning=messages.halted(halt, now.program))
    if not digest["work_remains"]:
        return Answer("allow", finished=True)
    spent = _spent(now)
    if spent or (digest["stop"] == "waiting" and not held(now)):
        # Others hold the rest, or a person must act: there is nothing that this agent could do.
        return Answer("allow", warning=messages.halted(spent, now.program) if spent else "")
    return _hold(now, "block", messages.stop(now, held(now)), _progress(now))


def subagent_start(now: Situation, payload: Payload) -> Answer:
    """Return what a subagent is told when it begins: which worker it is, where many share the list.

    A list for one session at a time knows it by the name of its parent, and another would be refused.
    """
    digest = now.digest
    if now.trouble or digest is None or digest["mode"] != "concurrent" or not digest["work_remains"]:
        return Answer("allow")
    if not _is_plain(payload.agent_id):
        return Answer("allow")
    return Answer("context", messages.subagent(now, payload.agent_id))


def subagent_stop(now: Situation, payload: Payload) -> Answer:
    """Return whether a subagent may stop: not while it holds a task."""
    if now.trouble or now.digest is None:
        return Answer("allow")
    if now.digest["sessions"] is None and payload.stop_hook_active:
        # As the prose has it, for the lists that it has made.
        return Answer("allow")
    working: Sequence[WorkingTask] = now.digest["in_progress"]
    if payload.names or now.workers:
        working = _claimed(working, (*payload.names, *now.workers))
    return _hold_with(now, "block", working, payload.agent_id or "subagent")


def teammate_idle(now: Situation, payload: Payload) -> Answer:
    """Return whether a teammate may idle: not while it holds a task or, where workers share, one waits."""
    digest = now.digest
    if now.trouble or digest is None:
        return Answer("allow")
    own = _claimed(digest["in_progress"], (*payload.names, *now.workers))
    halt = _halt(now.mine, own)
    if halt:
        return Answer("allow", warning=messages.halted(halt, now.program))
    shared = digest["mode"] == "concurrent" or digest["sessions"] is None
    waiting = [*digest["unproven"], *filter(None, [digest["next"]])]
    if not own and shared and waiting:
        return _hold(now, "keep", messages.stop(now, ()), f"waiting {waiting[0]['id']}")
    return _hold_with(now, "keep", own, "teammate")


def session_start(now: Situation, _payload: Payload) -> Answer:
    """Return what an agent is told when its session begins, goes on or was compacted."""
    if now.trouble or now.digest is None:
        return Answer("context", messages.repair(now))
    return Answer("context", messages.start(now, held(now) if now.mine else ()))


def pre_tool_use(now: Situation, edited: Sequence[str]) -> Answer:
    """Refuse to edit the list by hand; `edited` are paths relative to the state root.

    A list that is broken or made by the prose is edited by hand: there is no other way.
    """
    if now.trouble or now.digest is None or now.digest["sessions"] is None:
        return Answer("allow")
    hit = next((path for path in edited if path in KEPT_BY_HARNESS), None)
    return Answer("allow") if hit is None else Answer("deny", messages.deny(hit, now.program))


def beating(now: Situation, payload: Payload) -> str | None:
    """Return the worker whose lease this sign of life renews, or None."""
    digest = now.digest
    if now.trouble or digest is None or digest["mode"] != "concurrent":
        return None
    leased = (task for task in digest["in_progress"] if task["lease_expires_at"] is not None)
    own = _claimed(list(leased), (*payload.names, *now.workers))
    return str(own[0]["claimed_by"]) if own else None


def held(now: Situation) -> Sequence[WorkingTask]:
    """Return the tasks in progress that the caller's session works on; an exclusive list is all its own.

    In one that the prose made, what nobody is named for is everybody's, and all is where nobody has a name.
    """
    if now.digest is None:
        return ()
    working = now.digest["in_progress"]
    if now.digest["mode"] != "concurrent":
        return working
    if now.digest["sessions"] is not None:
        return _claimed(working, now.workers)
    return [task for task in working if not now.workers or task["claimed_by"] in (None, "", *now.workers)]


def _spent(now: Situation) -> str:
    """Return which limit ends the work on a list that the prose made, "" if none does.

    In one of ours the session itself says so: it is closed or halted.
    """
    digest = now.digest
    if digest is None or digest["sessions"] is not None:
        return ""
    if digest["sessions_spent"]:
        return "max_sessions"
    return "max_tasks_per_session" if 0 < counted_tasks(digest) <= now.attempted else ""


def counted_tasks(digest: Summary) -> int:
    """Return how many tasks a session of the prose may do, as far as that can be counted; 0 is no limit.

    Workers that share a list write the same number of a session, so theirs cannot be told apart.
    """
    is_one = digest["sessions"] is None and digest["mode"] != "concurrent" and digest["session_count"]
    return digest["max_tasks_per_session"] if is_one else 0


def _is_elsewhere(now: Situation) -> bool:
    """Return whether it is known that no session, or another agent's, works on the list."""
    return now.digest is not None and now.digest["sessions"] is not None and not now.mine


def _unreadable(now: Situation, payload: Payload) -> Answer:
    if payload.stop_hook_active or now.tally.progress == UNREADABLE:
        return Answer("allow", warning=messages.unreadable(now))
    return Answer("block", messages.repair(now), progress=UNREADABLE)


def _hold_with(now: Situation, kind: Kind, own: Sequence[WorkingTask], who: str) -> Answer:
    """Hold whoever has a task of its `own` that is not halted."""
    own = [task for task in own if not task["halt"]]
    if not own:
        return Answer("allow")
    return _hold(now, kind, messages.stop(now, own), f"{who} {_shape(own)}")


def _hold(now: Situation, kind: Kind, text: str, progress: str) -> Answer:
    """Hold, but not an agent that has been held PATIENCE times in a row without getting anywhere."""
    if now.tally.progress == progress and now.tally.blocks >= PATIENCE:
        return Answer("allow", warning=messages.released(PATIENCE, now.program), progress=progress)
    return Answer(kind, text, progress=progress)


def _claimed(tasks: Sequence[WorkingTask], names: Sequence[str]) -> Sequence[WorkingTask]:
    # A task that nobody is named for is nobody's.
    return [task for task in tasks if task["claimed_by"] and task["claimed_by"] in names]


def _is_plain(name: str) -> bool:
    """Return whether a shell takes `name` as it is."""
    return name.isascii() and name.translate(dict.fromkeys(map(ord, "-_.@:"), "")).isalnum()


def _halt(sessions: Sequence[OpenSession], own: Sequence[WorkingTask]) -> str:
    halts = (*(each.get("halt") for each in sessions), *(task["halt"] for task in own))
    return next(filter(None, halts), "")


def _progress(now: Situation) -> str:
    """Return what changes when this agent gets on: not by a beat, nor by what other workers do."""
    assert now.digest is not None
    if not now.mine:
        counts = now.digest["counts"]
        statuses = (counts["completed"], counts["failed"], counts["pending"], counts["in_progress"])
        return " ".join(map(str, (*statuses, counts["attempts"], counts["checkpoints"])))
    done = " ".join(f"{each['number']}:{each.get('finished_attempts', 0)}" for each in now.mine)
    return f"{done} {_shape(held(now))}"


def _shape(tasks: Sequence[WorkingTask]) -> str:
    return " ".join(f"{task['id']}/{task['attempts']}/{task['checkpoints']}" for task in tasks)
