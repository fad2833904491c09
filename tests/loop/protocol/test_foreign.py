"""Plugins that are programs, of each kind and in three languages: nobody can tell them from ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.loop.conftest import ANTHROPIC, Done, Go, Hs, bodies, session_of
from tests.loop.foreign_plugins import PROGRAMS, write_echo_pack, write_plugins
from tests.loop.servers.script import Step, Use, say, use
from tests.loop.source_files import write_program

# The first key of what a hook reads that stands before all of ours, and of one behind them. Those of the
# stage `sources` are called so often that they have a test of their own.
FIRST = {
    "resolve": ("provider", "provider"), "start": ("", "next_state"),
    "assemble": ("", "messages"), "send": ("messages", "id"), "receive": ("id", "next_state"),
    "tool_exec": ("tool_calls", "call_id"), "tool_gate": ("id", "id"),
    "tool_done": ("call_id", "next_state"), "error": ("error", "output"), "done": ("output", "output"),
}  # fmt: skip


@pytest.fixture(params=["bash", "python3", *for_release("node")])
def language(request: pytest.FixtureRequest) -> str:
    """Each language in turn."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def test_a_tool_a_gate_and_a_hook_in_each_stage(
    go: Go, done: Done, home: Path, project: Path, language: str
) -> None:
    hooks = [f"hooks.d/{stage}/{place}" for stage in FIRST for place in ("05-before", "95-behind")]
    write_plugins(home / ".harness", "tools/greet", "hooks.d/tool_gate/10-gate", *hooks, language=language)
    seen = home / "seen"
    commands = (Use("bash", {"command": "touch allowed"}), Use("bash", {"command": "touch forbidden"}))
    server, _ = done(use("greet", who="you"), Step(uses=commands), say("Done."), env={"SEEN": str(seen)})
    lines = [line.split() for line in seen.read_text(encoding="utf-8").splitlines()]
    _, wrong = go(Step(status=400), env={"SEEN": str(seen)})

    assert "greet" in [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    (session,) = (each for each in (home / ".harness/sessions").iterdir() if len(bodies(each)) > 2)
    results = [body for name, body in bodies(session) if "tool_result" in name]
    assert all(part in results[0] for part in (f"hello from {language}", "you", "and stderr"))
    assert "error: true" in (session / "messages" / "0003-tool_result.md").read_text(encoding="utf-8")
    assert [path.name for path in project.iterdir()] == ["allowed"]
    assert results[2].strip() == f"error: denied: no, says {language}"
    turn = ["assemble", "send", "receive"]
    once = ["tool_exec", "tool_gate", "tool_done"]
    stages = ["resolve", "start", *turn, *once, *turn, *once, *once, *turn, "done"]
    assert [line[1] for line in lines if line[0] == "before"] == stages
    assert wrong.code == 1
    assert {" ".join(line.split()[1:]) for line in seen.read_text(encoding="utf-8").splitlines()} == {
        f"{stage} {key}".strip() for stage, keys in FIRST.items() for key in keys
    }


def test_a_provider_pack_a_command_and_a_hook_of_sources(
    hs: Hs, home: Path, tmp_path: Path, language: str
) -> None:
    write_echo_pack(home / ".harness", language)
    write_plugins(home / ".harness", "commands/ship", "hooks.d/sources/50-team", language=language)
    write_program(tmp_path / "team/commands/hail", "#!/bin/sh\necho hail\n")
    team = {"TEAM": str(tmp_path / "team")}
    answer, shipped = hs("say this", env=team), hs("ship", "it", "now", env=team)
    shown = hs("help", env=team).out

    assert (answer.code, answer.out) == (0, "echo-1: say this\n"), answer.err
    assert (shipped.code, shipped.out) == (9, "shipped it now\n")
    assert hs("hail", env=team).out == "hail\n"
    assert "  echo         Says it\n      ECHO_KEY  none is needed\n" in shown
    assert "  ship         Says it\n" in shown


def test_a_tool_takes_the_place_of_ours(done: Done, home: Path) -> None:
    program = PROGRAMS["bash"].replace("greet", "bash")
    write_program(home / ".harness" / "tools" / "bash", program)
    done(use("bash", command="rm -rf /nothing"), say("Done."))
    assert "hello from bash" in bodies(session_of(home))[2][1]


def test_a_hook_that_fails_ends_the_run_with_its_name_and_exit_1(go: Go, home: Path) -> None:
    hook = '#!/bin/sh\necho \'{"error":"not today"}\'\nexit 4\n'
    path = write_program(home / ".harness" / "hooks.d" / "send" / "05-guard", hook)
    server, answer = go(say("never"), wire=ANTHROPIC)
    assert (answer.code, answer.out, server.requests) == (1, "", [])
    assert "error: not today" in answer.err
    assert f"hook {path} exited 4 during send" in answer.err


def test_an_error_hook_can_go_on(done: Done, home: Path) -> None:
    marker = home / "failed-once"
    fails = f'#!/bin/sh\n[ -e "{marker}" ] || {{ touch "{marker}"; exit 1; }}\ncat\n'
    write_program(home / ".harness/hooks.d/send/05-guard", fails)
    retry = '#!/bin/sh\necho \'{"next_state":"assemble"}\'\n'
    write_program(home / ".harness/hooks.d/error/20-retry", retry)
    done(say("Done."))
    assert marker.exists()


def test_a_tool_that_is_added_during_a_run_is_offered_at_the_next_request(done: Done, home: Path) -> None:
    path = home / ".harness" / "tools" / "greet"
    command = f"mkdir -p '{path.parent}'; cat > '{path}' <<'END'\n{PROGRAMS['bash']}END\nchmod +x '{path}'"
    server, _ = done(use("bash", command=command), use("greet"), say("Done."))
    offered = [[tool["function"]["name"] for tool in request["tools"]] for request in server.requests]
    assert ["greet" in names for names in offered] == [False, True, True]
    assert "hello from bash" in bodies(session_of(home))[4][1]


SCHEMAS: list[object] = [
    {"name": "x"},
    {"name": "t", "input_schema": "none"},
    {"name": "t", "input_schema": {"type": "string"}},
    {"name": "t", "input_schema": {"type": "object", "required": [1, {}]}},
    {"name": "t", "input_schema": {"type": "object", "properties": ["a"]}},
    {"name": "t", "description": ["no", "text"]},
]
BROKEN = ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho no json\n", "#!/no/such/interpreter\n"]


@pytest.mark.parametrize("text", [*BROKEN, *(f"#!/bin/sh\necho '{json.dumps(each)}'\n" for each in SCHEMAS)])
def test_a_broken_tool_is_named_once_and_left_out(done: Done, home: Path, text: str) -> None:
    write_program(home / ".harness" / "tools" / "t", text)
    (home / ".harness" / "tools" / "directory").mkdir()
    (home / ".harness" / "tools" / "not-executable").write_text("x", encoding="utf-8")
    server, answer = done(use("t", a=1), use("bash", command="echo hello"), say("Done."))
    assert answer.err.count("left out") == 1
    offered = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    assert not offered & {"t", "directory", "not-executable"}


@pytest.mark.parametrize(
    "shape", [{"messages": "abc"}, {"messages": [1]}, {"tools": "x"}, {"tools": [1]}], ids=str
)
def test_a_payload_of_another_shape_is_the_hooks_error(go: Go, home: Path, shape: dict[str, object]) -> None:
    text = f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps({**shape, 'next_state': 'send'})}'\n"
    write_program(home / ".harness/hooks.d/assemble/90-else", text)
    server, answer = go(say("never"))
    assert (answer.code, server.requests) == (1, [])
    assert f"ended with {next(iter(shape))} that are no list of objects" in answer.err
