"""Read what a host says about an event, and word the answer as that host wants to hear it.

Hosts spell the same field differently: `session_id` (Claude Code, Codex, Gemini), `sessionId` (Copilot),
`conversation_id` (Cursor). No payload is trusted to be complete or to have the right types.
To let an agent go, say nothing and exit 0: every host accepts that. What its user should see then is a
`systemMessage`, as hosts hide stderr. To hold it, print exactly `{"decision":"block","reason":…}`: Codex
drops an answer with any other key. A host with words of its own has them in its file of `agents/`.
Source: the recordings in tests/hosts/payloads/; tests/hookio/test_payload.py has each spelling.
"""

from __future__ import annotations

import json
from itertools import pairwise

from harness_lib import agents
from harness_lib.system.place import own_files
from harness_lib.text import cut

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    Kind = Literal["allow", "block", "keep", "context", "deny"]

EVENTS = (
    *("Stop", "SubagentStart", "SubagentStop", "TeammateIdle"),
    *("SessionStart", "SessionEnd", "PreToolUse", "PostToolUse"),
)
# What a host lists as work in the background: the first wake the agent when they end. A shell may never end.
WAKING = frozenset(("subagent", "workflow", "monitor", "teammate", "verb"))
SILENT = frozenset(("shell",))
# The verbs that run checks, and end. A client puts a call of its shell into the background after two minutes.
ENDING = frozenset(("start", "claim", "finish", "recover", "validate"))

VARIABLE = "HARNESS_HOST"
LONGEST_NAME = 200
# Cut long before hosts move a text into a file of its own.
LONGEST = 6000
BLOCKED = 2
# Of a transcript, in bytes; what the agent itself says has other quotes there.
LONGEST_TURN = 2_000_000
MODE_OF_TURN = b'"collaboration_mode_kind":"'
# In the answers, these two stand for the text and the name of the event. None: the text goes to stderr, with
# the exit code of a block. {}: the host takes no such answer.
TEXT, EVENT = "TEXT", "EVENT"
ANSWERS: Mapping[str, Mapping[str, Any] | None] = {
    "allow": {"systemMessage": TEXT},
    "block": {"decision": "block", "reason": TEXT},
    "keep": None,
    "context": {"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": TEXT}},
    "deny": {
        "hookSpecificOutput": {
            "hookEventName": EVENT,
            "permissionDecision": "deny",
            "permissionDecisionReason": TEXT,
        }
    },
}


class Payload:
    """One event of a host; every text is "" where the host says nothing.

    `event` is None for an unknown one. `fields` is all that the host said.
    """

    def __init__(self, event: str, fields: Mapping[str, object], host: str = "") -> None:
        named = _name(fields, "hook_event_name", "hookEventName")
        self.event = (named if named in EVENTS else _event(named, host)) if named else event
        self.fields = fields
        self.session_id = _name(fields, "session_id", "sessionId", "conversation_id")
        self.agent_id = _name(fields, "agent_id", "agentId", "subagent_id")
        self.parent_agent_id = _name(fields, "parent_agent_id", "parentAgentId")
        # The names under which a subagent or a teammate may have claimed a task.
        keys = ("agent_id", "agentId", "subagent_id", "teammate_name", "worker_id")
        self.names = tuple(dict.fromkeys(filter(None, [_name(fields, key) for key in keys if key in fields])))
        self.cwd = _text(fields, "cwd")
        self.source = _name(fields, "source", "trigger")
        self.reason = _name(fields, "reason")
        self.stop_hook_active = fields.get("stop_hook_active", fields.get("stopHookActive")) is True

    @property
    def plans(self) -> bool:
        """Whether the agent is in plan mode: it may change nothing, so it cannot go on with the list.

        Codex (0.171), which names each turn, says so only in the line of its transcript that begins one.
        """
        is_said = self.fields.get("permission_mode") == "plan"
        if is_said or "turn_id" not in self.fields:
            return is_said
        try:
            said = own_files.tail(_text(self.fields, "transcript_path"), LONGEST_TURN)
        except (OSError, ValueError):
            return False
        return said.rpartition(MODE_OF_TURN)[2].startswith(b"plan")

    def background(self) -> tuple[bool, bool]:
        """Return whether work runs that will wake this agent, and whether work runs that might.

        A shell does only with a verb of harness: a server that it has started never ends.
        """
        known = self.fields.get("background_tasks")
        kinds = set()
        for task in known if isinstance(known, list) else ():
            if isinstance(task, dict) and task.get("status") == "running":
                kind = task["type"] if isinstance(task.get("type"), str) else ""
                kinds.add("verb" if kind in SILENT and _runs_a_check(task.get("command")) else kind)
        return bool(kinds & WAKING), bool(kinds - WAKING - SILENT)

    def edited_paths(self) -> list[str]:
        """Return the files that a tool is about to change, as the payload spells them."""
        named = [key for key in ("tool_input", "toolArgs", "tool_args") if key in self.fields]
        tool = self.fields[named[0]] if named else None
        if isinstance(tool, str):
            tool = parse(tool.encode("utf-8", "replace"))
        if not isinstance(tool, dict):
            return []
        keys = ("file_path", "path", "notebook_path", "filePath", "target_file")
        paths = [value for key in keys if isinstance(value := tool.get(key), str)]
        for key in ("command", "input", "patch"):
            paths += _patched(tool.get(key))
        return paths


def _runs_a_check(command: object) -> bool:
    words = command.split() if isinstance(command, str) else []
    return any(
        name.strip("'\"").endswith("harness") and verb.strip(";&|)") in ENDING
        for name, verb in pairwise(words)
    )


# -- what a host says


def parse(data: bytes) -> dict[str, object]:
    """Return the JSON object in `data`; {} if it has none."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _patched(patch: object) -> list[str]:
    """Return the files in the headers of a patch as `apply_patch` takes it; a shell command has none."""
    if not isinstance(patch, str) or "*** Begin Patch" not in patch:
        return []
    headers = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    lines = (line.strip() for line in patch.splitlines())
    return [line.partition(": ")[2] for line in lines if line.startswith(headers)]


def _event(named: str, host: str) -> str | None:
    """Return the event of harness that `host` (or any) calls `named`, in any case; None for another one."""
    own = agents.hooks(host)
    for event, theirs in own.events.items() if own else ():
        if theirs == named:
            return event
    from harness_lib.agents import registry  # noqa: PLC0415 (most hosts call the events as we do)

    return registry.EVENTS.get(named.lower())


def _text(fields: Mapping[str, object], *keys: str) -> str:
    for key in keys:
        if key in fields:
            value = fields[key]
            return value if isinstance(value, str) else ""
    return ""


def _name(fields: Mapping[str, object], *keys: str) -> str:
    """Return a name as `owner` writes it into the list: printable and bounded."""
    text = _text(fields, *keys)[: 10 * LONGEST_NAME]
    return "".join(filter(str.isprintable, text)).strip()[:LONGEST_NAME]


# -- what it hears


def named_host(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the host that the command line or HARNESS_HOST names, "" if they name none."""
    for name in (*argv[:1], env.get(VARIABLE, "")):
        if name in agents.USUAL or (name and agents.hooks(name)):
            return name
    return ""


def host(named: str, env: Mapping[str, str], payload: Payload) -> str:
    """Return the name of the host that calls, "" for one that takes the usual answers.

    It is `named`, or recognised by what it sends.
    """
    # Claude Code and Codex say which permissions they have.
    if named in agents.USUAL or (not named and "permission_mode" in payload.fields):
        return ""
    if named:
        return named
    from harness_lib.agents import registry  # noqa: PLC0415 (it takes longer to load than the rest of a hook)

    return registry.host(env, payload.fields)


class Answer:
    """What a hook says.

    Let the agent go (`allow`), hold it (`block`; `keep` for a teammate), tell it something (`context`), or
    refuse what it is about to do (`deny`).
    `warning` is for the user and the log, once. `progress` is what a held agent is measured by next time.
    `finished`: nothing is left, and the enable flag is removed. `waits`: background work may wake the agent.
    """

    __slots__ = ("finished", "kind", "progress", "text", "waits", "warning")

    def __init__(
        self,
        kind: Kind,
        text: str = "",
        *,
        warning: str = "",
        progress: str = "",
        finished: bool = False,
        waits: bool = False,
    ) -> None:
        self.waits = waits
        self.kind = kind
        self.text = text
        self.warning = warning
        self.progress = progress
        self.finished = finished


def speak(answer: Answer, event: str, name: str) -> tuple[Mapping[str, Any] | None, str, int]:
    """Return (JSON for stdout or None, text for stderr, exit code) of `answer` to `event` at the host."""
    text = cut(answer.text, LONGEST)
    own = agents.hooks(name) if name and name not in agents.USUAL else None
    answers = {**ANSWERS, **own.answers} if own else ANSWERS
    template = answers[answer.kind]
    if template is None:
        return None, text, BLOCKED
    return _filled(template, {TEXT: text, EVENT: event}) or None, "", 0


def _filled(template: Mapping[str, Any], values: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        key: values.get(part, part) if isinstance(part, str) else _filled(part, values)
        for key, part in template.items()
    }
