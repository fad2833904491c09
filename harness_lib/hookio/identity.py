"""Tell which sessions belong to the caller: that decides whether an agent may be held.

An agent session is recognised by the id that its host gives to hooks and to commands alike. It stays the same
in a sub-directory, in a worktree, resumed and compacted; a fork has an id of its own.
Source: docs/design.md, "Sessions and owners" and "The Stop hook".
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lib.hookio.context import HookContext
    from harness_lib.state.summary_shape import OpenSession
    from harness_lib.system.processes.owner import Owner, Record


def from_environment(env: Mapping[str, str]) -> str:
    """Return the id of the agent session that a host puts into the environment, "" if it does not."""
    from harness_lib.system.processes import owner  # noqa: PLC0415 (most payloads have it)

    return owner.agent_session(env) or ""


def mine(
    sessions: Sequence[OpenSession] | None, session_id: str, env: Mapping[str, str]
) -> list[OpenSession]:
    """Return which of the open `sessions` belong to the agent session `session_id`.

    Without an id all of them do, as in the legacy protocol: nothing distinguishes the callers.
    """
    if not sessions:
        return []
    if not session_id:
        return list(sessions)
    own, nameless = [], []
    for each in sessions:
        name = each.get("agent_session_id")
        if not name:
            nameless.append(each)
        elif name == session_id:
            own.append(each)
    return own + (_of_this_process(nameless, env) if nameless else [])


def show(own: Sequence[OpenSession], root: str, session_id: str) -> None:
    """Note that an agent in a sandbox is alive: its process cannot be seen from outside."""
    if not session_id or not any(map(_is_sandboxed, own)):
        return
    from harness_lib.system.processes import owner  # noqa: PLC0415 (few agents are)

    owner.show_alive(root, session_id)


def _is_sandboxed(session: OpenSession) -> bool:
    namespace = str(session.get("boot_id") or "").partition("/")[2]
    if not session.get("pid"):
        return True
    try:
        return bool(namespace) and namespace != os.readlink("/proc/self/ns/pid")
    except OSError:
        return False


def living(context: HookContext, root: str, session_id: str) -> list[OpenSession]:
    """Return the open sessions of other callers whose agents may still run."""
    from harness_lib.system.processes import owner  # noqa: PLC0415 (once, when an agent begins)

    opened = context.cache["sessions"] or () if context.cache else ()
    others = [each for each in opened if each not in context.mine]
    return [each for each in others if owner.may_live(root, _record(each), session_id, time.time())]


def _record(session: OpenSession) -> Record:
    from harness_lib.system.processes import owner  # noqa: PLC0415 (see `living`)

    return owner.Record(
        host=str(session.get("host") or ""),
        boot_id=str(session.get("boot_id") or ""),
        pid=int(session.get("pid") or 0),
        pid_started=str(session.get("pid_started") or ""),
        agent_session_id=str(session.get("agent_session_id") or ""),
        started=owner.moment(session.get("started_at")),
    )


def workers(sessions: Sequence[OpenSession], session_id: str, env: Mapping[str, str]) -> list[str]:
    """Return the names under which the caller may have claimed a task, `sessions` being its own."""
    named = (*[str(each["worker"]) for each in sessions], env.get("HARNESS_WORKER_ID", ""), session_id)
    return list(filter(None, named))


def subagent_workers(sessions: Sequence[OpenSession], env: Mapping[str, str]) -> list[str]:
    """Return the names of a subagent besides those in its payload, `sessions` being its parent's.

    A subagent shares the environment of its parent, but not the parent's tasks.
    """
    named = env.get("HARNESS_WORKER_ID", "")
    return [named] if named and all(each["worker"] != named for each in sessions) else []


def _of_this_process(sessions: Sequence[OpenSession], env: Mapping[str, str]) -> list[OpenSession]:
    """Return those of `sessions` that belong to the process which runs this hook.

    They were opened where the host gives its commands no id (Copilot), or by a user.
    """
    from harness_lib.system.processes import owner  # noqa: PLC0415 (it reads every ancestor of this process)

    me = owner.current(env)
    return [each for each in sessions if each["worker"] == me.worker or _is_owner(each, me)]


def _is_owner(session: OpenSession, me: Owner) -> bool:
    recorded = (session.get("pid"), session.get("pid_started"), session.get("boot_id"), session.get("host"))
    return recorded == (me.pid, me.pid_started, me.boot_id, me.host)
