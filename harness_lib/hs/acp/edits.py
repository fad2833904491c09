"""Tell a client what a call came to: its result, and a file that it edits before and after."""

from __future__ import annotations

from pathlib import Path

from harness_lib.loop.piped import Json
from harness_lib.loop.runtime import Runtime

TOOLS = ("edit_file", "replace", "write_file")
# More is no diff that anybody reads.
_LIMIT = 1024 * 1024


class Edits:
    """Listens to the events of a session."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._before: dict[str, tuple[Path, str | None]] = {}

    def hear(self, event: Json) -> Json:
        """Return what is to be told beside `event`."""
        if event["type"] == "tool_run":
            self._keep(event)
        if event["type"] != "tool_done":
            return {}
        return {"result": self._result(str(event.get("seq"))), **self._diff(event)}

    def _keep(self, event: Json) -> None:
        path = (event.get("input") or {}).get("path")
        if event["name"] in TOOLS and isinstance(path, str) and path and "\0" not in path:
            full = self._runtime.work_directory / Path(path).expanduser()
            if not full.exists() or full.is_file():
                self._before[str(event["id"])] = full, _read(full)

    def _diff(self, event: Json) -> Json:
        path, old = self._before.pop(str(event["id"]), (None, None))
        new = _read(path) if path and event.get("error") != "true" else None
        if path is None or new is None:
            return {}
        return {"diff": {"path": str(path), "old": old, "new": new}}

    def _result(self, seq: str) -> str:
        session = self._runtime.session
        messages = session.messages() if session and seq else []
        return next((message.body for message in reversed(messages) if f"{message.seq:04d}" == seq), "")


def _read(path: Path) -> str | None:
    """Return the text of `path`; None where there is none to show."""
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= _LIMIT else None
    except (OSError, UnicodeDecodeError):
        return None
