"""The bridge to the task list: a session is told of it, and held while its tasks are not done.

What is decided, the hooks of harness decide, as for every other host: they run as a program of their own.
Where no list is under way, looking for one is all that happens.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import processes
from harness_lib.loop.piped import Json, Piped, as_object, dumps
from harness_lib.system import program, seeking

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

_SECONDS = 30.0


def begin(runtime: Runtime, piped: Piped) -> Piped:
    """Tell the model once about the list that is under way here."""
    if runtime.session is not None and not runtime.kept.get("told of tasks"):
        runtime.kept["told of tasks"] = True
        source = "startup" if runtime.first <= 1 else "resume"
        said = _ring(runtime, "SessionStart", {"source": source})
        text = ((said or {}).get("hookSpecificOutput") or {}).get("additionalContext")
        if isinstance(text, str) and text.strip():
            runtime.session.append("user", {}, text)
    return piped


def hold(runtime: Runtime, piped: Piped) -> Piped:
    """Let the turn end, or go on with the reason why it must not."""
    said = _ring(runtime, "Stop", {"stop_hook_active": bool(runtime.kept.get("held"))})
    reason = (said or {}).get("reason")
    if runtime.session is None or (said or {}).get("decision") != "block" or not isinstance(reason, str):
        runtime.kept["held"] = False
        return piped
    runtime.kept["held"] = True
    runtime.log(f"hs: held: {reason.splitlines()[0] if reason else ''}")
    runtime.stream.emit("held", reason=reason)
    runtime.session.append("user", {}, reason)
    return {"next_state": "assemble"}


def _ring(runtime: Runtime, event: str, more: Json) -> Json | None:
    """Return what the hook of `event` answers; None where it says nothing, or nobody is at home."""
    env = runtime.harness_environment()
    cwd = str(runtime.work_directory)
    if runtime.session is None or seeking.switched_off(env):
        return None
    root = seeking.pinned(env) or seeking.search(env, cwd)
    if not root or not Path(root, seeking.MARKER).exists():
        return None
    payload = {"session_id": runtime.session.id, "cwd": cwd, "hook_event_name": event, **more}
    code = f"from harness_lib.hookio import door; sys.exit(door.answer({event!r}, ['claude']))"
    done = processes.run(
        program.python(code),
        env=env,
        cwd=runtime.work_directory,
        stdin=dumps(payload).encode(),
        log=runtime.env["HARNESS_LOG"],
        timeout=_SECONDS,
    )
    return as_object(done.text())
