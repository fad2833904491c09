"""Gates: nothing runs that one of them has forbidden, whatever the others say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.loop.conftest import WIRES, Hs, Serve, bodies, session_of
from tests.loop.servers.script import say, use
from tests.loop.test_foreign import program

ALLOW, DENY = {"decision": "allow"}, {"decision": "deny", "reason": "not on my watch"}
ASK = {"decision": "ask", "reason": "it deletes"}


def gate(home: Path, name: str, said: Mapping[str, object]) -> None:
    """Put a gate there that adds `said` to what it reads."""
    text = "#!/usr/bin/env python3\nimport json, sys\ncall = json.load(sys.stdin)\n"
    text += f"print(json.dumps(call | {dict(said)!r}))\n"
    program(home / ".harness" / "hooks.d" / "tool_gate" / name, text)


@pytest.mark.parametrize(
    ("gates", "runs", "told"),
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
    hs: Hs, serve: Serve, home: Path, project: Path, gates: list[dict[str, object]], *, runs: bool, told: str
) -> None:
    wire = WIRES[1]
    for number, said in enumerate(gates):
        gate(home, f"{number}0-gate", said)
    server = serve(wire, use("bash", command="touch made; echo made it"), say("Done."))

    answer = hs("go", env=wire.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert (project / "made").exists() == runs
    assert told in bodies(session_of(home))[2][1]


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho maybe\n", "#!/no/such/interpreter\n"]
)
def test_a_gate_that_breaks_is_a_no(hs: Hs, serve: Serve, home: Path, project: Path, text: str) -> None:
    wire = WIRES[1]
    program(home / ".harness" / "hooks.d" / "tool_gate" / "10-broken", text)
    gate(home, "20-good", ALLOW)
    server = serve(wire, use("bash", command="touch made"), say("Done."))

    answer = hs("go", env=wire.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert not (project / "made").exists()
    assert "10-broken" in bodies(session_of(home))[2][1]


def test_what_a_gate_has_changed_is_what_runs_and_what_the_next_one_sees(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    wire = WIRES[1]
    gate(home, "10-change", {"input": {"command": "echo changed > made"}})
    seen = home / "seen"
    program(home / ".harness" / "hooks.d" / "tool_gate" / "20-see", f'#!/bin/sh\ntee "{seen}"\n')
    server = serve(wire, use("bash", command="echo original > made"), say("Done."))

    hs("go", env=wire.environment(server))

    assert (project / "made").read_text(encoding="utf-8") == "changed\n"
    assert json.loads(seen.read_text(encoding="utf-8"))["input"] == {"command": "echo changed > made"}
