"""Gates: nothing runs that one of them has forbidden, whatever the others say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, bodies, session_of
from tests.loop.mcp_servers import entry
from tests.loop.servers.script import Json, say, use
from tests.loop.source_files import write_program, write_servers

ALLOW, DENY = {"decision": "allow"}, {"decision": "deny", "reason": "not on my watch"}
ASK = {"decision": "ask", "reason": "it deletes"}


def gate(home: Path, name: str, said: Mapping[str, object]) -> None:
    """Put a gate there that adds `said` to what it reads."""
    text = "#!/usr/bin/env python3\nimport json, sys\ncall = json.load(sys.stdin)\n"
    text += f"print(json.dumps(call | {dict(said)!r}))\n"
    write_program(home / ".harness" / "hooks.d" / "tool_gate" / name, text)


@pytest.mark.parametrize(
    ("gates", "runs", "result"),
    [
        ([{}], True, "made it"),
        ([ALLOW], True, "made it"),
        ([DENY], False, "denied: not on my watch"),
        ([DENY, ALLOW], False, "not on my watch"),
        ([ALLOW, DENY], False, "not on my watch"),
        ([ASK], False, "a person has to be asked"),
        ([ASK, ALLOW], False, "it deletes"),
        ([ASK, DENY], False, "not on my watch"),
        ([{"decision": "perhaps"}], False, "denied"),
        ([{"input": "no object"}], False, "denied"),
    ],
)
def test_the_strictest_gate_counts(
    hs: Hs, serve: Serve, home: Path, project: Path, gates: list[Json], *, runs: bool, result: str
) -> None:
    for number, said in enumerate(gates):
        gate(home, f"{number}0-gate", said)
    server = serve(CHAT, use("bash", command="touch made; echo made it"), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert (project / "made").exists() == runs
    assert result in bodies(session_of(home))[2][1]


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho maybe\n", "#!/no/such/interpreter\n"]
)
def test_a_gate_that_breaks_is_a_no(hs: Hs, serve: Serve, home: Path, project: Path, text: str) -> None:
    write_program(home / ".harness" / "hooks.d" / "tool_gate" / "10-broken", text)
    gate(home, "20-good", ALLOW)
    server = serve(CHAT, use("bash", command="touch made"), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert not (project / "made").exists()
    assert "10-broken" in bodies(session_of(home))[2][1]


def test_what_a_gate_has_changed_is_what_runs_and_what_the_next_one_sees(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    gate(home, "10-change", {"input": {"command": "echo changed > made"}})
    seen = home / "seen"
    write_program(home / ".harness" / "hooks.d" / "tool_gate" / "20-see", f'#!/bin/sh\ntee "{seen}"\n')
    server = serve(CHAT, use("bash", command="echo original > made"), say("Done."))

    hs("go", env=CHAT.environment(server))

    assert (project / "made").read_text(encoding="utf-8") == "changed\n"
    assert json.loads(seen.read_text(encoding="utf-8"))["input"] == {"command": "echo changed > made"}


def test_a_gate_stands_before_tools_of_servers_of_others_and_of_subagents(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    write_program(
        home / ".harness" / "hooks.d" / "tool_gate" / "10-log",
        '#!/usr/bin/env python3\nimport json, sys\ncall = json.load(sys.stdin)\nname = call["name"]\n'
        'with open("asked", "a") as log:\n    log.write(name + "\\n")\n'
        'said = {} if name == "agent" else {"decision": "deny", "reason": "not on my watch"}\n'
        "print(json.dumps(call | said))\n",
    )
    write_program(
        home / ".harness" / "tools" / "made",
        '#!/bin/sh\nif [ "$1" = --schema ]; then\n'
        'echo \'{"name":"made","input_schema":{"type":"object"}}\'\nelse\ntouch ran\nfi\n',
    )
    write_servers(home / ".harness", ours=entry())
    asked = ["made", "mcp__ours__z_echo", "agent", "bash", "mcp__ours__z_echo"]
    server = serve(
        CHAT,
        use("made"),
        use("mcp__ours__z_echo", text="x"),
        use("agent", prompt="make it"),
        use("bash", command="touch ran"),
        use("mcp__ours__z_echo", text="x"),
        say("Done."),
    )

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert (project / "asked").read_text(encoding="utf-8").split() == asked
    assert not (project / "ran").exists()
    refused = [str(request["messages"][-1]) for request in server.requests if len(request["messages"]) > 2]
    assert sum("denied: not on my watch" in words for words in refused) == 4
