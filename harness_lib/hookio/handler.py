"""One visit of a hook: gather, decide, do what follows, answer.

Here are all effects of the hooks: notes in `.harness/`, lines in the log, the marker, a detached beat. None
of them writes the list or runs a command that stands in it.
Source: docs/design.md, "The Stop hook".
"""

from __future__ import annotations

import json
import os
import sys
import time

from harness_lib.hookio import dialect, facts, identity, payload, policy, prose_log, stop_counter
from harness_lib.hookio.payload import Payload
from harness_lib.hookio.situation import Answer, Situation
from harness_lib.system.place import checkout, find_root, session_notes

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BEAT_SECONDS = 60
# Whoever starts or resumes an agent has come back; compaction and `/clear` are the same turn of work.
_RETURNS = ("startup", "resume", "new")


def run(event: str, argv: Sequence[str], data: bytes, root: str, env: Mapping[str, str]) -> int:
    """Answer `event`, of which the host has sent `data`, for the list at `root`; return the exit code."""
    sent = payload.read(event, data)
    if sent.event is None or sent.event not in _ACTS:
        return 0
    visit = Visit(root, env, sent, " ".join([os.path.dirname(sys.argv[0]), *argv]))
    answer = _ACTS[sent.event](visit)
    if answer.kind == "allow":
        return 0
    document, talk, code = dialect.speak(answer, sent.event, dialect.host(argv, env, sent))
    if talk:
        sys.stderr.write(f"{talk}\n")
    if document is not None:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    return code


class Visit:
    """What a hook knows before it has looked at the list."""

    def __init__(self, root: str, env: Mapping[str, str], sent: Payload, bell: str) -> None:
        self.root = root
        self.env = env
        self.payload = sent
        self.session_id = identity.caller(sent, env)
        # Whose tally it is: agents without an id share one. Each installation that the host rings at an event
        # keeps its own, because all of them hear of the same stop.
        self.who = f"{self.session_id or 'nobody'} {bell}"

    def situation(self, who: str = "", *, thorough: bool = False) -> Situation:
        """Look at the list, and at what is known about the agent `who` (default: nothing)."""
        digest, trouble = facts.read(self.root, self.env, thorough=thorough)
        own = identity.mine(digest["sessions"] if digest else None, self.session_id, self.env)
        identity.show(own, self.root, self.session_id)
        # Who follows the prose claims under HARNESS_WORKER_ID, and no other name tells anybody apart.
        by_prose = digest is not None and digest["sessions"] is None
        return Situation(
            digest,
            mine=own,
            workers=identity.workers(own, "" if by_prose else self.session_id, self.env),
            trouble=trouble,
            tally=stop_counter.read(self.root, who) if who else None,
            program=_program(),
            root=self.root,
        )


def _stop(visit: Visit) -> Answer:
    situation = visit.situation(visit.who, thorough=True)
    if situation.digest is not None and policy.counted_tasks(situation.digest):
        situation.attempted = prose_log.attempted(visit.root, situation.digest["session_count"])
    return _follow_up(visit, visit.who, situation, policy.stop(situation, visit.payload))


def _subagent_start(visit: Visit) -> Answer:
    return policy.subagent_start(visit.situation(), visit.payload)


def _subagent_stop(visit: Visit) -> Answer:
    who = f"{visit.who} {' '.join(visit.payload.names)}"
    situation = visit.situation(who, thorough=True)
    situation.workers = identity.subagent_workers(situation.mine, visit.env)
    answer = _follow_up(visit, who, situation, policy.subagent_stop(situation, visit.payload))
    if answer.kind == "allow":
        # It is gone, and the end of its session will not tell what it was called.
        stop_counter.forget(visit.root, who)
    return answer


def _teammate_idle(visit: Visit) -> Answer:
    who = f"{visit.who} {' '.join(visit.payload.names)}"
    situation = visit.situation(who, thorough=True)
    return _follow_up(visit, who, situation, policy.teammate_idle(situation, visit.payload))


def _session_start(visit: Visit) -> Answer:
    if visit.session_id:
        session_notes.remove(session_notes.path(visit.root, "ended", visit.session_id))
    if visit.payload.source in _RETURNS:
        stop_counter.forget(visit.root, visit.who)
    situation = visit.situation(thorough=True)
    if visit.payload.source == "fork":
        # It has an id of its own, and what names it beside that is its parent's.
        situation.mine = [each for each in situation.mine if each.get("agent_session_id") == visit.session_id]
        situation.workers = [visit.session_id] if visit.session_id else []
    situation.others = identity.living(situation, visit.root, visit.session_id)
    return policy.session_start(situation, visit.payload)


def _session_end(visit: Visit) -> Answer:
    situation = visit.situation()
    if visit.session_id and any(each.get("agent_session_id") == visit.session_id for each in situation.mine):
        session_notes.write(
            session_notes.path(visit.root, "ended", visit.session_id), visit.payload.reason.encode()
        )
    stop_counter.forget(visit.root, visit.who)
    session_notes.remove(session_notes.path(visit.root, "beats", visit.session_id))
    return Answer("allow")


def _pre_tool_use(visit: Visit) -> Answer:
    cwd = visit.payload.cwd or visit.env.get("HARNESS_CWD") or os.curdir
    edited = [os.path.join(cwd, path) for path in visit.payload.edited_paths()]
    edited = [path for path in edited if _can_be_a_path(path)]
    inside = [os.path.relpath(os.path.realpath(path), visit.root) for path in edited]
    if not any(path in policy.KEPT_BY_HARNESS for path in inside):
        return Answer("allow")
    return policy.pre_tool_use(visit.situation(), inside)


def _can_be_a_path(text: str) -> bool:
    """Return whether a file could be called so: a model writes what it likes, half a character too."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _post_tool_use(visit: Visit) -> Answer:
    note = session_notes.path(visit.root, "beats", visit.session_id)
    last = session_notes.written(note)
    if last is not None and 0 <= time.time() - last < BEAT_SECONDS:
        return Answer("allow")
    session_notes.write(note, b"")
    worker = policy.beating(visit.situation(), visit.payload)
    if worker is not None:
        from harness_lib.system.processes import detached  # noqa: PLC0415 (once a minute)

        env = {**visit.env, "HARNESS_WORKER_ID": worker, "HARNESS_STATE_ROOT": visit.root}
        detached.start(["/bin/sh", checkout.LAUNCHER, "beat"], env=env, cwd=visit.root)
    return Answer("allow")


def _follow_up(visit: Visit, who: str, situation: Situation, answer: Answer) -> Answer:
    if answer.warning and answer.warning != situation.tally.warning:
        sys.stderr.write(f"WARN harness: {answer.warning}\n")
        _log(situation, "WARN", answer.warning)
    if answer.finished:
        _finish(visit)
    stop_counter.keep(visit.root, who, situation.tally, answer)
    return answer


def _finish(visit: Visit) -> None:
    """Take the marker down, as nothing is left to do."""
    from harness_lib.rules import stats  # noqa: PLC0415 (once for each list)

    # Looked at again, as hooks take no lock: somebody may have added a task and started just now.
    situation = visit.situation()
    if not policy.stop(situation, visit.payload).finished or situation.digest is None:
        return
    counts = situation.digest["counts"]
    totals = stats.render(
        stats.Counts(
            total=counts["total"],
            completed=counts["completed"],
            failed=counts["failed"],
            pending=counts["pending"],
            in_progress=counts["in_progress"],
            blocked=counts["blocked"],
            attempts=counts["attempts"],
            checkpoints=counts["checkpoints"],
            retryable=counts["retryable"],
            permanent=counts["failed"] - counts["retryable"],
        )
    )
    _log(situation, "STATS", totals)
    session_notes.remove(os.path.join(visit.root, find_root.MARKER))


def _log(situation: Situation, kind: str, text: str) -> None:
    from pathlib import Path  # noqa: PLC0415 (hooks write to the log once in a while)

    from harness_lib.state import journal  # noqa: PLC0415
    from harness_lib.system.clock import SYSTEM  # noqa: PLC0415
    from harness_lib.system.files import append_log  # noqa: PLC0415
    from harness_lib.system.place import roots  # noqa: PLC0415

    latest = situation.digest["session_count"] if situation.digest else 0
    session = situation.mine[0]["number"] if situation.mine else latest
    line = journal.line(kind, text, now=SYSTEM.now(), session=session)  # type: ignore[arg-type]
    append_log.append(roots.Root(Path(situation.root)).log, line)


def _program() -> str:
    """Return what to type for `harness`: the absolute path of the launcher beside us, if it is there."""
    return checkout.launcher() or "harness"


_ACTS = {
    "Stop": _stop,
    "SubagentStart": _subagent_start,
    "SubagentStop": _subagent_stop,
    "TeammateIdle": _teammate_idle,
    "SessionStart": _session_start,
    "SessionEnd": _session_end,
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
}
