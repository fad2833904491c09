"""Read what hooks know beside the events: the list, their own small notes, and the sessions of the caller.

`HookContext` holds all of this together, as plain values.

The list is read from the status cache while nobody else has touched it, else from the list itself. A list
that was edited elsewhere is decoded once, and what was found is kept.
The notes are lost with `.harness/` without harm.
An agent session is recognised by the id that its host gives to hooks and to commands alike. It stays the same
in a sub-directory, in a worktree, resumed and compacted; a fork has an id of its own.
Source: docs/design.md, "The summary", "Reading is strict", "Sessions and owners" and "The Stop hook".
"""

from __future__ import annotations

import json
import os
import time

from harness_lib.state import summary
from harness_lib.system.place import find_root, own_files

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    from harness_lib.hookio.payload import Answer
    from harness_lib.state.summary import OpenSession, Summary
    from harness_lib.system.processes.owner import Owner

    class Foreign(TypedDict):
        """What was found out about an edited list; `stamp` is that of the list."""

        format: int
        stamp: summary.Stamp
        summary: Summary


FOREIGN = "foreign.json"
# A session has few lines, and the log may have grown to gigabytes.
_TAIL = 200_000


class BlockCounter:
    """How often an agent was held in a row, at which `progress`, and the last `warning` it was given.

    `waited`: it was let go for background work of an unknown kind; that is done once.
    """

    __slots__ = ("blocks", "progress", "waited", "warning")

    def __init__(
        self, progress: str = "", blocks: int = 0, warning: str = "", *, waited: bool = False
    ) -> None:
        self.waited = waited
        self.progress = progress
        self.blocks = blocks
        self.warning = warning


class HookContext:
    """The state of the list, seen by one agent session.

    `cache` is the status cache (`state.summary.build`), None if there is none. With `trouble`, the reason why
    the list cannot be read, it is the last one that harness wrote.
    `mine` are the open sessions of the caller, `others` those of agents that may still run (known when an
    agent starts), `workers` the names under which the caller may have claimed a task.
    `program` is what to type for `harness`, not quoted. `shared`: machines share the list. `attempted` is how
    many tasks the last session of the legacy protocol has completed or failed (known when an agent stops and
    they are limited).
    """

    __slots__ = (
        *("attempted", "cache", "counter", "mine", "others"),
        *("program", "root", "shared", "trouble", "workers"),
    )

    def __init__(
        self,
        cache: Summary | None,
        *,
        program: str,
        mine: Sequence[OpenSession] = (),
        workers: Sequence[str] = (),
        trouble: str = "",
        counter: BlockCounter | None = None,
        root: str = "",
        shared: bool = False,
    ) -> None:
        self.cache = cache
        self.attempted = 0
        self.mine = mine
        self.others: Sequence[OpenSession] = ()
        self.workers = workers
        self.trouble = trouble
        self.counter = counter or BlockCounter()
        self.program = program
        self.root = root
        self.shared = shared

    @property
    def must_check(self) -> bool:
        """Whether the caller's session has to run the final check of the list."""
        return any([each.get("final_check") for each in self.mine])  # noqa: C419 (a generator starts slower)


# -- the list


def read(root: str) -> tuple[Summary | None, str]:
    """Return (summary, "") of the list at `root`, or (the last summary we wrote, why it cannot be read)."""
    state = os.path.join(root, find_root.STATE_FILE)
    file = os.path.join(root, find_root.PRIVATE_DIR, "summary.json")
    cache: Summary | None = summary.read_stamped(state, file)
    if cache is not None:
        return cache, ""
    kept: Foreign | None = summary.read_stamped(state, _foreign(root))
    cache, trouble = _decoded(root) if kept is None else (kept["summary"], "")
    return (cache, "") if cache is not None else (summary.last(file), trouble)


def _decoded(root: str) -> tuple[Summary | None, str]:
    from pathlib import Path  # noqa: PLC0415 (all of this takes longer than the whole hook otherwise)

    from harness_lib.errors import HarnessError  # noqa: PLC0415
    from harness_lib.state import load  # noqa: PLC0415
    from harness_lib.system.clock import SYSTEM  # noqa: PLC0415
    from harness_lib.system.place.roots import Root  # noqa: PLC0415

    try:
        loaded = load.find(Root(Path(root)))
    except HarnessError as error:
        return None, error.message
    cache = summary.build(loaded.state, SYSTEM.now())
    if loaded.stamp is not None and loaded.source is None:
        _keep_foreign(root, loaded.stamp, cache)
    return cache, ""


def _keep_foreign(root: str, stamp: summary.Stamp, cache: Summary) -> None:
    """Keep what was found for as long as the list has this `stamp`.

    This is not the status cache: that one says that the list is as we wrote it.
    """
    kept: Foreign = {"format": summary.FORMAT, "stamp": stamp, "summary": cache}
    try:
        own_files.write_note(_foreign(root), json.dumps(kept).encode())
    except OSError:
        # The next hook decodes the list again.
        return


def _foreign(root: str) -> str:
    return os.path.join(root, find_root.PRIVATE_DIR, FOREIGN)


# -- how often an agent was held without progress


def counter(root: str, who: str) -> BlockCounter:
    """Return how often the agent session (or subagent) `who` was held."""
    try:
        kept = json.loads(own_files.read_note(own_files.note_path(root, "stops", who)))
    except (ValueError, RecursionError):
        return BlockCounter()
    if not isinstance(kept, dict):
        return BlockCounter()
    blocks = kept.get("blocks")
    return BlockCounter(
        str(kept.get("progress", "")),
        blocks if type(blocks) is int else 0,
        str(kept.get("told", "")),
        waited=kept.get("waited") is True,
    )


def count(root: str, who: str, last: BlockCounter, answer: Answer) -> None:
    """Count `answer` for the agent `who`, whose counter was `last`."""
    if not answer.progress and not answer.warning and not answer.waits:
        return
    same = answer.waits or answer.progress == last.progress
    counted = {
        "progress": answer.progress or last.progress,
        "blocks": (last.blocks if same else 0) + (answer.kind in ("block", "keep")),
        "waited": last.waited or answer.waits,
        "told": answer.warning or (last.warning if same else ""),
    }
    own_files.write_note(own_files.note_path(root, "stops", who), json.dumps(counted).encode())


def forget(root: str, who: str) -> None:
    """Start the count of `who` again: it has come back, or left."""
    own_files.remove_note(own_files.note_path(root, "stops", who))


# -- the log of an agent that follows the legacy protocol and writes nothing else


def attempted(root: str, session: int) -> int:
    """Return how many tasks `session` has completed or failed, by the last lines of the log at `root`."""
    tag = f"[SESSION-{session}]"
    try:
        data = own_files.tail(os.path.join(root, find_root.LOG_FILE), _TAIL)
    except OSError:
        # Missing or unreadable: nothing is counted.
        return 0
    lines = data.decode("utf-8", "replace").splitlines()
    return sum(tag in line and _ends_an_attempt(line) for line in lines)


def _ends_an_attempt(line: str) -> bool:
    # An error without a task comes from the environment.
    return " Completed [" in line or (" ERROR [" in line and "[task-" in line)


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

    if context.cache is None:
        return []
    others = [each for each in context.cache["sessions"] or () if each not in context.mine]
    now, ahead = time.time(), context.cache["ahead"]
    return [each for each in others if owner.may_live(root, owner.Record.of(each, ahead), session_id, now)]


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
