"""Bad input: names that no host takes, plugins that come and go, arguments cut short, a wait that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.loop import follower
from harness_lib.loop.follower import Ending
from tests.loop.conftest import CHAT, WIRES, Hs, Serve, Wire, bodies, session_of
from tests.loop.environment import environment
from tests.loop.in_process import results_of, started
from tests.loop.servers.script import Step, Use, say, use
from tests.loop.source_files import write_program

pytestmark = pytest.mark.usefixtures("in_process")

TOOL = """\
#!/usr/bin/env python3
import json, os, sys
if sys.argv[1] == "--schema":
    print(json.dumps({"name": os.path.basename(sys.argv[0]), "description": "WORDS"}))
elif sys.argv[1] == "--exec":
    print("it ran")
"""
STOPS = {
    "anthropic": ("end_turn", "tool_use", "max_tokens"),
    "chat": ("stop", "tool_calls", "length", "content_filter"),
    "responses": ("completed", "length"),
}


@pytest.mark.parametrize(
    "name", ["two words", "two\nlines", "dotted.name", "x" * 65, "ünïcode", "$(touch ran)"]
)
def test_a_tool_whose_name_no_host_takes_is_left_out_and_named_once(
    hs: Hs, serve: Serve, wire: Wire, home: Path, project: Path, name: str
) -> None:
    write_program(home / ".harness" / "tools" / name, TOOL)
    write_program(home / ".harness" / "tools" / "fine", TOOL)
    server = serve(wire, use("fine"), use("fine"), say("Done."))

    answer = hs("go", env=wire.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert answer.err.count("is left out: no host takes such a name") == 1
    assert "it ran" in str(server.requests[1])
    assert not (project / "ran").exists()


def test_a_tool_that_changes_during_a_run_is_told_anew(hs: Hs, serve: Serve, home: Path) -> None:
    path = home / ".harness" / "tools" / "look"
    write_program(path, TOOL)
    server = serve(CHAT, use("bash", command=f"sed -i s/WORDS/others/ '{path}'"), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    offered = [str(request["tools"]) for request in server.requests]
    assert ["WORDS" in text for text in offered] == [True, False]
    assert "others" in offered[1]


def test_a_tool_that_disappears_between_two_calls_is_an_error_for_the_model(
    hs: Hs, serve: Serve, home: Path
) -> None:
    path = home / ".harness" / "tools" / "look"
    write_program(path, TOOL)
    gone = Step(uses=(Use("look"), Use("bash", {"command": f"rm '{path}'"}), Use("look")))
    server = serve(CHAT, gone, say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    results = [text.strip() for name, text in bodies(session_of(home)) if "tool_result" in name]
    assert (results[0], results[2]) == ("it ran", "error: tool 'look' not found")


def test_a_hook_that_disappears_in_the_middle_of_its_stage_ends_it_by_name(
    hs: Hs, serve: Serve, home: Path
) -> None:
    hooks = home / ".harness" / "hooks.d" / "start"
    write_program(hooks / "20-remove", f"#!/bin/sh\nrm '{hooks}/30-gone'\ncat\n")
    write_program(hooks / "30-gone", "#!/bin/sh\ncat\n")
    server = serve(CHAT, say("never"))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.code == 1
    assert "30-gone" in answer.err
    assert "Traceback" not in answer.err
    assert server.requests == []


@pytest.mark.parametrize("cut", range(0, 200, 9))
def test_an_answer_that_is_half_written_can_be_gone_on_from(
    serve: Serve, home: Path, project: Path, cut: int
) -> None:
    server = serve(CHAT, say("Done."))
    run = started(home, project, CHAT, server)
    assert run.session
    whole = (
        "---\nrole: assistant\nseq: 0002\nstop: tool_calls\n---\nLet me see.\n\n"
        '```tool_call id=c1 name=bash\n{"command":"echo x >> ran"}\n```\n\n'
        '```tool_call id=c2 name=bash\n{"command":"echo x >> ran"}\n```\n'
    )
    path = run.session.directory / "messages" / "0002-assistant.md"
    path.write_text(whole[:cut], encoding="utf-8")
    run.session.append("user", {}, "go on")

    assert follower.follow(run) == Ending("Done.", failed=False)

    assert not (project / "ran").exists()


@pytest.mark.parametrize(
    ("wire", "stop"),
    [(wire, stop) for wire in WIRES for stop in STOPS[wire.name]],
    ids=lambda each: each.name if isinstance(each, Wire) else each,
)
def test_arguments_that_are_cut_never_run_whatever_is_said_of_their_end(
    serve: Serve, home: Path, project: Path, wire: Wire, stop: str
) -> None:
    cut = Use("bash", raw='{"command":"echo x >> ran; rm -rf so')
    server = serve(wire, Step(uses=(cut,), stop=stop), say("Done."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)

    assert not (project / "ran").exists()
    assert "not run" in results_of(run)[0]


def test_whole_calls_run_though_their_host_says_that_it_has_stopped(
    serve: Serve, home: Path, project: Path
) -> None:
    calls = Step(uses=(Use("bash", {"command": "echo x >> ran"}),), stop="stop")
    server = serve(CHAT, calls, say("Done."))

    assert follower.follow(started(home, project, CHAT, server)) == Ending("Done.", failed=False)

    assert (project / "ran").read_text(encoding="utf-8") == "x\n"


def test_ctrl_c_ends_the_wait_for_a_limit_at_once(hs: Hs, serve: Serve, wire: Wire, project: Path) -> None:
    server = serve(wire, Step(status=429, headers=(("retry-after", "55"),)), say("Done."))
    run = subprocess.Popen(
        [sys.executable, "-m", "harness_lib.hs", "RUN it"],
        env=environment(wire.environment(server)),
        cwd=project,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert run.stderr
    with run.stderr as said:
        assert any("Asking again in 55 s" in line for line in said)

        run.send_signal(signal.SIGINT)

        assert run.wait(45) == 130
    assert len(server.requests) == 1
    assert hs("--continue", "go on", env=wire.environment(server)).out == "Done.\n"
