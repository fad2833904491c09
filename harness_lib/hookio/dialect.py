"""One answer in the words of each host.

To let an agent go, say nothing and exit 0: every host takes that. To hold it, print exactly
`{"decision":"block","reason":…}`: Codex drops an answer with any other key.
Source: hosts as measured and documented; tests/hookio/test_dialect.py has each spelling.
"""

from __future__ import annotations

from harness_lib.text import cut

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from harness_lib.hookio.payload import Payload
    from harness_lib.hookio.situation import Answer

HOSTS = ("claude", "codex", "gemini", "copilot", "cursor", "kimi")
VARIABLE = "HARNESS_HOST"
# Cut long before hosts spill a text into a file of its own.
LONGEST = 6000
BLOCKED = 2


def host(argv: Sequence[str], env: Mapping[str, str], payload: Payload) -> str:
    """Return which host rings: named by the command line or HARNESS_HOST, else by what it sends."""
    for name in (*argv[:1], env.get(VARIABLE, "")):
        if name in HOSTS:
            return name
    if "sessionId" in payload.fields:
        return "copilot"
    if "conversation_id" in payload.fields:
        return "cursor"
    # Claude Code and Codex take the same words, and say under which permissions they work.
    if "permission_mode" in payload.fields:
        return "claude"
    from harness_lib.agents import registry  # noqa: PLC0415 (it takes longer to load than the rest of a hook)

    known = registry.SIGNS.values()
    return next((signs.name for signs in known if any(env.get(key) for key in signs.hooks)), "claude")


def speak(answer: Answer, event: str, name: str) -> tuple[Mapping[str, Any] | None, str, int]:
    """Return (JSON for stdout or None, text for stderr, exit code) of `answer` to `event` at the host."""
    text = cut(answer.text, LONGEST)
    if answer.kind == "block":
        return _block(text, name)
    if answer.kind == "keep":
        return None, text, BLOCKED
    if answer.kind == "context":
        return _context(text, event, name), "", 0
    if answer.kind == "deny":
        return _deny(text, event, name)
    return None, "", 0


def _block(text: str, name: str) -> tuple[Mapping[str, Any] | None, str, int]:
    if name == "cursor":
        return {"followup_message": text}, "", 0
    if name == "kimi":
        return None, text, BLOCKED
    return {"decision": "block", "reason": text}, "", 0


def _context(text: str, event: str, name: str) -> Mapping[str, Any] | None:
    if name == "copilot":
        return {"additionalContext": text}
    if name == "cursor":
        return {"additional_context": text}
    if name == "kimi":
        # It only watches at this event.
        return None
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _deny(text: str, event: str, name: str) -> tuple[Mapping[str, Any] | None, str, int]:
    if name == "gemini":
        return {"decision": "deny", "reason": text}, "", 0
    if name == "copilot":
        return {"permissionDecision": "deny", "permissionDecisionReason": text}, "", 0
    if name == "cursor":
        return {"permission": "deny", "user_message": text, "agent_message": text}, "", 0
    if name == "kimi":
        return None, text, BLOCKED
    refusal = {"permissionDecision": "deny", "permissionDecisionReason": text}
    return {"hookSpecificOutput": {"hookEventName": event, **refusal}}, "", 0
