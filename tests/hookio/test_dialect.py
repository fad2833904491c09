"""Each host hears the answer in its own words; Claude Code and Codex take the same."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from harness_lib import agents
from harness_lib.agents import registry
from harness_lib.hookio import payload
from harness_lib.hookio.context import Answer
from harness_lib.hookio.payload import Payload

SAME: dict[str, tuple[Any, str, int]] = {
    "allow": (None, "", 0),
    "block": ({"decision": "block", "reason": "T"}, "", 0),
    "keep": (None, "T", 2),
}
PRE = {"permissionDecision": "deny", "permissionDecisionReason": "T"}
CLAUDE = {
    **SAME,
    "context": ({"hookSpecificOutput": {"hookEventName": "E", "additionalContext": "T"}}, "", 0),
    "deny": ({"hookSpecificOutput": {"hookEventName": "E", **PRE}}, "", 0),
}
SPELLINGS: dict[str, dict[str, tuple[Any, str, int]]] = {
    "claude": CLAUDE,
    "codex": CLAUDE,
    "gemini": {**CLAUDE, "deny": ({"decision": "deny", "reason": "T"}, "", 0)},
    "copilot": {**SAME, "context": ({"additionalContext": "T"}, "", 0), "deny": (PRE, "", 0)},
    "cursor": {
        **SAME,
        "block": ({"followup_message": "T"}, "", 0),
        "context": ({"additional_context": "T"}, "", 0),
        "deny": ({"permission": "deny", "user_message": "T", "agent_message": "T"}, "", 0),
    },
    "kimi": {
        "allow": (None, "", 0),
        "block": (None, "T", 2),
        "context": (None, "", 0),
        "deny": (None, "T", 2),
    },
}


@pytest.mark.parametrize(("host", "kind"), [(host, kind) for host in SPELLINGS for kind in SPELLINGS[host]])
def test_spelling(host: str, kind: Any) -> None:
    assert payload.speak(Answer(kind, "T"), "E", host) == SPELLINGS[host][kind]


def test_every_host_has_its_spellings() -> None:
    assert set(SPELLINGS) == set(registry.HOSTS)


@pytest.mark.parametrize(
    ("argv", "env", "fields", "host"),
    [
        ([], {}, {}, ""),
        (["gemini"], {"HARNESS_HOST": "kimi"}, {"sessionId": "x"}, "gemini"),
        ([], {"HARNESS_HOST": "kimi"}, {"sessionId": "x"}, "kimi"),
        (["nonesuch"], {"HARNESS_HOST": "nonesuch"}, {}, ""),
        ([], {}, {"sessionId": "x"}, "copilot"),
        ([], {}, {"conversation_id": "x"}, "cursor"),
        # Only the first word of the command line does, and an empty sign is none.
        (["x", "gemini"], {"COPILOT_PROJECT_DIR": ""}, {}, ""),
        *(
            ([], {f"{host.upper()}_{sign}": "/p", "CLAUDE_PROJECT_DIR": "/p"}, {"session_id": "x"}, host)
            for host, signs in {
                "copilot": ("PROJECT_DIR", "HOOK_DIR", "PLUGIN_ROOT"),
                "gemini": ("PROJECT_DIR", "SESSION_ID"),
                "cursor": ("PROJECT_DIR", "VERSION"),
            }.items()
            for sign in signs
        ),
    ],
)
def test_the_host_is_named_or_betrays_itself(
    argv: list[str], env: dict[str, str], fields: dict[str, object], host: str
) -> None:
    named = payload.named_host(argv, env)
    assert payload.host(named, env, Payload("Stop", fields)) == host


def test_whose_answers_are_the_usual_is_known_without_loading_the_agents() -> None:
    assert all(name in registry.HOSTS and not registry.HOSTS[name].answers for name in agents.USUAL)


def test_a_text_is_cut_with_a_sign_of_it_and_only_where_it_is_too_long() -> None:
    fits = "x" * payload.LONGEST

    assert payload.speak(Answer("keep", fits), "Stop", "claude")[1] == fits
    assert payload.speak(Answer("keep", fits + "y"), "Stop", "claude")[1] == fits[:-1] + "\u2026"


def test_who_names_its_permissions_is_answered_without_loading_the_agents() -> None:
    """They would take a third of the time of a whole hook."""
    program = (
        f"import sys; sys.path += {sys.path!r}; from harness_lib.hookio import payload; "
        "sent = payload.Payload('Stop', {'permission_mode': 'default'}); "
        "codex = payload.named_host(['codex'], {}); "
        "print(payload.host('', {}, sent) + payload.host(codex, {}, sent), "
        "'harness_lib.agents.registry' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]
