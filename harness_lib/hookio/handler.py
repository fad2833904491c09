"""Answer one event: gather facts, decide, act on the decision, reply.

All effects of the hooks are here: notes in `.harness/`, lines in the log, the enable flag, a detached
heartbeat. None of them writes the list or runs a command from it.
Source: docs/design.md, "The Stop hook".
"""

from __future__ import annotations

import json
import os
import sys
import time

from harness_lib import agents, typed
from harness_lib.hookio import facts, payload, policy
from harness_lib.hookio.facts import HookContext
from harness_lib.hookio.payload import Answer, Payload
from harness_lib.system.place import data_home, find_root, own_files

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BEAT_SECONDS = 60
# A user who starts or resumes an agent has come back; compaction and `/clear` are the same turn of work.
_RETURNS = ("startup", "resume", "new")


def run(event: str, argv: Sequence[str], data: bytes, root: str, env: Mapping[str, str]) -> int:
    """Answer `event`, of which the host has sent `data`, for the list at `root`; return the exit code."""
    named = payload.named_host(argv, env)
    sent = Payload(event, payload.parse(data), named)
    if sent.event not in _ACTS:
        return 0
    hook = Hook(root, env, sent, " ".join([os.path.dirname(sys.argv[0]), *argv]), named)
    answer = _ACTS[sent.event](hook)
    if not answer.text:
        return 0
    document, talk, code = payload.speak(answer, sent.event, payload.host(named, env, sent))
    if talk:
        sys.stderr.write(f"{talk}\n")
    if document is not None:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    return code


class Hook:
    """The context of a hook before it has looked at the list."""

    def __init__(
        self, root: str, env: Mapping[str, str], sent: Payload, script: str, named: str = ""
    ) -> None:
        self.root = root
        self.named = named
        self.env = env
        self.payload = sent
        self.session_id = sent.session_id or facts.from_environment(env)
        # Agents without an id share one counter. Each installation that the host calls at an event keeps its
        # own, because all of them hear of the same stop.
        self.who = f"{self.session_id or 'nobody'} {script}"

    def context(self, who: str = "") -> HookContext:
        """Read the list, and the block counter of the agent `who` (default: none)."""
        cache, trouble = facts.read(self.root)
        own = facts.mine(cache["sessions"] if cache else None, self.session_id, self.env)
        facts.show(own, self.root, self.session_id)
        # An agent of the legacy protocol claims under HARNESS_WORKER_ID, and no other name distinguishes it.
        legacy = cache is not None and cache["sessions"] is None
        return HookContext(
            cache,
            mine=own,
            workers=facts.workers(own, "" if legacy else self.session_id, self.env),
            trouble=trouble,
            counter=facts.counter(self.root, who) if who else None,
            program=_program(self.env),
            root=self.root,
            shared=os.path.exists(os.path.join(self.root, find_root.PRIVATE_DIR, find_root.LINK)),
        )


def _program(env: Mapping[str, str]) -> str:
    """Return what to type for `harness`: its path as the page of the skill has it, through links, too.

    Claude Code lets commands run without asking that begin as the page says.
    """
    folder = os.path.dirname(os.path.dirname(sys.argv[0]))
    is_plugin = env.get("CLAUDE_PLUGIN_ROOT") and os.path.basename(os.path.dirname(folder)) != "skills"
    for place in (os.path.join(folder, "skills", "harness") if is_plugin else folder, folder):
        program = os.path.join(place, "bin", "harness")
        if os.path.realpath(program) == data_home.LAUNCHER:
            return os.path.abspath(program)
    return data_home.launcher() or "harness"


def _stop(hook: Hook) -> Answer:
    context = hook.context(hook.who)
    if context.cache is not None and policy.counted_tasks(context.cache):
        context.attempted = facts.attempted(hook.root, context.cache["session_count"])
    answer = policy.stop(context, hook.payload)
    if answer.kind == "block" and _is_woken(hook, context):
        return Answer("allow")
    if answer.kind == "block" and _is_away(hook):
        answer.text += f"\nNo verb finds the list from where you are. First: {typed.change_to(hook.root)}"
    return _follow_up(hook, hook.who, context, answer)


def _is_woken(hook: Hook, context: HookContext) -> bool:
    """Return whether a `finish` or final check of the caller runs, at whose end the host wakes it."""
    host = None if hook.named in agents.USUAL else agents.hooks(hook.named)
    if not host or not host.wakes:
        return False
    from pathlib import Path  # noqa: PLC0415 (few hosts do)

    from harness_lib.system import flock  # noqa: PLC0415
    from harness_lib.text import safe_name  # noqa: PLC0415

    logs = Path(hook.root, find_root.PRIVATE_DIR, "logs")
    # The final check has its lock beside the logs of the tasks.
    names = [safe_name(own["id"]) for own in policy.held(context)] or [""]
    return not all(flock.is_free(logs / name / "finish.lock") for name in names)


def _is_away(hook: Hook) -> bool:
    """Return whether verbs find no list where the agent is: they do not know where it was started."""
    if not os.path.isdir(hook.payload.cwd):
        return False
    found = find_root.search({**hook.env, "CLAUDE_PROJECT_DIR": ""}, hook.payload.cwd)
    return found is None or not os.path.samefile(found, hook.root)


def _subagent_start(hook: Hook) -> Answer:
    return policy.subagent_start(hook.context(), hook.payload)


def _subagent_stop(hook: Hook) -> Answer:
    who = f"{hook.who} {' '.join(hook.payload.names)}"
    context = hook.context(who)
    context.workers = facts.subagent_workers(context.mine, hook.env)
    answer = _follow_up(hook, who, context, policy.subagent_stop(context, hook.payload))
    if answer.kind == "allow":
        # No later event names it.
        facts.forget(hook.root, who)
    return answer


def _teammate_idle(hook: Hook) -> Answer:
    who = f"{hook.who} {' '.join(hook.payload.names)}"
    context = hook.context(who)
    return _follow_up(hook, who, context, policy.teammate_idle(context, hook.payload))


def _session_start(hook: Hook) -> Answer:
    if hook.session_id:
        own_files.remove_note(own_files.note_path(hook.root, "ended", hook.session_id))
    if hook.payload.source in _RETURNS:
        facts.forget(hook.root, hook.who)
    context = hook.context()
    if hook.payload.source == "fork":
        # It has an id of its own; every other name is its parent's.
        context.mine = [each for each in context.mine if each.get("agent_session_id") == hook.session_id]
        context.workers = [hook.session_id] if hook.session_id else []
    context.others = facts.living(context, hook.root, hook.session_id)
    return policy.session_start(context)


def _session_end(hook: Hook) -> Answer:
    context = hook.context()
    if hook.session_id and any(each.get("agent_session_id") == hook.session_id for each in context.mine):
        own_files.write_note(
            own_files.note_path(hook.root, "ended", hook.session_id), hook.payload.reason.encode()
        )
    facts.forget(hook.root, hook.who)
    own_files.remove_note(own_files.note_path(hook.root, "beats", hook.session_id))
    return Answer("allow")


def _pre_tool_use(hook: Hook) -> Answer:
    cwd = hook.payload.cwd or hook.env.get("HARNESS_CWD") or os.curdir
    edited = [os.path.join(cwd, path) for path in hook.payload.edited_paths()]
    edited = [path for path in edited if _can_be_a_path(path)]
    inside = [os.path.relpath(os.path.realpath(path), hook.root) for path in edited]
    if not any(path in policy.KEPT_BY_HARNESS for path in inside):
        return Answer("allow")
    return policy.pre_tool_use(hook.context(), inside)


def _can_be_a_path(text: str) -> bool:
    """Return whether `text` is a possible file name: a model may write anything, half a character too."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _post_tool_use(hook: Hook) -> Answer:
    note = own_files.note_path(hook.root, "beats", hook.session_id)
    last = own_files.written(note)
    if last is not None and 0 <= time.time() - last < BEAT_SECONDS:
        return Answer("allow")
    own_files.write_note(note, b"")
    worker = policy.beating(hook.context(), hook.payload)
    if worker is not None:
        from harness_lib.system.processes import child  # noqa: PLC0415 (once a minute)

        env = {**hook.env, "HARNESS_WORKER_ID": worker, "HARNESS_STATE_ROOT": hook.root}
        child.start(["/bin/sh", data_home.LAUNCHER, "beat"], env=env, cwd=hook.root)
    return Answer("allow")


def _follow_up(hook: Hook, who: str, context: HookContext, answer: Answer) -> Answer:
    if answer.warning and answer.warning != context.counter.warning:
        sys.stderr.write(f"WARN harness: {answer.warning}\n")
        answer.text = f"harness: {answer.warning}"
        _log(context, "WARN", answer.warning)
    if answer.finished:
        _finish(hook)
    facts.count(hook.root, who, context.counter, answer)
    return answer


def _finish(hook: Hook) -> None:
    """Remove the enable flag, as nothing is left to do."""
    from harness_lib.rules import stats  # noqa: PLC0415 (once for each list)

    # Read again, as hooks take no lock: a task may have been added and started just now.
    context = hook.context()
    if not policy.stop(context, hook.payload).finished or context.cache is None:
        return
    counts = context.cache["counts"]
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
        )
    )
    _log(context, "STATS", totals)
    own_files.remove_note(os.path.join(hook.root, find_root.ENABLE_FLAG))


def _log(context: HookContext, kind: str, text: str) -> None:
    from pathlib import Path  # noqa: PLC0415 (hooks write to the log once in a while)

    from harness_lib.state import journal  # noqa: PLC0415
    from harness_lib.system.clock import SYSTEM  # noqa: PLC0415
    from harness_lib.system.place import roots  # noqa: PLC0415

    latest = context.cache["session_count"] if context.cache else 0
    session = context.mine[0]["number"] if context.mine else latest
    line = journal.line(kind, text, now=SYSTEM.now(), session=session)  # type: ignore[arg-type]
    journal.append(roots.Root(Path(context.root)).log, line)


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
