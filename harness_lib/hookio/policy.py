"""Decide which agents are held and which may stop: pure functions of a situation and a payload.

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


def stop(situation: Situation, payload: Payload) -> Answer:
    """Return whether the agent may stop."""
    digest = situation.digest
    # Copilot calls this for a subagent too, and then once more as SubagentStop.
    # Where no session is known to be the caller's, another agent works on the list, or none does.
    is_elsewhere = digest is not None and digest["sessions"] is not None and not situation.mine
    is_concerned = not payload.parent_agent_id and not is_elsewhere
    wakes, may_wake = payload.background()
    waits = is_concerned and may_wake and not wakes and not situation.tally.waited
    if wakes or waits or not is_concerned:
        return Answer("allow", waits=waits)
    if situation.trouble or digest is None:
        return _unreadable(situation, payload)
    own = held(situation)
    halt = _halt(situation.mine, own)
    if halt:
        return Answer("allow", warning=messages.halted(halt, situation.program))
    if not digest["work_remains"] and not _is_unverified(situation):
        return Answer("allow", finished=True)
    spent = _spent(situation) if digest["sessions"] is None else ""
    if spent or (digest["stop"] == "waiting" and not own):
        # Others hold the rest, or a human must act: this agent can do nothing.
        return Answer("allow", warning=messages.halted(spent, situation.program) if spent else "")
    return _hold(situation, "block", messages.stop(situation, own), _progress(situation, own))


def subagent_start(situation: Situation, payload: Payload) -> Answer:
    """Return what a subagent is told when it begins: which worker it is, where many share the list.

    In an exclusive list it works under the name of its parent, and another one would be refused.
    """
    digest = situation.digest
    if situation.trouble or digest is None or digest["mode"] != "concurrent" or not digest["work_remains"]:
        return Answer("allow")
    if not _is_plain(payload.agent_id):
        return Answer("allow")
    return Answer("context", messages.subagent(situation, payload.agent_id))


def subagent_stop(situation: Situation, payload: Payload) -> Answer:
    """Return whether a subagent may stop: not while it holds a task."""
    if situation.trouble or situation.digest is None:
        return Answer("allow")
    if situation.digest["sessions"] is None and payload.stop_hook_active:
        # As in the legacy protocol, for its lists.
        return Answer("allow")
    working: Sequence[WorkingTask] = situation.digest["in_progress"]
    if payload.names or situation.workers:
        working = _claimed(working, (*payload.names, *situation.workers))
    return _hold_with(situation, "block", working, payload.agent_id or "subagent")


def teammate_idle(situation: Situation, payload: Payload) -> Answer:
    """Return whether a teammate may idle: not while it holds a task or, where workers share, one waits."""
    digest = situation.digest
    if situation.trouble or digest is None:
        return Answer("allow")
    own = _claimed(digest["in_progress"], (*payload.names, *situation.workers))
    halt = _halt(situation.mine, own)
    if halt:
        return Answer("allow", warning=messages.halted(halt, situation.program))
    shared = digest["mode"] == "concurrent" or digest["sessions"] is None
    waiting = [*digest["unproven"], *filter(None, [digest["next"]])]
    if not own and shared and waiting:
        return _hold(situation, "keep", messages.stop(situation, ()), f"waiting {waiting[0]['id']}")
    return _hold_with(situation, "keep", own, "teammate")


def session_start(situation: Situation, _payload: Payload) -> Answer:
    """Return what an agent is told when its session begins, goes on or was compacted."""
    if situation.trouble or situation.digest is None:
        return Answer("context", messages.repair(situation))
    return Answer("context", messages.start(situation, held(situation) if situation.mine else ()))


def pre_tool_use(situation: Situation, edited: Sequence[str]) -> Answer:
    """Refuse to edit the list by hand; `edited` are paths relative to the state root.

    A broken list and one of the legacy protocol are edited by hand: there is no other way.
    """
    if situation.trouble or situation.digest is None or situation.digest["sessions"] is None:
        return Answer("allow")
    hit = next((path for path in edited if path in KEPT_BY_HARNESS), None)
    return Answer("allow") if hit is None else Answer("deny", messages.deny(hit, situation.program))


def beating(situation: Situation, payload: Payload) -> str | None:
    """Return the worker whose lease this heartbeat renews, or None."""
    digest = situation.digest
    if situation.trouble or digest is None or digest["mode"] != "concurrent":
        return None
    leased = (task for task in digest["in_progress"] if task["lease_expires_at"] is not None)
    own = _claimed(list(leased), (*payload.names, *situation.workers))
    return str(own[0]["claimed_by"]) if own else None


def held(situation: Situation) -> Sequence[WorkingTask]:
    """Return the tasks in progress that belong to the caller's session; in an exclusive list all of them.

    In a list of the legacy protocol, a task without a name belongs to every caller, and every task does to a
    caller without a name.
    """
    if situation.digest is None:
        return ()
    working = situation.digest["in_progress"]
    if situation.digest["mode"] != "concurrent":
        return working
    if situation.digest["sessions"] is not None:
        return _claimed(working, situation.workers)
    return [
        task
        for task in working
        if not situation.workers or task["claimed_by"] in (None, "", *situation.workers)
    ]


def _spent(situation: Situation) -> str:
    """Return which limit ends the work on a list of the legacy protocol, "" if none does.

    In a list of ours the session itself is closed or halted.
    """
    digest = situation.digest
    assert digest is not None
    if digest["sessions_spent"]:
        return "max_sessions"
    return "max_tasks_per_session" if 0 < counted_tasks(digest) <= situation.attempted else ""


def counted_tasks(digest: Summary) -> int:
    """Return how many tasks a session of the legacy protocol may do, where they can be counted; 0: no limit.

    Workers that share a list write the same session number, so their tasks cannot be counted apart.
    """
    is_one = digest["sessions"] is None and digest["mode"] != "concurrent" and digest["session_count"]
    return digest["max_tasks_per_session"] if is_one else 0


def _unreadable(situation: Situation, payload: Payload) -> Answer:
    if payload.stop_hook_active or situation.tally.progress == UNREADABLE:
        return Answer("allow", warning=messages.unreadable(situation))
    return Answer("block", messages.repair(situation), progress=UNREADABLE)


def _hold_with(situation: Situation, kind: Kind, own: Sequence[WorkingTask], who: str) -> Answer:
    """Hold an agent that has a task of its `own` that is not blocked on a human."""
    own = [task for task in own if not task["halt"]]
    if not own:
        return Answer("allow")
    return _hold(situation, kind, messages.stop(situation, own), f"{who} {_shape(own)}")


def _hold(situation: Situation, kind: Kind, text: str, progress: str) -> Answer:
    """Hold, but not an agent that has been held PATIENCE times in a row without progress."""
    if situation.tally.progress == progress and situation.tally.blocks >= PATIENCE:
        return Answer("allow", warning=messages.released(PATIENCE, situation.program), progress=progress)
    return Answer(kind, text, progress=progress)


def _claimed(tasks: Sequence[WorkingTask], names: Sequence[str]) -> Sequence[WorkingTask]:
    # A task without a name belongs to no caller.
    return [task for task in tasks if task["claimed_by"] and task["claimed_by"] in names]


def _is_plain(name: str) -> bool:
    """Return whether a shell takes `name` as it is."""
    return name.isascii() and name.translate(dict.fromkeys(map(ord, "-_.@:"), "")).isalnum()


def _halt(sessions: Sequence[OpenSession], own: Sequence[WorkingTask]) -> str:
    """Return why the work is blocked on a human, "" if it is not."""
    for each in (*sessions, *own):
        halt = each.get("halt")
        if halt:
            return str(halt)
    return ""


def _progress(situation: Situation, own: Sequence[WorkingTask]) -> str:
    """Return what changes when this agent makes progress: not by a heartbeat, nor by other workers."""
    assert situation.digest is not None
    if not situation.mine:
        counts = situation.digest["counts"]
        statuses = (counts["completed"], counts["failed"], counts["pending"], counts["in_progress"])
        return " ".join(map(str, (*statuses, counts["attempts"], counts["checkpoints"])))
    done = [f"{each['number']}:{each.get('finished_attempts', 0)}" for each in situation.mine]
    checked = f"{situation.digest['rechecks']} " if situation.must_check else ""
    return f"{' '.join(done)} {checked}{_shape(own)}"


def _is_unverified(situation: Situation) -> bool:
    """Return whether a completed task is red, or the final check is left; the legacy protocol has neither."""
    digest = situation.digest
    is_red = digest is not None and digest["sessions"] is not None and bool(digest["red"])
    return is_red or situation.must_check


def _shape(tasks: Sequence[WorkingTask]) -> str:
    return " ".join([f"{task['id']}/{task['attempts']}/{task['checkpoints']}" for task in tasks])
