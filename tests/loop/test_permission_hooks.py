"""Gates and `approve`: what runs without a question, and nothing that one of them has forbidden."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness_lib.loop import discovery
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import asking
from harness_lib.loop.tools.asking import Question, Said, always_about
from tests.loop.conftest import Done, Go, Hs
from tests.loop.in_process import begun
from tests.loop.mcp_servers import entry
from tests.loop.servers.script import Json, bash, say, use
from tests.loop.source_files import write, write_program, write_script, write_servers, write_tool

ALLOW, DENY = {"decision": "allow"}, {"decision": "deny", "reason": "not on my watch"}
ASK = {"decision": "ask", "reason": "it deletes"}


def gate(name: str, said: Mapping[str, object]) -> None:
    """Put a gate there that adds `said` to what it reads."""
    text = "#!/usr/bin/env python3\nimport json, sys\ncall = json.load(sys.stdin)\n"
    text += f"print(json.dumps(call | {dict(said)!r}))\n"
    write_program(f"hooks.d/tool_gate/{name}", text)


@pytest.fixture
def run(project: Path) -> Runtime:
    """Return a run without a user who could be asked."""
    return begun(project)


def decided(run: Runtime, name: str = "bash", **tool_input: object) -> asking.Verdict:
    discovery.refresh(run)
    return asking.decide(run, {"id": "1", "name": name, "input": tool_input or {"command": "touch made"}})


@pytest.mark.parametrize(
    ("said", "decision", "reason"),
    [
        ([{}], "allow", ""),
        ([ALLOW], "allow", ""),
        ([{"decision": None, "input": None, "reason": None}], "allow", ""),
        ([DENY], "deny", "not on my watch"),
        ([DENY, ALLOW], "deny", "not on my watch"),
        ([ALLOW, DENY], "deny", "not on my watch"),
        ([ASK], "deny", "the user has to be asked"),
        ([ASK, ALLOW], "deny", "it deletes"),
        ([ASK, DENY], "deny", "not on my watch"),
        ([{"decision": "perhaps"}], "deny", "unknown decision"),
        ([{"input": "no object"}], "deny", "not a JSON object"),
    ],
)
def test_the_strictest_gate_counts(run: Runtime, said: list[Json], decision: str, reason: str) -> None:
    for number, each in enumerate(said):
        gate(f"{number}0-gate", each)
    verdict = decided(run)
    assert (verdict.decision, reason in verdict.reason) == (decision, True), verdict
    assert verdict.input == {"command": "touch made"}


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho maybe\n", "#!/no/such/interpreter\n"]
)
def test_a_gate_that_breaks_is_a_no(run: Runtime, text: str) -> None:
    write_program("hooks.d/tool_gate/10-broken", text)
    gate("20-good", ALLOW)
    verdict = decided(run)
    assert (verdict.decision, "10-broken" in verdict.reason) == ("deny", True), verdict


def test_what_a_gate_has_changed_is_what_runs_and_what_the_next_one_sees(go: Go, project: Path) -> None:
    gate("10-change", {"input": {"command": "echo changed > made"}})
    seen = Path.home() / "seen"
    write_script("hooks.d/tool_gate/20-see", f'tee "{seen}"')
    go(bash("echo original > made"), say("Done."))
    assert (project / "made").read_text() == "changed\n"
    assert json.loads(seen.read_text())["input"] == {"command": "echo changed > made"}


def test_a_gate_stands_before_tools_of_servers_of_others_and_of_subagents(done: Done, project: Path) -> None:
    write_program(
        "hooks.d/tool_gate/10-log",
        '#!/usr/bin/env python3\nimport json, sys\ncall = json.load(sys.stdin)\nname = call["name"]\n'
        'with open("asked", "a") as log:\n    log.write(name + "\\n")\n'
        'said = {} if name == "agent" else {"decision": "deny", "reason": "not on my watch"}\n'
        "print(json.dumps(call | said))\n",
    )
    write_tool("made", "touch ran")
    write_servers(ours=entry())
    asked = ["made", "mcp__ours__z_echo", "agent", "bash", "mcp__ours__z_echo"]
    server, _ = done(
        use("made"),
        use("mcp__ours__z_echo", text="x"),
        use("agent", prompt="make it"),
        bash("touch ran"),
        use("mcp__ours__z_echo", text="x"),
        say("Done."),
    )
    assert (project / "asked").read_text().split() == asked
    assert not (project / "ran").exists()
    refused = [str(request["messages"][-1]) for request in server.requests if len(request["messages"]) > 2]
    assert sum("denied: not on my watch" in words for words in refused) == 4


@pytest.mark.parametrize(
    ("mode", "decision", "reason"),
    [("auto", "allow", ""), ("read-only", "deny", "nothing may be changed"), ("ask", "deny", "none here")],
)
def test_a_mode_says_what_runs_where_nobody_is(
    run: Runtime, project: Path, mode: str, decision: str, reason: str
) -> None:
    write(project / "there", "content of a file\n")
    run.env["HARNESS_APPROVE"] = mode
    assert decided(run, "read_file", path="there").decision == "allow"
    verdict = decided(run, "write_file", path="made", content="x")
    assert (verdict.decision, reason in verdict.reason) == (decision, True), verdict


def test_a_setting_counts_and_the_option_before_it(go: Go, hs: Hs, project: Path) -> None:
    write("settings.conf", "approve=read-only\n")
    go(bash("touch made"), say("Done."), bash("touch made"))
    before = (project / "made").exists()
    hs("--max-turns", "1", "--approve=auto", "go")

    assert (before, (project / "made").exists()) == (False, True)
    assert hs("--approve", "perhaps", "go").code == 2


def test_a_setting_that_is_none_runs_nothing(run: Runtime) -> None:
    write("settings.conf", "approve=sometimes\n")
    verdict = decided(run)
    assert (verdict.decision, "approve=sometimes must be one of" in verdict.reason) == ("deny", True), verdict


def test_always_for_one_verb_is_no_yes_to_another(run: Runtime) -> None:
    asked: list[str] = []

    def person_says_always(question: Question) -> Said:
        asked.append(str(question.input["command"]))
        return Said(allowed=True, always=True)

    run.asker = person_says_always
    for command in ("git status", "git status --short", "git reset --hard", "git -c alias.zz=!id zz"):
        for _ in range(2):
            assert asking.put(run, Question("bash", {"command": command})).allowed

    assert asked == [
        "git status", "git reset --hard", "git -c alias.zz=!id zz", "git -c alias.zz=!id zz",
    ]  # fmt: skip


# What is offered to be allowed for good, by what was typed.
OFFERED = {
    "git status": "bash git status",
    "  git\tstatus --short": "bash git status",
    "git reset --hard": "bash git reset",
    "git stash drop": "bash git stash drop",
    "docker compose up": "bash docker compose up",
    "gh pr view 1": "bash gh pr view",
    "/usr/bin/git status": "bash /usr/bin/git status",
    "pip3 install x": "bash pip3 install",
    "ls -l": "bash ls",
    "make test": "bash make test",
    "make test deploy": "bash make test deploy",
}
NOT_OFFERED = [
    "git -c alias.zz=!id zz", "git --git-dir=x status", "git submodule foreach id", "git rebase main",
    "git stash -u", '"git" status', "g''it status", "git 'status'", "git\u00a0status", "git stat?s", "git",
    "npm exec id", "npm x id", "uv run id", "docker run image", "python3.11 x.py", "./node x", "perl -e 1",
    "sed s/a/b/e x", "nohup rm x", "time rm x", "git status && rm -r x", "git status > x",
    "git status\nrm -r x", "git status; rm -r x", "git $(rm -r x)", "NAME=1 rm -r x", "sudo rm -r x",
    "/usr/bin/env rm -r x", "bash -c whatever", "xargs rm", "* x", "",
]  # fmt: skip


@pytest.mark.parametrize("command", [*OFFERED, *NOT_OFFERED])
def test_always_is_offered_where_the_first_words_say_what_runs(command: str) -> None:
    assert always_about(Question("bash", {"command": command})) == OFFERED.get(command, "")
