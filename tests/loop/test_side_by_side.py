"""Subagents, calls side by side, and a model that goes round in circles."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from harness_lib.system.processes import process
from tests.conftest import for_release
from tests.loop.conftest import CHAT, Done, Follow, Go, Hs, Serve, Started, Wire, bodies
from tests.loop.in_process import results_of
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import Json, ModelServer, Step, Use, bash, say, use
from tests.loop.source_files import (
    at_home,
    write,
    write_models,
    write_program,
    write_provider,
    write_script,
    write_tool,
)
from tests.run_to_end import Said

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


def meeting(project: Path, *, reads: bool, patience: float) -> None:
    os.mkfifo(project / "met")
    write_program("tools/meet", MEETS.format(reads=reads, patience=patience))


def results() -> list[str]:
    return [body.strip() for name, body in bodies() if "tool_result" in name]


def test_calls_that_only_read_run_side_by_side_and_their_results_stand_in_order(
    done: Done, wire: Wire, project: Path
) -> None:
    meeting(project, reads=True, patience=30)
    server, _ = done(BOTH, say("Done."), wire=wire)
    assert results() == ["met\nread done", "write done"]
    # What is for us is refused by hosts.
    assert "readOnlyHint" not in str(server.requests)


def test_calls_that_do_more_than_read_run_one_after_another(go: Go, project: Path) -> None:
    meeting(project, reads=False, patience=0.5)
    go(BOTH, say("Done."))
    assert results() == ["nobody came", "nobody came"]


def test_a_call_that_reads_sees_what_the_one_before_it_has_written(go: Go, project: Path) -> None:
    write(project / "f", "old")
    reading = Use("read_file", {"path": "f"})
    writing = Use("write_file", {"path": "f", "content": "new"})
    go(Step(uses=(reading, reading, writing, reading, reading)), say("Done."))
    assert [text.partition(":")[2] for text in results() if "#" in text] == ["old", "old", "new", "new"]


def test_a_hook_before_the_tools_sees_each_call_before_it_runs(go: Go, project: Path) -> None:
    seen = project / "seen"
    write_script("hooks.d/tool_exec/05-see", f"echo hook >> '{seen}'\ncat")
    text = MEETS.format(reads=True, patience=1).replace(
        "arguments = json", f"open({str(seen)!r}, 'a').write('tool\\n'); arguments = json"
    )
    write_program("tools/meet", text.replace('["cat", "met"]', '["true"]'))
    go(Step(uses=(Use("meet", {"do": "read"}),) * 3), say("Done."))
    assert seen.read_text().split() == ["hook", "tool"] * 3


def test_a_denied_call_does_not_run_beside_the_others(go: Go, project: Path) -> None:
    write(project / "open", "open")
    gate = 'import json, sys\ncall = json.load(sys.stdin)\nshut = call["input"]["path"] == "shut"\n'
    gate += 'print(json.dumps(call | ({"decision": "deny", "reason": "shut"} if shut else {})))\n'
    write_program("hooks.d/tool_gate/10-shut", f"#!/usr/bin/env python3\n{gate}")
    calls = tuple(Use("read_file", {"path": path}) for path in ("open", "shut", "open"))
    go(Step(uses=calls), say("Done."))
    assert [text.partition(":")[2].strip() for text in results()] == ["open", "denied: shut", "open"]


def test_ctrl_c_ends_all_that_runs_side_by_side(started: Started, serve: Serve, project: Path) -> None:
    os.mkfifo(project / "pids")
    write_tool("meet", "echo $$ > pids; exec sleep 600", annotations={"readOnlyHint": True})
    serve(CHAT, BOTH, say("never"))
    run = started("RUN it", stderr=subprocess.DEVNULL)
    # Our own end keeps it open, so that no line is missed between two writers.
    with os.fdopen(os.open(project / "pids", os.O_RDWR)) as said:
        pids = [int(said.readline()) for _ in range(2)]

    run.send_signal(signal.SIGINT)

    assert run.wait() == 130
    for pid in pids:
        assert process.find(pid) is None


class Crowd(ModelServer):
    """Holds its answers to subagents until four are there, and a moment longer for a fifth."""

    def __init__(self, *steps: Step) -> None:
        self.inside, self.most = 0, 0
        self.four, self.five = threading.Event(), threading.Event()
        self.counting = threading.Lock()
        super().__init__(OpenAI, list(steps))

    def next_step(self, body: Json, headers: dict[str, str]) -> Step:
        step = super().next_step(body, headers)
        if "Count." in str(body["messages"]) and "Count them." not in str(body["messages"]):
            with self.counting:
                self.inside += 1
                self.most = max(self.most, self.inside)
                if self.inside >= 4:
                    (self.four if self.inside == 4 else self.five).set()
            self.four.wait(60)
            self.five.wait(1)
            with self.counting:
                self.inside -= 1
        return step


def test_four_subagents_work_at_once_and_no_fifth(hs: Hs) -> None:
    asked = Step(uses=tuple(Use("agent", {"prompt": "Count."}, id=f"c{number}") for number in range(6)))
    with Crowd(asked, say("Six.")) as server:
        answer = hs("Count them.", env=CHAT.environment(server))

    assert answer.out == "Six.\n", answer.err
    assert server.most == 4
    sent = [message for message in server.requests[-1]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in sent] == [f"c{number}" for number in range(6)]
    assert len(list(at_home("sessions").iterdir())) == 7


def test_a_tool_of_a_sources_named_agent_is_no_subagent(go: Go, project: Path) -> None:
    meeting(project, reads=False, patience=0.5)
    tools = at_home("tools")
    text = (tools / "meet").read_text().replace('"name": "meet"', '"name": "agent"')
    write_program(tools / "agent", text)
    calls = tuple(Use("agent", {"do": do}) for do in ("read", "write"))
    go(Step(uses=calls), use("read_file", path="nope"), say("Done."))
    assert results()[:2] == ["nobody came", "nobody came"]


# An answer of the test's server costs so much.
PRICES, EACH = "m price_in=1000 price_out=100 price_cached=10", 0.00654


def parent_of() -> Path:
    """Return the session that no subagent made."""
    confs = at_home("sessions").glob("*/session.conf")
    (session,) = (path.parent for path in confs if "parent=" not in path.read_text())
    return session


def result_of() -> str:
    (result,) = (parent_of() / "messages").glob("*-tool_result.md")
    return result.read_text()


@pytest.fixture
def priced(go: Go) -> Go:
    """Return a callable in which a model with prices lets a subagent count, and takes the next steps."""
    write_models(PRICES)

    def work(*steps: Step, words: tuple[str, ...]) -> tuple[ModelServer, Said]:
        return go(use("agent", prompt="Count."), *steps, words=(*words, "ask"), env={"HARNESS_MODEL": "m"})

    return work


def test_what_a_subagent_costs_is_its_parents_cost(priced: Go, hs: Hs) -> None:
    steps = (use("agent", prompt="Count."), say("Seven."), say("It says seven."), say("They say seven."))
    _, answer = priced(*steps, words=("-p", "--json"))
    result = json.loads(answer.out.splitlines()[-1])
    assert result["output"] == "They say seven.", answer.err
    assert result["cost"] == round(5 * EACH, 6)
    assert (result["tokens_in"], result["tokens_out"]) == (50, 25)
    assert "\ntokens_in: 30\ntokens_out: 15\ncost: 0.019620\n" in result_of()
    assert f"cost={5 * EACH:.4f}\n" in hs("session", "show", parent_of().name).out


@pytest.mark.release
def test_a_subagent_may_spend_what_its_parent_has_left(priced: Go) -> None:
    server, answer = priced(bash("ls"), say("never"), words=("--max-cost", "0.01"))
    assert answer.code == 1
    assert "The limit of 0.01 dollars is reached" in answer.err
    assert "The limit of 0.003460 dollars" in (parent_of() / "subagents.log").read_text()
    assert len(server.requests) == 2


def test_where_nothing_is_left_no_subagent_begins(priced: Go) -> None:
    server, answer = priced(say("never"), words=("--max-cost", "0.005"))
    assert answer.code == 1
    assert "--max-cost" in result_of()
    assert len(server.requests) == 1


def test_what_a_killed_subagent_has_cost_is_unknown(priced: Go) -> None:
    _, answer = priced(bash("kill -9 $PPID"), say("Done."), words=("-p", "--json"))
    assert json.loads(answer.out.splitlines()[-1])["cost"] is None, answer.err
    assert "exit code -9" in result_of()


@pytest.mark.release
def test_another_model_keeps_the_provider_and_another_provider_brings_its_model(hs: Hs, serve: Serve) -> None:
    server = serve(
        CHAT,
        use("agent", prompt="Count.", model="small"),
        say("One."),
        use("agent", prompt="Count.", provider="ours"),
        say("Two."),
        say("Done."),
    )
    write_provider("ours", f"{server.address}/v1/chat/completions", "model=theirs")

    answer = hs("ask", env={"HARNESS_MODEL": "m", "HARNESS_PROVIDER": "openai"})

    assert answer.out == "Done.\n", answer.err
    assert [request["model"] for request in server.requests] == ["m", "small", "m", "theirs", "m"]


@pytest.mark.release
def test_nothing_that_a_subagent_starts_is_taken_for_it(go: Go) -> None:
    server, _ = go(use("agent", prompt="Count."), bash("env"), say("One."), say("Done."), words=("ask",))
    assert "HARNESS_LEVEL=1" in str(server.requests[2])
    assert "HARNESS_ACCOUNT_FILE" not in str(server.requests[2])


SAME, OTHER = bash("echo same"), bash("echo other")


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        ([SAME], 5),
        *for_release(
            ([SAME, OTHER] * 9, 10),
            ([bash("echo new > f; seq 99999")], 5),
            ([Step(uses=(Use("bash", {"command": "echo same"}), Use("bash", {"command": "false"})))], 5),
        ),
    ],
    ids=["one call", "two in turns", "a long result", "two calls in one answer"],
)
def test_the_same_call_with_the_same_result_five_times_ends_the_turn(
    follow: Follow, steps: list[Step], asked: int
) -> None:
    run, server, ending = follow(CHAT, *steps, HARNESS_MAX_TURNS="20")
    assert ending.failed
    assert "the same result 5 times" in ending.output
    assert len(server.requests) == asked
    assert len(results_of(run)) == asked * len(steps[0].uses)


@pytest.mark.parametrize(
    "step",
    [
        bash("date +%N"),
        Step(uses=(Use("bash", {"command": "echo x >> f; wc -l < f"}), Use("bash", {"command": "true"}))),
    ],
    ids=["another result", "a call that gets on beside it"],
)
def test_a_turn_goes_on_while_anything_is_new(follow: Follow, step: Step) -> None:
    _, _, ending = follow(CHAT, *[step] * 8, say("Done."))
    assert ending.output == "Done."


def test_equal_calls_of_one_answer_are_one_repetition(follow: Follow) -> None:
    many = Step(uses=(Use("bash", {"command": "echo same"}),) * 7)
    _, _, ending = follow(CHAT, many, say("Done."))
    assert ending.output == "Done."
