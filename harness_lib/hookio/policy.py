"""Decide which agents are held and which may stop: pure functions of a hook context and a payload.

The order of the questions in `stop` is the table of docs/design.md, "The Stop hook", row by row.
The texts are in `messages`.
"""

from __future__ import annotations

from harness_lib.hookio import messages
from harness_lib.hookio.payload import Answer

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lib.hookio.facts import HookContext
    from harness_lib.hookio.payload import Kind, Payload
    from harness_lib.state.summary import OpenSession, Summary, WorkingTask

PATIENCE = 8
UNREADABLE = "unreadable"
KEPT_BY_HARNESS = (
    "harness-tasks.json",
    "harness-tasks.json.bak",
    "harness-progress.txt",
    ".harness-active",
)


def stop(context: HookContext, payload: Payload) -> Answer:
    """Return whether the agent may stop."""
    cache = context.cache
    # Copilot calls this for a subagent too, and then once more as SubagentStop.
    # Where no session is known to be the caller's, another agent works on the list, or none does.
    is_elsewhere = cache is not None and cache["sessions"] is not None and not context.mine
    is_concerned = not payload.parent_agent_id and not is_elsewhere and not payload.plans
    wakes, may_wake = payload.background()
    waits = is_concerned and may_wake and not wakes and not context.counter.waited
    if wakes or waits or not is_concerned:
        return Answer("allow", waits=waits)
    if context.trouble or cache is None:
        return _unreadable(context, payload)
    own = held(context)
    halt = _halt(context.mine, own)
    if halt:
        return Answer("allow", warning=messages.halted(halt, context.program))
    if not cache["work_remains"] and not _is_unverified(context):
        return Answer("allow", finished=True)
    spent = _spent(context) if cache["sessions"] is None else ""
    if spent or (cache["stop"] == "waiting" and not own):
        # Others hold the rest, or a human must act: this agent can do nothing.
        return Answer("allow", warning=messages.halted(spent, context.program) if spent else "")
    return _hold(context, "block", messages.stop(context, own), _progress(context, own))


def subagent_start(context: HookContext, payload: Payload) -> Answer:
    """Return what a subagent is told when it begins: which worker it is, where many share the list.

    In an exclusive list it works under the name of its parent, and another one would be refused.
    """
    cache = context.cache
    if context.trouble or cache is None or cache["mode"] != "concurrent" or not cache["work_remains"]:
        return Answer("allow")
    if not _is_plain(payload.agent_id):
        return Answer("allow")
    return Answer("context", messages.subagent(context, payload.agent_id))


def subagent_stop(context: HookContext, payload: Payload) -> Answer:
    """Return whether a subagent may stop: not while it holds a task."""
    if context.trouble or context.cache is None or payload.plans:
        return Answer("allow")
    if context.cache["sessions"] is None and payload.stop_hook_active:
        # As in the legacy protocol, for its lists.
        return Answer("allow")
    working: Sequence[WorkingTask] = context.cache["in_progress"]
    if payload.names or context.workers:
        working = _claimed(working, (*payload.names, *context.workers))
    return _hold_with(context, "block", working, payload.agent_id or "subagent")


def teammate_idle(context: HookContext, payload: Payload) -> Answer:
    """Return whether a teammate may idle: not while it holds a task or, where workers share, one waits."""
    cache = context.cache
    if context.trouble or cache is None or payload.plans:
        return Answer("allow")
    own = _claimed(cache["in_progress"], (*payload.names, *context.workers))
    halt = _halt(context.mine, own)
    if halt:
        return Answer("allow", warning=messages.halted(halt, context.program))
    shared = cache["mode"] == "concurrent" or cache["sessions"] is None
    waiting = [*cache["unproven"], *filter(None, [cache["next"]])]
    if not own and shared and waiting and (context.mine or not cache["sessions_spent"]):
        return _hold(context, "keep", messages.stop(context, ()), f"waiting {waiting[0]['id']}")
    return _hold_with(context, "keep", own, "teammate")


def session_start(context: HookContext) -> Answer:
    """Return what an agent is told when its session begins, goes on or was compacted."""
    if context.trouble or context.cache is None:
        return Answer("context", messages.repair(context))
    return Answer("context", messages.start(context, held(context) if context.mine else ()))


def pre_tool_use(context: HookContext, edited: Sequence[str]) -> Answer:
    """Refuse to edit the list by hand; `edited` are paths relative to the state root.

    A broken list and one of the legacy protocol are edited by hand: there is no other way.
    """
    if context.trouble or context.cache is None or context.cache["sessions"] is None:
        return Answer("allow")
    hit = next((path for path in edited if path in KEPT_BY_HARNESS), None)
    return Answer("allow") if hit is None else Answer("deny", messages.deny(hit, context.program))


def beating(context: HookContext, payload: Payload) -> str | None:
    """Return the worker whose lease this heartbeat renews, or None."""
    cache = context.cache
    if context.trouble or cache is None or cache["mode"] != "concurrent":
        return None
    leased = (task for task in cache["in_progress"] if task["lease_expires_at"] is not None)
    own = _claimed(list(leased), (*payload.names, *context.workers))
    return str(own[0]["claimed_by"]) if own else None


def held(context: HookContext) -> Sequence[WorkingTask]:
    """Return the tasks in progress that belong to the caller's session; in an exclusive list all of them.

    In a list of the legacy protocol, a task without a name belongs to every caller, and every task does to a
    caller without a name.
    """
    if context.cache is None:
        return ()
    working = context.cache["in_progress"]
    if context.cache["mode"] != "concurrent":
        return working
    if context.cache["sessions"] is not None:
        return _claimed(working, context.workers)
    return [
        task for task in working if not context.workers or task["claimed_by"] in (None, "", *context.workers)
    ]


def _spent(context: HookContext) -> str:
    """Return which limit ends the work on a list of the legacy protocol, "" if none does.

    In a list of harness the session itself is closed or halted.
    """
    cache = context.cache
    assert cache is not None
    if cache["sessions_spent"]:
        return "max_sessions"
    return "max_tasks_per_session" if 0 < counted_tasks(cache) <= context.attempted else ""


def counted_tasks(cache: Summary) -> int:
    """Return how many tasks a session of the legacy protocol may do, where they can be counted; 0: no limit.

    Workers that share a list write the same session number, so their tasks cannot be counted apart.
    """
    is_one = cache["sessions"] is None and cache["mode"] != "concurrent" and cache["session_count"]
    return cache["max_tasks_per_session"] if is_one else 0


def _unreadable(context: HookContext, payload: Payload) -> Answer:
    if payload.stop_hook_active or context.counter.progress == UNREADABLE:
        return Answer("allow", warning=messages.unreadable(context))
    return Answer("block", messages.repair(context), progress=UNREADABLE)


def _hold_with(context: HookContext, kind: Kind, own: Sequence[WorkingTask], who: str) -> Answer:
    """Hold an agent that has a task of its `own` that is not blocked on a human."""
    own = [task for task in own if not task["halt"]]
    if not own:
        return Answer("allow")
    return _hold(context, kind, messages.stop(context, own), f"{who} {_shape(own)}")


def _hold(context: HookContext, kind: Kind, text: str, progress: str) -> Answer:
    """Hold, but not an agent that has been held PATIENCE times in a row without progress."""
    if context.counter.progress == progress and context.counter.blocks >= PATIENCE:
        return Answer("allow", warning=messages.released(PATIENCE, context.program), progress=progress)
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
        halt, task = each.get("halt"), each.get("halt_task") or each.get("id")
        if halt:
            return f"{task}: {halt}" if task else str(halt)
    return ""


def _progress(context: HookContext, own: Sequence[WorkingTask]) -> str:
    """Return what changes when this agent makes progress: not by a heartbeat, nor by other workers."""
    assert context.cache is not None
    if not context.mine:
        counts = context.cache["counts"]
        statuses = (counts["completed"], counts["failed"], counts["pending"], counts["in_progress"])
        return " ".join(map(str, (*statuses, counts["attempts"], counts["checkpoints"])))
    done = [f"{each['number']}:{each.get('finished_attempts', 0)}" for each in context.mine]
    checked = f"{context.cache['rechecks']} " if context.must_check else ""
    return f"{' '.join(done)} {checked}{_shape(own)}"


def _is_unverified(context: HookContext) -> bool:
    """Return whether a completed task is red, or the final check is left; the legacy protocol has neither."""
    cache = context.cache
    is_red = cache is not None and cache["sessions"] is not None and bool(cache["red"])
    return is_red or context.must_check


def _shape(tasks: Sequence[WorkingTask]) -> str:
    return " ".join([f"{task['id']}/{task['attempts']}/{task['checkpoints']}" for task in tasks])
