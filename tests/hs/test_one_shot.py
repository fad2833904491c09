"""`hs` for scripts, and in surroundings that people have: events, limits, standard input, bugs, locales."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import for_release
from tests.loop.conftest import CHAT, Done, Go, Hs, Serve, Started, session_of
from tests.loop.servers.script import Json, Step, bash, say
from tests.loop.source_files import at_home, write_script

# `hs` that waits for no input to begin, and says when it reads to the end of it.
IMPATIENT = """
import sys
from harness_lib.hs import main
from harness_lib.hs import agent
agent._WAIT_SECONDS = 0.0
read = sys.stdin.read
def reads():
    print("hs reads", file=sys.stderr, flush=True)
    return read()
sys.stdin.read = reads
sys.exit(main.entry())
"""


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_events_stand_one_in_a_line_and_the_result_is_the_last(go: Go) -> None:
    _, answer = go(bash("echo hello"), say("All done."), words=("-p", "--json", "RUN it"))
    printed = events(answer.out)
    kinds = [event["type"] for event in printed]
    assert answer.code == 0, answer.err
    assert kinds[0] == "session"
    assert {"tool_start", "tool_done", "text", "usage", "done"} <= set(kinds)
    assert printed[-1] == {
        "type": "result",
        "output": "All done.",
        "session": session_of().name,
        "stop": "end",
        "tokens_in": 20,
        "tokens_out": 10,
        "cost": printed[-1]["cost"],
        "error": None,
    }


def test_a_program_is_told_of_every_failure_by_the_last_event(hs: Hs, serve: Serve) -> None:
    def last(*words: str) -> tuple[int, Json]:
        said = hs(*words, "--json", "do it")
        return said.code, events(said.out)[-1]

    code, nobody = last()
    assert (code, nobody["stop"], "OPENAI_API_KEY" in nobody["error"]) == (7, "error", True)
    code, nothing = last("resume")
    assert (code, nothing["error"]) == (2, "No sessions were found.")
    serve(CHAT, Step(status=401, said="invalid key of yours"))
    code, refused = last()
    assert (code, refused["type"], refused["stop"], refused["output"]) == (1, "result", "error", "")
    assert "invalid key of yours" in refused["error"]
    code, misspelt = last("--modle", "x")
    assert (code, misspelt["error"]) == (2, "hs has no option --modle.")
    hook = at_home("hooks.d/sources/90-broken")
    write_script(hook, "exit 3")
    code, broken = last()
    assert (code, broken["stop"]) == (3, "error")
    write_script(hook, "kill -INT $PPID\nsleep 60")
    code, stopped = last()
    assert (code, stopped["stop"]) == (130, "interrupted")


def test_requests_are_limited_and_the_session_goes_on_afterwards(hs: Hs, go: Go) -> None:
    server, answer = go(bash("true"), bash("true"), say("Done."), words=("--json", "--max-turns", "2", "go"))
    again = hs("--resume", session_of().name, "go on")

    assert (answer.code, events(answer.out)[-1]["stop"]) == (1, "max_turns")
    assert (again.code, again.out) == (0, "Done.\n"), again.err
    assert len(server.requests) == 3


def test_a_limit_of_no_cost_asks_no_model(go: Go) -> None:
    server, answer = go(say("never"), words=("--json", "--max-cost", "0", "RUN"))

    assert (answer.code, events(answer.out)[-1]["stop"], server.requests) == (1, "max_cost", [])


def test_a_limit_of_cost_without_a_price_ends_before_a_second_request(go: Go) -> None:
    words = ("--json", "--max-cost=0.5", "--model", "nobody-knows-its-price", "RUN")
    server, answer = go(bash("true"), say("Done."), words=words)
    last = events(answer.out)[-1]
    assert (answer.code, last["stop"], last["cost"]) == (1, "max_cost", None)
    assert "no price is known for nobody-knows-its-price" in last["error"]
    assert len(server.requests) == 1


def test_a_model_that_was_set_is_asked_for_although_only_the_provider_is_typed(go: Go) -> None:
    words = ("--provider", "openai", "go")
    server, _ = go(say("Done."), words=words, env={"HARNESS_MODEL": "mine"})
    assert server.requests[0]["model"] == "mine"
    theirs = {"HARNESS_PROVIDER": "anthropic", "HARNESS_MODEL": "theirs"}
    server, _ = go(say("Done."), words=words, env=theirs)
    assert server.requests[0]["model"] != "theirs", "it is one of the other provider's"


def test_a_pipe_that_nobody_writes_to_does_not_keep_a_task_waiting(done: Done) -> None:
    reading, writing = os.pipe()
    try:
        _, answer = done(say("Done."), stdin=reading, program=IMPATIENT)
    finally:
        os.close(reading)
        os.close(writing)

    assert "nothing came on standard input" in answer.err


def test_a_log_that_nobody_reads_and_a_full_disk_end_no_task(started: Started, serve: Serve) -> None:
    """Such as of `hs "…" 2> >(head -1)`; the answer goes elsewhere."""
    serve(CHAT, *[bash("echo 1"), say("Done.")] * 2)
    reading, unread = os.pipe()
    os.close(reading)
    for log in (unread, os.open("/dev/full", os.O_WRONLY)):
        with started("go", stdout=subprocess.PIPE, stderr=log) as process:
            assert process.communicate()[0] == "Done.\n"
        os.close(log)
        assert process.returncode == 0


def test_input_that_takes_its_time_is_waited_for_when_asked(started: Started, serve: Serve) -> None:
    server = serve(CHAT, say("Because."))
    pipe = subprocess.PIPE
    with started("why?", "-", program=IMPATIENT, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stderr
        assert process.stderr.readline() == "hs reads\n"
        out, _ = process.communicate("a late log\n", timeout=200)

    assert out == "Because.\n"
    assert "a late log" in str(server.requests[0])


def test_without_a_provider_one_line_says_what_to_do(hs: Hs) -> None:
    answer = hs("hello")
    assert answer.code == 7
    assert answer.err.count("no ready provider found") == 1, answer.err
    assert "hook resolve" not in answer.err


# The program with something wrong in it.
BROKEN = """
import sys
from harness_lib.hs import main
from harness_lib.loop import turn
def take(*_, **__):
    raise {error}
turn.take = take
sys.exit(main.entry())
"""


def test_a_bug_is_one_line_a_file_with_the_traceback_and_the_last_event(go: Go) -> None:
    program = BROKEN.format(error="ValueError('a line\\nand another')")
    _, said = go(say("never"), words=("-p", "--json", "go"), program=program)

    (kept,) = at_home().glob("bug-*.txt")
    line = said.err.splitlines()[-1]
    expected = "This is a bug in hs: ValueError: a line and another."
    assert (said.code, line) == (70, f"hs: {expected} Please report it with {kept}.")
    assert "Traceback" not in said.err
    assert "Traceback" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    last = events(said.out)[-1]
    assert (last["type"], last["stop"], expected in last["error"]) == ("result", "error", True)
    assert last["session"]


def test_where_it_cannot_be_kept_the_traceback_is_shown(go: Go) -> None:
    spoil = "__import__('os').environ.update(HARNESS_HOME='/dev/null/nowhere')"
    _, said = go(say("never"), program=BROKEN.format(error=f"ValueError({spoil})"))

    assert (said.code, "with these lines:\nTraceback" in said.err) == (70, True)


def test_what_the_system_refuses_is_no_bug(go: Go) -> None:
    program = BROKEN.format(error="OSError(24, 'Too many open files', '/some/file')")
    _, said = go(say("never"), program=program)

    assert (said.code, list(at_home().glob("bug-*"))) == (7, [])
    assert said.err.splitlines()[-1] == "hs: The system said: Too many open files (/some/file)."


FACE = "\N{GRINNING FACE}"
# What Python makes of a locale without UTF-8, which few machines of developers have.
OLD = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1"}


@pytest.mark.parametrize("streamed", [*for_release(""), "1"])
def test_what_the_locale_cannot_show_ends_no_answer(go: Go, project: Path, streamed: str) -> None:
    env, steps = {**OLD, "HARNESS_STREAM": streamed}, (bash(f"echo {FACE} | tee seen"), say(f"Done {FACE}."))
    server, answer = go(*steps, env=env, through=("env",))

    assert (answer.code, answer.out) == (0, "Done ?.\n"), answer.err
    assert (project / "seen").read_text() == f"{FACE}\n"
    assert FACE in server.told(1)


def test_events_are_utf_8_in_every_locale(go: Go) -> None:
    _, answer = go(say(f"Done {FACE}."), words=("--json", "go"), env=OLD, through=("env",))

    assert json.loads(answer.out.splitlines()[-1])["output"] == f"Done {FACE}."


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1", "nonsense://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_said(go: Go, proxy: str) -> None:
    server, answer = go(say("never"), env={"ALL_PROXY": proxy, "NO_PROXY": ""})

    assert (answer.code, answer.out, server.requests) == (1, "", [])
    assert "hs speaks with HTTP proxies only" in answer.err
    assert "secret" not in answer.err


def test_certificates_that_are_not_where_a_variable_says_are_said(hs: Hs) -> None:
    answer = hs("go", env={"OPENAI_API_URL": "https://127.0.0.1:9", "SSL_CERT_FILE": "/nowhere/cacert.pem"})

    assert (answer.code, answer.out) == (1, "")
    assert "The certificates of this machine cannot be read" in answer.err
    assert "SSL_CERT_FILE" in answer.err
