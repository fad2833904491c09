"""Plugins that are programs, of each kind and in two languages: nobody can tell them from ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness_lib.loop import foreign, turn
from harness_lib.loop.tools import builtin
from tests.loop.conftest import CHAT, Done, Go, Hs, Serve, bodies, results_in, session_of
from tests.loop.foreign_plugins import PROGRAMS, write_echo_pack, write_plugins
from tests.loop.in_process import started
from tests.loop.servers.script import Step, Use, bash, say, use
from tests.loop.source_files import at_home, write_program, write_script, write_tool
from tests.waiting import until

# The first key of what a hook reads that stands before all of ours, and of one behind them. Those of the
# stage `sources` are called so often that they have a test of their own.
FIRST = {
    "resolve": ("provider", "provider"), "start": ("", "next_state"),
    "assemble": ("", "messages"), "send": ("messages", "id"), "receive": ("id", "next_state"),
    "tool_exec": ("tool_calls", "call_id"), "tool_gate": ("id", "id"),
    "tool_done": ("call_id", "next_state"), "error": ("error", "output"), "done": ("output", "output"),
}  # fmt: skip


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_tool_and_a_gate(done: Done, project: Path, language: str) -> None:
    write_plugins("tools/greet", "hooks.d/tool_gate/10-gate", language=language)
    commands = (Use("bash", {"command": "touch allowed"}), Use("bash", {"command": "touch forbidden"}))
    server, _ = done(use("greet", who="you"), Step(uses=commands), say("Done."))

    assert "greet" in [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    results = results_in()
    assert all(part in results[0] for part in (f"hello from {language}", "you", "and stderr"))
    assert "error: true" in (session_of() / "messages/0003-tool_result.md").read_text()
    assert [path.name for path in project.iterdir()] == ["allowed"]
    assert results[2].strip() == f"error: denied: no, says {language}"


def test_a_hook_in_each_stage(go: Go, home: Path) -> None:
    """The languages take turns: of a hook, nobody can tell in which it is written."""
    languages = list(PROGRAMS)
    for number, stage in enumerate(FIRST):
        hooks = (f"hooks.d/{stage}/05-before", f"hooks.d/{stage}/95-behind")
        write_plugins(*hooks, language=languages[number % len(languages)])
    seen = home / "seen"
    two = Step(uses=(Use("bash", {"command": "true"}), Use("bash", {"command": "false"})))
    _, answer = go(two, Step(status=400), env={"SEEN": str(seen)})
    lines = [line.split() for line in seen.read_text().splitlines()]
    done = [line.split() for line in _seen_when_done(go, seen)]

    assert answer.code == 1
    turn, once = ["assemble", "send", "receive"], ["tool_exec", "tool_gate", "tool_done"]
    stages = ["resolve", "start", *turn, *once, *once, "assemble", "send", "error"]
    assert [line[1] for line in lines if line[0] == "before"] == stages
    assert {" ".join(line[1:]) for line in lines + done} == {
        f"{stage} {key}".strip() for stage, keys in FIRST.items() for key in keys
    }


def _seen_when_done(go: Go, seen: Path) -> list[str]:
    _, answer = go(say("Done."), env={"SEEN": str(seen)})
    assert answer.out == "Done.\n", answer.err
    return seen.read_text().splitlines()


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_provider_pack_a_command_and_a_hook_of_sources(hs: Hs, tmp_path: Path, language: str) -> None:
    write_echo_pack(language)
    write_plugins("commands/ship", "hooks.d/sources/50-team", language=language)
    write_script(tmp_path / "team/commands/hail", "echo hail")
    team = {"TEAM": str(tmp_path / "team")}
    answer, shipped = hs("say this", env=team), hs("ship", "it", "now", env=team)
    shown = hs("help", env=team).out

    assert (answer.code, answer.out) == (0, "echo-1: say this\n"), answer.err
    assert (shipped.code, shipped.out) == (9, "shipped it now\n")
    assert hs("hail", env=team).out == "hail\n"
    assert "  echo         Says it\n      ECHO_KEY  none is needed\n" in shown
    assert "  ship         Says it\n" in shown


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("yes err | head -c 9000000 >&2\necho The reason. >&2\nexit 1", "The reason.\n"),
        ("echo '<html>'", "echo exited 0 and printed no answer: <html>.\n"),
    ],
)
def test_of_a_provider_that_fails_what_it_has_said_is_told_in_short(go: Go, body: str, told: str) -> None:
    write_echo_pack()
    failing = f"#!/bin/sh\n[ $# = 0 ] || exit 0\n{body}\n"
    write_program("plugins/echo/providers/echo", failing)

    _, answer = go(say("never"), env={"HARNESS_PROVIDER": "echo", "HARNESS_MODEL": "m"})

    assert answer.code == 1
    assert answer.err.endswith(told)
    assert len(answer.err) < 20_000


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", ["hooks.d/start/05-hang", "plugins/echo/providers/echo"])
def test_a_hook_or_a_provider_that_hangs_fails_after_an_hour(
    serve: Serve, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As a tool does; HARNESS_TOOL_TIMEOUT makes it longer, never shorter: a hook may ask the user."""
    write_echo_pack()
    hang = f"#!/bin/sh\n[ $# = 0 ] || exit 0\nsleep 300 & echo $! > '{home}/pid'; wait\n"
    path = write_program(name, hang)
    env = {"HARNESS_PROVIDER": "echo", "HARNESS_TOOL_TIMEOUT": "1"}
    run = started(project, CHAT, serve(CHAT, say("never")), **env)
    assert foreign._longest(run) == 3600
    monkeypatch.setattr(foreign, "LONGEST_SECONDS", 1)

    ending = turn.follow(run)

    assert ending.failed
    assert re.search(rf"{re.escape(str(path))} did not end within 1 seconds", ending.output), ending
    assert not Path(f"/proc/{(home / 'pid').read_text().strip()}").exists()


def test_a_tool_takes_the_place_of_ours(done: Done) -> None:
    program = PROGRAMS["bash"].replace("greet", "bash")
    write_program("tools/bash", program)
    done(bash("rm -rf /nothing"), say("Done."))
    assert "hello from bash" in bodies()[2][1]


def test_an_error_hook_can_go_on(done: Done, home: Path) -> None:
    marker = home / "failed-once"
    fails = f'#!/bin/sh\n[ -e "{marker}" ] || {{ touch "{marker}"; exit 1; }}\ncat\n'
    write_program("hooks.d/send/05-guard", fails)
    retry = '#!/bin/sh\necho \'{"next_state":"assemble"}\'\n'
    write_program("hooks.d/error/20-retry", retry)
    done(say("Done."))
    assert marker.exists()


def test_no_error_hook_goes_on_behind_a_limit(go: Go, home: Path) -> None:
    retry = f'#!/bin/sh\necho again >> "{home}/asked"\necho \'{{"next_state":"assemble"}}\'\n'
    write_program("hooks.d/error/20-retry", retry)
    server, answer = go(*[Step(status=400, said="No.")] * 2, words=("--max-turns", "2", "hello"))

    assert (answer.code, len(server.requests)) == (1, 2)
    assert "The limit of 2 requests is reached" in answer.err
    assert (home / "asked").read_text() == "again\n" * 3


def test_programs_without_a_first_line_run_as_every_shell_runs_them(done: Done, home: Path) -> None:
    schema = json.dumps({"name": "greet", "description": "d", "input_schema": {"type": "object"}})
    write_program("tools/greet", f"[ $1 = --exec ] || exec echo '{schema}'\necho hello\n")
    write_program("hooks.d/start/50-mine", f"touch '{home}/ran'\ncat\n")

    server, _ = done(use("greet"), say("Done."))

    assert (home / "ran").exists()
    assert server.told(1) == "hello"


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("#!/bin/sh\r", "its first line ends in a carriage return (CRLF)"),
        ("#!/no/such/program", "its first line names /no/such/program, which is not there"),
        ("#! /no/such/program -x", "its first line names /no/such/program, which is not there"),
        ("\x7fELF\0\0", "Exec format error"),
    ],
)
def test_why_a_program_does_not_start_is_said(go: Go, first: str, why: str) -> None:
    tool = write_program("tools/mine", f"{first}\necho\n")
    hook = write_program("hooks.d/start/50-mine", f"{first}\ncat\n")

    _, answer = go(say("never"), words=("--json", "go"))
    tool_alone = go(say("Done."), words=("tool", "mine", "--schema"))[1].err

    assert f"hook {hook} cannot be started: {why}" in json.loads(answer.out.splitlines()[-1])["error"]
    assert why in tool_alone or "ELF" in first, tool_alone
    assert str(tool) in tool_alone


@pytest.mark.parametrize(("prints", "told"), [("", ""), ("echo boom; ", ": boom"), ("cat; ", "")])
def test_a_hook_that_fails_without_a_reason_is_named_in_the_error(go: Go, prints: str, told: str) -> None:
    path = write_script("hooks.d/start/50-mine", f"{prints}exit 3")

    _, answer = go(say("never"))

    assert f"error: hook {path} exited 3 during start{told}\n" in answer.err


SCHEMAS: list[dict[str, object]] = [
    {"name": "another"},
    {"input_schema": "none"},
    {"input_schema": {"type": "string"}},
    {"input_schema": {"type": "object", "required": [1, {}]}},
    {"input_schema": {"type": "object", "properties": ["a"]}},
    {"description": ["no", "text"]},
]
BROKEN = ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho no json\n", "#!/no/such/interpreter\n"]


def test_a_broken_tool_is_named_once_and_left_out(done: Done) -> None:
    tools = at_home("tools")
    said = [json.dumps({"name": f"t{number}", **each}) for number, each in enumerate(SCHEMAS)]
    for number, text in enumerate([*(f"#!/bin/sh\necho '{each}'\n" for each in said), *BROKEN]):
        write_program(tools / f"t{number}", text)
    (tools / "directory").mkdir()
    (tools / "not-executable").write_text("x")
    server, answer = done(use("t0", a=1), bash("echo hello"), say("Done."))
    for number in range(len(SCHEMAS) + len(BROKEN)):
        assert len(re.findall(rf"\bt{number} is left out", answer.err)) == 1, answer.err
    offered = " ".join(tool["function"]["name"] for tool in server.requests[0]["tools"])
    assert offered == "agent bash edit_file glob grep read_file replace skill write_file"


def test_a_tool_that_hangs_is_ended_with_what_it_started(done: Done, project: Path) -> None:
    """As a command of `bash` is; a tool may take an hour where nothing else is said."""
    write_tool("mine", "echo begun; sleep 300 & echo $! > pid; wait")

    server, _ = done(use("mine"), say("Done."), env={"HARNESS_TOOL_TIMEOUT": "1"})

    told = "begun\n[timed out after 1 seconds; it and what it started were ended]"
    assert server.told(1) == told
    # It is dead by then; who collects it is the first process of the machine.
    child = Path(f"/proc/{(project / 'pid').read_text().strip()}")
    until("the end of the child", lambda: not child.exists())
    assert builtin.usual_seconds({}, foreign.LONGEST_SECONDS) == 3600


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("exit 3", "[exit status 3]"),
        ("echo half; kill -9 $$", "half\n[ended by signal 9]"),
        ("echo no such file; exit 3", "no such file"),
        ("true", ""),
    ],
)
def test_a_tool_that_cannot_say_how_it_failed_is_no_silent_success(done: Done, body: str, told: str) -> None:
    """Chat completions have no word for an error: all that the model sees is the text."""
    # As PHP writes an object without keys.
    write_tool("mine", body, input_schema={"type": "object", "properties": []})
    server, _ = done(use("mine"), say("Done."))
    assert server.told(1) == told
