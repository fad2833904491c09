"""Calls of one answer: what only reads runs side by side, everything else in the order of the answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, Wire, bodies, session_of
from tests.loop.environment import environment
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import ModelServer, Step, Use, say, use
from tests.loop.source_files import write_program

# Two calls that need each other: one after the other, the first would wait in vain.
MEETS = """\
#!/usr/bin/env python3
import json, os, subprocess, sys
if sys.argv[1] == "--schema":
    hint = {{"readOnlyHint": {reads}}}
    print(json.dumps({{"name": "meet", "input_schema": {{"type": "object"}}, "annotations": hint}}))
elif sys.argv[1] == "--exec":
    arguments = json.load(sys.stdin)
    commands = {{"read": ["cat", "met"], "write": ["sh", "-c", "echo met > met"]}}
    try:
        subprocess.run(commands[arguments["do"]], timeout={patience}, check=True)
        print(arguments["do"], "done")
    except subprocess.TimeoutExpired:
        print("nobody came")
"""
BOTH = Step(uses=(Use("meet", {"do": "read"}), Use("meet", {"do": "write"})))


def meeting(home: Path, project: Path, *, reads: bool, patience: float) -> None:
    os.mkfifo(project / "met")
    write_program(home / ".harness" / "tools" / "meet", MEETS.format(reads=reads, patience=patience))


def results(home: Path) -> list[str]:
    return [body.strip() for name, body in bodies(session_of(home)) if "tool_result" in name]


def test_calls_that_only_read_run_side_by_side_and_their_results_stand_in_order(
    hs: Hs, serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    meeting(home, project, reads=True, patience=30)
    server = serve(wire, BOTH, say("Done."))

    answer = hs("go", env=wire.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert results(home) == ["met\nread done", "write done"]
    # What is for us is refused by hosts.
    assert "readOnlyHint" not in str(server.requests)


def test_calls_that_do_more_than_read_run_one_after_another(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    meeting(home, project, reads=False, patience=0.5)
    server = serve(CHAT, BOTH, say("Done."))

    hs("go", env=CHAT.environment(server))

    assert results(home) == ["nobody came", "nobody came"]


def test_a_call_that_reads_sees_what_the_one_before_it_has_written(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    (project / "f").write_text("old", encoding="utf-8")
    reading = Use("read_file", {"path": "f"})
    server = serve(
        CHAT,
        Step(uses=(reading, reading, Use("write_file", {"path": "f", "content": "new"}), reading, reading)),
        say("Done."),
    )

    hs("go", env=CHAT.environment(server))

    assert [text.partition(":")[2] for text in results(home) if "#" in text] == ["old", "old", "new", "new"]


def test_a_hook_before_the_tools_sees_each_call_before_it_runs(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    seen = project / "seen"
    write_program(
        home / ".harness" / "hooks.d" / "tool_exec" / "05-see", f"#!/bin/sh\necho hook >> '{seen}'\ncat\n"
    )
    text = MEETS.format(reads=True, patience=1).replace(
        "arguments = json", f"open({str(seen)!r}, 'a').write('tool\\n'); arguments = json"
    )
    write_program(home / ".harness" / "tools" / "meet", text.replace('["cat", "met"]', '["true"]'))
    server = serve(CHAT, Step(uses=(Use("meet", {"do": "read"}),) * 3), say("Done."))

    hs("go", env=CHAT.environment(server))

    assert seen.read_text(encoding="utf-8").split() == ["hook", "tool"] * 3


def test_a_denied_call_does_not_run_beside_the_others(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    (project / "open").write_text("open", encoding="utf-8")
    gate = 'import json, sys\ncall = json.load(sys.stdin)\nshut = call["input"]["path"] == "shut"\n'
    gate += 'print(json.dumps(call | ({"decision": "deny", "reason": "shut"} if shut else {})))\n'
    write_program(home / ".harness" / "hooks.d" / "tool_gate" / "10-shut", f"#!/usr/bin/env python3\n{gate}")
    calls = tuple(Use("read_file", {"path": path}) for path in ("open", "shut", "open"))
    server = serve(CHAT, Step(uses=calls), say("Done."))

    hs("go", env=CHAT.environment(server))

    assert [text.partition(":")[2].strip() for text in results(home)] == ["open", "denied: shut", "open"]


def test_ctrl_c_ends_all_that_runs_side_by_side(serve: Serve, home: Path, project: Path) -> None:
    os.mkfifo(project / "pids")
    write_program(
        home / ".harness" / "tools" / "meet",
        '#!/bin/sh\nif [ "$1" = --schema ]; then\n'
        'echo \'{"name":"meet","input_schema":{"type":"object"},"annotations":{"readOnlyHint":true}}\'\n'
        "else\necho $$ > pids\nexec sleep 600\nfi\n",
    )
    server = serve(CHAT, BOTH, say("never"))
    run = subprocess.Popen(
        [sys.executable, "-m", "harness_lib.hs", "RUN it"],
        env=environment(CHAT.environment(server)),
        cwd=project,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pids: list[int] = []
    while len(pids) < 2:
        pids += map(int, (project / "pids").read_text(encoding="utf-8").split())

    run.send_signal(signal.SIGINT)

    assert run.wait(60) == 130
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


class Crowd(ModelServer):
    """Holds its answers to subagents until four are there, and a moment longer for a fifth."""

    def __init__(self, *steps: Step) -> None:
        self.inside, self.most = 0, 0
        self.four, self.five = threading.Event(), threading.Event()
        self.counting = threading.Lock()
        super().__init__(Crowded, list(steps))


class Crowded(OpenAI):
    server: Crowd

    def events(self, step: Step, body: dict[str, object]) -> list[tuple[str, dict[str, object] | str]]:
        if "Count." not in str(body["messages"]) or "Count them." in str(body["messages"]):
            return super().events(step, body)
        with self.server.counting:
            self.server.inside += 1
            self.server.most = max(self.server.most, self.server.inside)
            if self.server.inside == 4:
                self.server.four.set()
            if self.server.inside == 5:
                self.server.five.set()
        self.server.four.wait(60)
        self.server.five.wait(1)
        with self.server.counting:
            self.server.inside -= 1
        return super().events(step, body)


def test_four_subagents_work_at_once_and_no_fifth(hs: Hs, home: Path) -> None:
    asked = Step(uses=tuple(Use("agent", {"prompt": "Count."}, id=f"c{number}") for number in range(6)))
    server = Crowd(asked, say("Six."))

    answer = hs("Count them.", env=CHAT.environment(server))

    server.shutdown()
    server.server_close()
    assert answer.out == "Six.\n", answer.err
    assert server.most == 4
    sent = [message for message in server.requests[-1]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in sent] == [f"c{number}" for number in range(6)]
    assert server.refusals == []
    assert len(list((home / ".harness" / "sessions").iterdir())) == 7


def test_a_tool_of_a_sources_named_agent_is_no_subagent(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    meeting(home, project, reads=False, patience=0.5)
    tools = home / ".harness" / "tools"
    text = (tools / "meet").read_text(encoding="utf-8").replace('"name": "meet"', '"name": "agent"')
    write_program(tools / "agent", text)
    calls = tuple(Use("agent", {"do": do}) for do in ("read", "write"))
    server = serve(CHAT, Step(uses=calls), use("read_file", path="nope"), say("Done."))

    hs("go", env=CHAT.environment(server))

    assert results(home)[:2] == ["nobody came", "nobody came"]
