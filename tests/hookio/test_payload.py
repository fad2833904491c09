"""What hosts send and how they spell it: which event it is, who rings, and which names are in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lib import agents
from harness_lib.agents import registry
from harness_lib.hookio import payload
from harness_lib.hookio.payload import Answer, Payload
from tests.hookio.lists import running
from tests.run_to_end import run_to_end

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
KEYS = st.sampled_from(
    ["session_id", "cwd", "hook_event_name", "agent_id", "background_tasks", "tool_input", "stop_hook_active"]
)


@settings(max_examples=50)
@given(st.binary() | st.dictionaries(KEYS | st.text(), JSON).map(lambda fields: json.dumps(fields).encode()))
def test_nothing_breaks_it(data: bytes) -> None:
    parsed = payload.Payload("Stop", payload.parse(data))

    assert isinstance(parsed.session_id, str)
    assert all(isinstance(each, bool) for each in parsed.background())
    assert all(isinstance(path, str) for path in parsed.edited_paths())


@pytest.mark.parametrize(
    ("said", "event"),
    [
        ({}, "SessionEnd"),
        ({"hook_event_name": "SessionStart"}, "SessionStart"),
        ({"hookEventName": "agentStop"}, "Stop"),
        ({"hook_event_name": "AfterAgent"}, "Stop"),
        ({"hook_event_name": "BeforeTool"}, "PreToolUse"),
        ({"hook_event_name": "beforeSubmitPrompt"}, None),
        ({"hook_event_name": 7}, "SessionEnd"),
    ],
)
def test_the_host_says_which_event_it_is(said: dict[str, object], event: str | None) -> None:
    assert payload.Payload("SessionEnd", said).event == event
    assert payload.Payload("SessionEnd", said, "gemini").event == event


def test_the_transcript_of_codex_says_whether_its_agent_plans(tmp_path: Path) -> None:
    """Recorded from 0.171.0, whose payloads call this mode "default" too."""
    transcript = tmp_path / "rollout.jsonl"
    fields = {"turn_id": "t", "transcript_path": str(transcript), "permission_mode": "default"}
    planning = []
    for mode in ("default", "plan", "default"):
        planning.append(Payload("Stop", fields).plans)
        begun = {"type": "task_started", "turn_id": "t", "collaboration_mode_kind": mode}
        said = {"type": "message", "text": '"collaboration_mode_kind":"plan"'}
        with transcript.open("a") as stream:
            stream.writelines(json.dumps(each, separators=(",", ":")) + "\n" for each in (begun, said))
    planning.append(Payload("Stop", fields).plans)
    assert planning == [False, False, True, False]
    assert Payload("Stop", {"turn_id": "t", "permission_mode": "plan"}).plans, "a host that says both"


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("session_id", ("session_id", "sessionId", "conversation_id")),
        ("agent_id", ("agent_id", "agentId", "subagent_id")),
        ("parent_agent_id", ("parent_agent_id", "parentAgentId")),
        ("cwd", ("cwd",)),
        ("source", ("source", "trigger")),
        ("reason", ("reason",)),
    ],
)
def test_each_host_may_spell_it_its_own_way(name: str, keys: tuple[str, ...]) -> None:
    for n, key in enumerate(keys):
        assert getattr(payload.Payload("Stop", {key: "x"}), name) == "x"
        # The first of them counts, whatever stands in it.
        assert getattr(payload.Payload("Stop", dict.fromkeys(keys[n:], "y") | {key: "x"}), name) == "x"
    assert getattr(payload.Payload("Stop", {"other": "x"}), name) == ""


def test_a_name_is_bounded_before_and_after_it_is_cleaned() -> None:
    longest = payload.LONGEST_NAME

    assert payload.Payload("Stop", {"reason": "\0" * 9 * longest + "x" * longest}).reason == "x" * longest
    assert payload.Payload("Stop", {"reason": "\0" * 10 * longest + "x"}).reason == ""
    assert payload.Payload("Stop", {"reason": " a\0b\n" + "c" * 500}).reason == ("ab" + "c" * 500)[:longest]
    assert payload.Payload("Stop", {"agent_id": 7}).agent_id == ""
    assert payload.Payload("Stop", {"cwd": " a\n" * longest}).cwd == " a\n" * longest


@pytest.mark.parametrize(
    ("said", "active"),
    [
        ({"stop_hook_active": True}, True),
        ({"stopHookActive": True}, True),
        ({"stop_hook_active": False, "stopHookActive": True}, False),
        ({"stop_hook_active": "true"}, False),
        ({"stop_hook_active": 1}, False),
        ({}, False),
    ],
)
def test_only_the_host_says_that_it_goes_on_because_of_us(said: dict[str, object], *, active: bool) -> None:
    assert payload.Payload("Stop", said).stop_hook_active is active


def test_every_name_of_a_subagent_or_teammate_counts_once() -> None:
    said = {"worker_id": "w", "agent_id": "a", "agentId": "a", "subagent_id": "", "teammate_name": " t "}

    assert payload.Payload("Stop", said).names == ("a", "t", "w")
    for key in ("agent_id", "agentId", "subagent_id", "teammate_name", "worker_id"):
        assert payload.Payload("Stop", {key: "x"}).names == ("x",)


def shell(command: object) -> dict[str, object]:
    return {"background_tasks": [{"type": "shell", "status": "running", "command": command}]}


@pytest.mark.parametrize(
    ("said", "wakes", "may_wake"),
    [
        ({}, False, False),
        ({"background_tasks": None}, False, False),
        ({"background_tasks": ["running", None]}, False, False),
        (
            {"background_tasks": [{"type": "subagent", "status": "completed"}, {"type": "dream"}]},
            False,
            False,
        ),
        (running("shell"), False, False),
        (running("dream"), False, True),
        (running(7), False, True),
        ({"background_tasks": [{"status": "running"}]}, False, True),
        *((running("shell", kind), True, False) for kind in ("subagent", "workflow", "monitor", "teammate")),
        (running("subagent", "dream"), True, True),
        (shell("/skills/harness/bin/harness finish task-001"), True, False),
        (shell("cd x && HARNESS_WORKER_ID=a '/my skills/bin/harness' validate --all; echo"), True, False),
        (shell("harness finish; echo $?"), True, False),
        (shell("harness status --watch"), False, False),
        (shell("npm start"), False, False),
        (shell(None), False, False),
    ],
)
def test_what_runs_behind_an_agent_may_wake(said: dict[str, object], *, wakes: bool, may_wake: bool) -> None:
    assert payload.Payload("Stop", said).background() == (wakes, may_wake)


PATCH = "*** Begin Patch\n *** Delete File: a: b\n*** Move to: c\n+*** Add File: no\n*** End Patch"


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        *(
            ({"tool_input": {key: "x"}}, ["x"])
            for key in ("file_path", "path", "notebook_path", "filePath", "target_file")
        ),
        ({"toolArgs": {"path": "x"}}, ["x"]),
        ({"tool_args": '{"path": "x", "file_path": "y"}'}, ["y", "x"]),
        ({"tool_input": {"path": 7, "file_path": None}}, []),
        *(({"tool_input": {key: PATCH}}, ["a: b", "c"]) for key in ("command", "input", "patch")),
        ({"tool_input": {"path": "x", "patch": PATCH}}, ["x", "a: b", "c"]),
        ({"tool_input": {"command": "echo '*** Update File: a'"}}, []),
        ({"tool_input": "nonsense"}, []),
        ({"tool_input": ["a"]}, []),
        ({"tool_input": None}, []),
        ({"tool_input": '{"path": "\ud800"}'}, ["?"]),
        ({}, []),
    ],
)
def test_each_host_says_in_its_own_way_what_a_tool_changes(said: dict[str, object], paths: list[str]) -> None:
    assert payload.Payload("PreToolUse", said).edited_paths() == paths


@pytest.mark.parametrize(
    "data",
    [b"", b"talk", b"[1]", b'"a": 1, ', b"[" * 100_000, b'{"a":' * 100_000, b'{"a": {"b": ' + b"[" * 100_000],
)
def test_what_is_no_object_has_no_fields(data: bytes) -> None:
    assert payload.parse(data) == {}


def test_what_is_no_text_is_replaced() -> None:
    assert payload.parse(b'{"a": "\xff"}') == {"a": "\ufffd"}


# -- each host hears the answer in its own words; Claude Code and Codex take the same


SAME: dict[str, tuple[Any, str, int]] = {
    "allow": ({"systemMessage": "T"}, "", 0),
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
    "qwen": CLAUDE,
    "gemini": {**CLAUDE, "deny": ({"decision": "deny", "reason": "T"}, "", 0)},
    "copilot": {**SAME, "context": ({"additionalContext": "T"}, "", 0), "deny": (PRE, "", 0)},
    "cursor": {
        **SAME,
        "allow": (None, "", 0),
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
        # Claude Code and Codex take the usual answers.
        ([], {"GEMINI_PROJECT_DIR": "/p"}, {"permission_mode": "default"}, ""),
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
    done = run_to_end([sys.executable, "-I", "-S", "-c", program], check=True)
    assert done.stdout.split() == ["False"]
