"""Sessions, from an empty home to the answer: their format, the original's, edited ones, ones in use."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest

from harness_lib.loop.session import Session
from harness_lib.system.processes import process
from tests.loop.conftest import CHAT, Done, Go, Hs, Serve, Started, Wire, bodies, session_of
from tests.loop.servers.script import Step, Use, bash, say, use
from tests.loop.source_files import at_home


def test_a_session_has_the_format_of_the_original(go: Go, wire: Wire, project: Path) -> None:
    command = Use("bash", {"command": "printf '%s' two words"}, id="call_1")
    _, answer = go(Step(text="Let me look.", uses=(command,)), say("Seen."), words=("RUN it",), wire=wire)
    session = session_of()
    assert re.fullmatch(r"\d{8}-\d{6}-\d+", session.name)
    conf = dict(line.split("=", 1) for line in (session / "session.conf").read_text().splitlines())
    assert list(conf) == ["id", "model", "provider", "created", "cwd"]
    assert (conf["id"], conf["cwd"]) == (session.name, str(project))
    user, assistant, result, _ = sorted((session / "messages").iterdir())
    moment = r"timestamp: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d\n"
    assert re.fullmatch(rf"---\nrole: user\nseq: 0001\n{moment}---\nRUN it\n", user.read_text())
    text = assistant.read_text()
    assert "stop: tool_calls\ntokens_in: " in text
    assert text.endswith(
        "---\nLet me look.\n\n```tool_call id=call_1 name=bash\n"
        '{"command":"printf \'%s\' two words"}\n```\n\n'
    )
    assert re.fullmatch(
        rf"---\nrole: tool_result\nseq: 0003\n{moment}call_id: call_1\ntool: bash\nerror: false\n---\n"
        r"twowords\n",
        result.read_text(),
    )
    assert (session.stat().st_mode & 0o777, user.stat().st_mode & 0o777) == (0o700, 0o600)
    assert f"session: ~/.harness/sessions/{session.name}" in answer.err


@pytest.mark.parametrize(("words", "task"), [(("why?",), "why?\n\na log\nof two"), ((), "a log\nof two")])
def test_what_stands_on_standard_input_follows_the_task(go: Go, words: tuple[str, ...], task: str) -> None:
    server, answer = go(say("Because."), words=words, stdin="a log\nof two\n")
    assert (answer.code, server.told(0)) == (0, task)


def test_an_empty_answer_is_an_answer(go: Go, wire: Wire) -> None:
    _, answer = go(Step(), words=("say nothing",), wire=wire)
    assert (answer.code, answer.out) == (0, "")


def test_an_answered_session_goes_on_with_words_only_and_an_interrupted_one_without(hs: Hs, go: Go) -> None:
    """A host may refuse a request that ends with an answer."""
    server, _ = go(say("First."), say("Second."), words=("begin",))

    refused = hs("--continue")
    Session(session_of()).append("user", {}, "said before it was killed")

    assert (refused.code, len(server.requests)) == (2, 1)
    assert "hs was given nothing to do" in refused.err
    assert hs("--continue").out == "Second.\n"


def test_without_a_task_it_is_a_mistake_in_the_command(hs: Hs) -> None:
    answer = hs()

    assert (answer.code, answer.out) == (2, "")


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
    session = home / ".harness/sessions/20260324-143022-12345"
    for name, text in ORIGINAL.items():
        path = session / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return session


def test_a_session_of_the_original_goes_on_on_any_wire(go: Go, wire: Wire, original: Path) -> None:
    env = {"HARNESS_PROVIDER": wire.provider}
    server, answer = go(say("There is a README."), words=(original.name, "well?"), wire=wire, env=env)
    assert (answer.code, answer.out) == (0, "There is a README.\n"), answer.err
    sent = str(server.requests[0])
    assert "README.md" in sent
    assert "interrupted" in sent
    assert "hmm" not in sent
    assert bodies(original)[-2:] == [
        ("0004-user.md", "well?\n"),
        ("0005-assistant.md", "There is a README.\n\n"),
    ]


@pytest.mark.parametrize(
    ("env", "typed", "model"),
    [
        ({"ANTHROPIC_API_KEY": "another"}, (), "model-one"),
        ({"HARNESS_PROVIDER": "openai"}, (), "model-one"),
        ({}, ("--model", "model-two"), "model-two"),
    ],
)
def test_provider_and_model_of_a_session_are_those_it_had(
    go: Go, original: Path, env: dict[str, str], typed: tuple[str, ...], model: str
) -> None:
    server, _ = go(say("Yes."), words=(*typed, original.name, "well?"), env=env)
    assert server.requests[0]["model"] == model


def test_a_session_is_listed_and_shown(hs: Hs, original: Path) -> None:
    assert hs("session", "list").out == f"{original.name}\n"
    shown = hs("session", "show", original.name).out.splitlines()
    assert shown[:2] == ["id=20260324-143022-12345", "model=model-one"]
    assert shown[4:7] == ["tokens_in=10", "tokens_out=5", "cost=unknown"]
    assert shown[7:] == ["messages=3", "0001-user.md", "0002-assistant.md", "0003-tool_result.md"]
    assert hs("session", "dir", original.name).out == f"{original}\n"
    for name in ("none", "..", "../sessions", "a/b"):
        assert hs("session", "show", name).code == 2


def test_a_run_that_is_interrupted_ends_its_command_and_exits_130(
    started: Started, serve: Serve, project: Path
) -> None:
    serve(CHAT, bash("echo $$ > pid; exec sleep 300"))
    fifo = project / "pid"
    os.mkfifo(fifo)
    run = started("go")
    pid = int(fifo.read_text())

    run.send_signal(signal.SIGTERM)

    assert run.wait() == 130
    assert process.find(pid) is None
    assert '{"type":"done"}' in (session_of() / ".stream").read_text()


def test_a_session_in_use_is_refused_by_name(done: Done) -> None:
    python = f"{shlex.quote(sys.executable)} -m harness_lib.hs"
    nested = f'{python} "$(basename "$HARNESS_SESSION")" hello < /dev/null; echo "code $?"'
    done(bash(nested), say("Done."))
    result = bodies()[2][1]
    assert "is held by process" in result
    assert "code 5" in result


def test_a_subagent_answers_and_is_no_session_to_go_on_with(go: Go, hs: Hs) -> None:
    server, answer = go(
        use("agent", prompt="Count the files."),
        Step("Let me look.", uses=(Use("bash", {"command": "true"}),)),
        say("Seven."),
        say("It says seven."),
        words=("ask somebody",),
        env={"HARNESS_STREAM": "1"},
    )
    assert server.told(3) == "Seven."
    assert answer.out == "It says seven.\n", answer.err
    assert server.requests[1]["messages"][-1] == {"role": "user", "content": "Count the files."}
    (listed,) = hs("session", "list").out.split()
    assert "parent=" not in hs("session", "show", listed).out
    (other,) = {path.name for path in at_home("sessions").iterdir()} - {listed}
    copy = hs("session", "fork", other).out.strip()
    assert set(hs("session", "list").out.split()) == {listed, copy}


def test_why_a_subagent_has_failed_is_told(done: Done) -> None:
    """The model can name another provider, or give up; with an exit code alone it can only try again."""
    server, answer = done(
        Step(uses=(Use("agent", {"prompt": "x", "provider": "nobody"}), Use("agent", {"prompt": "y"}))),
        Step(status=401, said="not you"),
        say("Done."),
    )
    none, refused = server.results(-1)
    assert none == "[the subagent failed with exit code 7: There is no provider nobody; hs help lists them.]"
    assert refused.startswith("[the subagent failed with exit code 1: The provider answered 401: not you.")
    assert "There is no provider nobody" in answer.err
    (log,) = at_home("sessions").glob("*/subagents.log")
    assert "answered 401" in log.read_text()


def test_subagents_go_no_deeper_than_they_may(done: Done) -> None:
    server, _ = done(
        use("agent", prompt="deeper"), use("agent", prompt="deeper"), say("Done."), env={"HARNESS_DEPTH": "1"}
    )
    assert "no deeper" in str(server.requests[2])


@pytest.mark.parametrize("store", ["read-only", "a file"])
def test_a_store_that_cannot_be_used_is_said(go: Go, tmp_path: Path, store: str) -> None:
    if store == "read-only" and os.geteuid() == 0:
        pytest.skip("root can write everywhere")
    path = tmp_path / "store"
    if store == "a file":
        path.write_text("")
    else:
        path.mkdir(mode=0o500)
    server, answer = go(say("never"), env={"HARNESS_SESSIONS": str(path)})
    assert (answer.code, server.requests) == (7, [])
    assert str(path) in answer.err
