"""Read what a host says about an event into one shape; whatever arrives here is survived.

Hosts spell the same things differently: `session_id` (Claude Code, Codex, Gemini), `sessionId` (Copilot),
`conversation_id` (Cursor). A payload is never trusted to have the right types, nor to be whole.
Source: the recordings in tests/hosts/payloads/.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_NAME = 200

# What each event of ours is called elsewhere, in lower case.
EVENTS = {
    "stop": "Stop",
    "agentstop": "Stop",
    "afteragent": "Stop",
    "subagentstart": "SubagentStart",
    "subagentstop": "SubagentStop",
    "teammateidle": "TeammateIdle",
    "sessionstart": "SessionStart",
    "sessionend": "SessionEnd",
    "pretooluse": "PreToolUse",
    "beforetool": "PreToolUse",
    "posttooluse": "PostToolUse",
    "aftertool": "PostToolUse",
}


# What a host lists of the work that goes on behind an agent: these wake it when they end or have something to
# say, and those do not.
WAKING = frozenset(("subagent", "workflow", "monitor", "teammate"))
SILENT = frozenset(("shell",))


class Payload:
    """One event of a host; every text is "" where the host says nothing.

    `event` is None for one that we do not know. `fields` is all that the host said.
    """

    def __init__(self, event: str, fields: Mapping[str, object]) -> None:
        named = _name(fields, "hook_event_name", "hookEventName")
        self.event = EVENTS.get(named.lower()) if named else event
        self.fields = fields
        self.session_id = _name(fields, "session_id", "sessionId", "conversation_id")
        self.agent_id = _name(fields, "agent_id", "agentId", "subagent_id")
        self.parent_agent_id = _name(fields, "parent_agent_id", "parentAgentId")
        self.names = _names(fields)
        self.cwd = _text(fields, "cwd")
        self.source = _name(fields, "source", "trigger")
        self.reason = _name(fields, "reason")
        self.stop_hook_active = _first(fields, "stop_hook_active", "stopHookActive") is True

    def background(self) -> tuple[bool, bool]:
        """Return whether something runs that will wake this agent, and whether something does that might.

        A shell never does: a server that it has started never ends.
        """
        tasks = self.fields.get("background_tasks")
        known = tasks if isinstance(tasks, list) else []
        running = [task for task in known if isinstance(task, dict) and task.get("status") == "running"]
        kinds = {task["type"] if isinstance(task.get("type"), str) else "" for task in running}
        return bool(kinds & WAKING), bool(kinds - WAKING - SILENT)

    def edited_paths(self) -> list[str]:
        """Return the files that a tool is about to change, as the payload spells them."""
        tool = _first(self.fields, "tool_input", "toolArgs", "tool_args")
        if isinstance(tool, str):
            tool = parse(tool.encode("utf-8", "replace"))
        if not isinstance(tool, dict):
            return []
        keys = ("file_path", "path", "notebook_path", "filePath", "target_file")
        paths = [value for key in keys if isinstance(value := tool.get(key), str)]
        for key in ("command", "input", "patch"):
            paths += _patched(tool.get(key))
        return paths


def read(event: str, data: bytes) -> Payload:
    """Return what `data` says about `event`; nonsense says nothing."""
    return Payload(event, parse(data))


def parse(data: bytes) -> dict[str, object]:
    """Return the JSON object in `data`; of a torn or broken one, the fields before the break."""
    text = data.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _first_fields(text)
    return value if isinstance(value, dict) else {}


def _first_fields(text: str) -> dict[str, object]:
    decoder = json.JSONDecoder()
    fields: dict[str, object] = {}
    place = text.find("{") + 1
    try:
        while 0 < place < len(text):
            key, place = decoder.raw_decode(text, _skip(text, place, ","))
            value, place = decoder.raw_decode(text, _skip(text, place, ":"))
            fields[str(key)] = value
    except (ValueError, RecursionError):
        return fields
    return fields


def _skip(text: str, place: int, mark: str) -> int:
    while place < len(text) and (text[place] == mark or text[place].isspace()):
        place += 1
    return place


def _patched(patch: object) -> list[str]:
    """Return the files in the headers of a patch as `apply_patch` takes it; a shell command has none."""
    if not isinstance(patch, str) or "*** Begin Patch" not in patch:
        return []
    headers = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    lines = (line.strip() for line in patch.splitlines())
    return [line.partition(": ")[2] for line in lines if line.startswith(headers)]


def _names(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names under which a subagent or a teammate may have claimed a task."""
    keys = ("agent_id", "agentId", "subagent_id", "teammate_name", "worker_id")
    return tuple(dict.fromkeys(filter(None, (_name(fields, key) for key in keys))))


def _first(fields: Mapping[str, object], *keys: str) -> object:
    return next((fields[key] for key in keys if key in fields), None)


def _text(fields: Mapping[str, object], *keys: str) -> str:
    value = _first(fields, *keys)
    return value if isinstance(value, str) else ""


def _name(fields: Mapping[str, object], *keys: str) -> str:
    """Return a name as `owner` writes it into the list: printable and bounded."""
    text = _text(fields, *keys)[: 10 * LONGEST_NAME]
    return "".join(char for char in text if char.isprintable()).strip()[:LONGEST_NAME]
