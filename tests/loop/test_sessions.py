"""Sessions that outlive what made them: the original's, killed ones, edited ones, and ones in use."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, Wire, bodies, session_of
from tests.loop.environment import environment
from tests.loop.servers.script import Step, Use, say, use

ORIGINAL = {
    "session.conf": (
        "id=20260324-143022-12345\nmodel=model-one\nprovider=openai\ncreated=2026-03-24T14:30:22+01:00\n"
    ),
    "messages/0001-user.md": (
        "---\nrole: user\nseq: 0001\ntimestamp: 2026-03-24T14:30:22+01:00\n---\nList files\n"
    ),
    "messages/0002-assistant.md": (
        "---\nrole: assistant\nseq: 0002\ntimestamp: 2026-03-24T14:30:23+01:00\nmodel: model-one\n"
        "provider: anthropic\nstop: tool_calls\ntokens_in: 10\ntokens_out: 5\n---\n"
        "```thinking signature=abc==\nhmm\n```\nLet me look.\n\n"
        '```tool_call id=toolu_1 name=bash\n{"command":"ls"}\n```\n\n'
        '```tool_call id=toolu_2 name=bash\n{"command":"pwd"}\n```\n\n'
    ),
    "messages/0003-tool_result.md": (
        "---\nrole: tool_result\nseq: 0003\ntimestamp: 2026-03-24T14:30:24+01:00\ncall_id: toolu_1\n"
        "tool: bash\nerror: false\n---\nREADME.md\n"
    ),
}


@pytest.fixture
def original(home: Path) -> Path:
    """Return a session of the original, which was killed between two results."""
    session = home / ".harness" / "sessions" / "20260324-143022-12345"
    for name, text in ORIGINAL.items():
        path = session / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return session


def test_a_session_of_the_original_goes_on_on_any_wire(
    hs: Hs, serve: Serve, wire: Wire, original: Path
) -> None:
    server = serve(wire, say("There is a README."))

    answer = hs(original.name, "well?", env=wire.environment(server) | {"HARNESS_PROVIDER": wire.provider})

    assert (answer.code, answer.out) == (0, "There is a README.\n"), answer.err
    sent = str(server.requests[0])
    assert "README.md" in sent
    assert "interrupted" in sent
    assert "hmm" not in sent
    assert bodies(original)[-2:] == [
        ("0004-user.md", "well?\n"),
        ("0005-assistant.md", "There is a README.\n\n"),
    ]


def test_provider_and_model_of_a_session_are_those_it_had(hs: Hs, serve: Serve, original: Path) -> None:
    server = serve(CHAT, say("Yes."))

    hs(original.name, "well?", env=CHAT.environment(server) | {"ANTHROPIC_API_KEY": "another"})

    assert server.requests[0]["model"] == "model-one"


def test_a_session_is_listed_and_shown(hs: Hs, original: Path) -> None:
    assert hs("session", "list").out == f"{original.name}\n"
    shown = hs("session", "show", original.name).out.splitlines()
    assert shown[:2] == ["id=20260324-143022-12345", "model=model-one"]
    assert shown[4:7] == ["tokens_in=10", "tokens_out=5", "cost=unknown"]
    assert shown[7:] == ["messages=3", "0001-user.md", "0002-assistant.md", "0003-tool_result.md"]
    assert hs("session", "dir", original.name).out == f"{original}\n"
    for name in ("none", "..", "../sessions", "a/b"):
        assert hs("session", "show", name).code == 2


def test_a_run_that_was_killed_in_a_tool_can_be_resumed(hs: Hs, serve: Serve, wire: Wire, home: Path) -> None:
    server = serve(wire, use("bash", command="kill -9 $PPID; sleep 5"), say("Where were we?"))

    killed = hs("RUN it", env=wire.environment(server))
    answer = hs(session_of(home).name, "go on", env=wire.environment(server))

    assert killed.code == -signal.SIGKILL
    assert (answer.code, answer.out) == (0, "Where were we?\n"), answer.err


def test_a_run_that_is_interrupted_ends_its_command_and_exits_130(
    serve: Serve, home: Path, project: Path
) -> None:
    server = serve(CHAT, use("bash", command="echo $$ > pid; exec sleep 300"))
    env = environment(CHAT.environment(server))
    fifo = project / "pid"
    os.mkfifo(fifo)
    run = subprocess.Popen(
        [sys.executable, "-m", "harness_lib.hs", "go"], cwd=project, env=env, stdin=subprocess.DEVNULL
    )
    pid = int(fifo.read_text(encoding="utf-8"))

    run.send_signal(signal.SIGTERM)

    assert run.wait(60) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert '{"type":"done"}' in (session_of(home) / ".stream").read_text(encoding="utf-8")


def test_a_session_in_use_is_refused_by_name(hs: Hs, serve: Serve, home: Path) -> None:
    python = f"{shlex.quote(sys.executable)} -m harness_lib.hs"
    nested = f'{python} "$(basename "$HARNESS_SESSION")" hello < /dev/null; echo "code $?"'
    server = serve(CHAT, use("bash", command=nested), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    result = bodies(session_of(home))[2][1]
    assert "is held by process" in result
    assert "code 5" in result


def test_a_subagent_answers_and_is_no_session_to_go_on_with(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, use("agent", prompt="Count the files."), say("Seven."), say("It says seven."))

    answer = hs("ask somebody", env=CHAT.environment(server))

    assert answer.out == "It says seven.\n", answer.err
    assert server.requests[1]["messages"][-1] == {"role": "user", "content": "Count the files."}
    assert len(list((home / ".harness" / "sessions").iterdir())) == 2
    (listed,) = hs("session", "list").out.split()
    assert "parent=" not in hs("session", "show", listed).out


def test_subagents_go_no_deeper_than_they_may(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, use("agent", prompt="deeper"), use("agent", prompt="deeper"), say("Done."))

    answer = hs("go", env=CHAT.environment(server) | {"HARNESS_DEPTH": "1"})

    assert answer.out == "Done.\n", answer.err
    assert "no deeper" in str(server.requests[2])


def test_events_of_a_turn_are_compact_lines(hs: Hs, serve: Serve, wire: Wire, home: Path) -> None:
    server = serve(wire, Step(uses=(Use("bash", {"command": "echo hello"}, id="c1"),)), say("Done."))

    hs("go", env=wire.environment(server))

    lines = (session_of(home) / ".stream").read_text(encoding="utf-8").splitlines()
    assert '{"type":"stop","reason":"end","seq":"0004"}' in lines
    assert lines[-1] == '{"type":"done"}'


@pytest.mark.parametrize("store", ["read-only", "a file"])
def test_a_store_that_cannot_be_used_is_said(hs: Hs, serve: Serve, tmp_path: Path, store: str) -> None:
    if store == "read-only" and os.geteuid() == 0:
        pytest.skip("root can write everywhere")
    path = tmp_path / "store"
    if store == "a file":
        path.write_text("", encoding="utf-8")
    else:
        path.mkdir(mode=0o500)
    server = serve(CHAT, say("never"))

    answer = hs("go", env=CHAT.environment(server) | {"HARNESS_SESSIONS": str(path)})

    assert (answer.code, server.requests) == (7, [])
    assert str(path) in answer.err
