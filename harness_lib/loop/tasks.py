"""The bridge to the task list: tell the session about it, and hold the session until its tasks are done.

No tool may change the files of the list, and a session at work sends heartbeats.
The hooks of harness decide, as for every other host; they run as a program of their own. Without an active
list, these hooks only look for one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from harness_lib.loop import disk, plugins, processes
from harness_lib.loop.piped import Json, as_object, dumps
from harness_lib.loop.runtime import Runtime, once
from harness_lib.loop.session import CONVERSATION
from harness_lib.system.install import launcher
from harness_lib.system.place import find_root

# How often the hook itself passes on a heartbeat.
_BEAT_SECONDS = 60.0
_PATH = 4096
_KEPT_BY_HARNESS = (find_root.STATE_FILE, find_root.BACKUP_FILE, find_root.LOG_FILE, find_root.ENABLE_FLAG)


def begin(runtime: Runtime, payload: Json) -> Json:
    """Tell the model once about the active list of this project."""
    if not runtime.kept.get("told of tasks"):
        runtime.kept["told of tasks"] = True
        source = "startup" if runtime.first <= 1 else "resume"
        answer = _ring(runtime, "SessionStart", {"source": source}) or {}
        text = (answer.get("hookSpecificOutput") or {}).get("additionalContext")
        if isinstance(text, str) and text.strip():
            runtime.session.append("user", {}, text)
    return payload


def hold(runtime: Runtime, payload: Json) -> Json:
    """Let the turn end, or continue it with the reason why it must not end yet."""
    answer = _ring(runtime, "Stop", {"stop_hook_active": bool(runtime.kept.get("held"))}) or {}
    reason = answer.get("reason")
    if answer.get("decision") != "block" or not isinstance(reason, str):
        runtime.kept["held"] = False
        return payload
    runtime.kept["held"] = True
    runtime.log(f"hs: held: {reason.splitlines()[0] if reason else ''}")
    runtime.stream.emit("held", reason=reason)
    runtime.session.append("user", {}, reason)
    return {"next_state": "assemble"}


def guard(runtime: Runtime, call: Json) -> Json:
    """Let no tool edit the files of the list; if the guard cannot answer, the call is denied."""
    # This runs before every tool. Looking for a list takes longer than seeing that the tool only reads.
    if plugins.only_reads(runtime, str(call.get("name") or "")):
        return call
    root = _root(runtime)
    if not root or not _edits_list(runtime, call, root):
        return call
    answer = _ring(runtime, "PreToolUse", {"tool_name": call.get("name"), "tool_input": call.get("input")})
    if answer is None:
        return {**call, "decision": "deny", "reason": "the guard of the task list could not answer"}
    output = answer.get("hookSpecificOutput") or {}
    if output.get("permissionDecision") != "deny":
        return call
    return {**call, "decision": "deny", "reason": str(output.get("permissionDecisionReason") or "")}


def _edits_list(runtime: Runtime, call: Json, root: str) -> bool:
    """Return whether `call` names a file of the list; only then the guard is started."""
    tool_input = call.get("input")
    if not isinstance(tool_input, dict):
        return False
    paths = (value for value in tool_input.values() if isinstance(value, str) and "\0" not in value)
    kept = {f"{root}{os.sep}{name}" for name in _KEPT_BY_HARNESS}
    return any(os.path.realpath(runtime.work_directory / path) in kept for path in paths if len(path) < _PATH)


def beat(runtime: Runtime, payload: Json) -> Json:
    """Send a heartbeat to the list once in a while."""
    now = time.monotonic()
    if now - runtime.kept.get("beat", -_BEAT_SECONDS) >= _BEAT_SECONDS:
        runtime.kept["beat"] = now
        more = {"tool_name": payload.get("name"), "tool_input": payload.get("input")}
        _ring(runtime, "PostToolUse", more)
    return payload


@once
def _root(runtime: Runtime) -> str | None:
    """Return the directory of the active list of this project; None without one."""
    env = runtime.harness_environment()
    if not runtime.session or find_root.switched_off(env):
        return None
    root = find_root.search(env, str(runtime.work_directory))
    return root if root and Path(root, find_root.ENABLE_FLAG).exists() else None


def _ring(runtime: Runtime, event: str, more: Json) -> Json | None:
    """Return the answer of the hook of `event`, {} for no answer; None if it fails or there is no list."""
    if _root(runtime) is None:
        return None
    session = runtime.session
    # Commands of Claude Code see the id of its conversation.
    kept = disk.read_object(session.directory / CONVERSATION) if runtime.provider == "claude" else {}
    session_id = str(kept.get("session") or session.id)
    env = runtime.harness_environment()
    cwd = str(runtime.work_directory)
    payload = {"session_id": session_id, "cwd": cwd, "hook_event_name": event, **more}
    code = f"from harness_lib.hookio import entry; sys.exit(entry.answer({event!r}, ['claude']))"
    done = processes.run(
        launcher.python(code),
        env=env,
        cwd=runtime.work_directory,
        stdin=dumps(payload).encode(),
        log=runtime.env["HARNESS_LOG"],
        timeout=30.0,
    )
    printed = done.text()
    return None if done.code else as_object(printed.strip() or "{}")
