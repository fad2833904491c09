"""One turn, from an empty home to the answer: a call of `bash`, its result, the text on standard output."""

from __future__ import annotations

import re
from pathlib import Path

from tests.loop.conftest import Hs, Serve, Wire, bodies, session_of
from tests.loop.servers.script import Step, Use, say, use


def test_a_task_runs_its_call_and_prints_the_answer(
    hs: Hs, serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, use("bash", command="echo hello > made; cat made"), say("All done."))

    answer = hs("RUN", "it", env=wire.environment(server))

    assert (answer.code, answer.out) == (0, "All done.\n"), answer.err
    assert (project / "made").read_text(encoding="utf-8") == "hello\n"
    names = [name for name, _ in bodies(session_of(home))]
    assert names == ["0001-user.md", "0002-assistant.md", "0003-tool_result.md", "0004-assistant.md"]
    assert len(server.requests) == 2


def test_a_session_has_the_format_of_the_original(
    hs: Hs, serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    command = Use("bash", {"command": "printf '%s' two words"}, id="call_1")
    server = serve(wire, Step(text="Let me look.", uses=(command,)), say("Seen."))

    answer = hs("RUN it", env=wire.environment(server))

    session = session_of(home)
    assert re.fullmatch(r"\d{8}-\d{6}-\d+", session.name)
    conf = dict(
        line.split("=", 1) for line in (session / "session.conf").read_text(encoding="utf-8").splitlines()
    )
    assert list(conf) == ["id", "model", "provider", "created", "cwd"]
    assert (conf["id"], conf["cwd"]) == (session.name, str(project))
    user, assistant, result, _ = sorted((session / "messages").iterdir())
    moment = r"timestamp: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d\n"
    assert re.fullmatch(
        rf"---\nrole: user\nseq: 0001\n{moment}---\nRUN it\n", user.read_text(encoding="utf-8")
    )
    text = assistant.read_text(encoding="utf-8")
    assert "stop: tool_calls\ntokens_in: " in text
    assert text.endswith(
        "---\nLet me look.\n\n```tool_call id=call_1 name=bash\n"
        '{"command":"printf \'%s\' two words"}\n```\n\n'
    )
    assert re.fullmatch(
        rf"---\nrole: tool_result\nseq: 0003\n{moment}call_id: call_1\ntool: bash\nerror: false\n---\n"
        r"twowords\n",
        result.read_text(encoding="utf-8"),
    )
    assert (session.stat().st_mode & 0o777, user.stat().st_mode & 0o777) == (0o700, 0o600)
    assert f"session: ~/.harness/sessions/{session.name}" in answer.err


def test_a_session_goes_on_with_what_was_said(hs: Hs, serve: Serve, wire: Wire, home: Path) -> None:
    server = serve(wire, use("bash", command="echo hello"), say("First."), say("Second."))
    hs("RUN it", env=wire.environment(server))

    answer = hs(session_of(home).name, "and now?", env=wire.environment(server))

    assert (answer.code, answer.out) == (0, "Second.\n"), answer.err
    sent = str(server.requests[-1])
    assert all(words in sent for words in ("RUN it", "hello", "First.", "and now?"))


def test_what_stands_on_standard_input_follows_the_task(hs: Hs, serve: Serve, wire: Wire) -> None:
    server = serve(wire, say("Because."))

    answer = hs("why?", env=wire.environment(server), stdin="a log\n")

    assert answer.code == 0
    assert "why?\\n\\na log" in str(server.requests[0])


def test_an_empty_answer_is_an_answer(hs: Hs, serve: Serve, wire: Wire) -> None:
    server = serve(wire, Step())

    answer = hs("say nothing", env=wire.environment(server))

    assert (answer.code, answer.out) == (0, "")


def test_without_a_provider_it_says_what_is_missing(hs: Hs) -> None:
    answer = hs("do it")

    assert (answer.code, answer.out) == (7, "")
    assert "OPENAI_API_KEY" in answer.err


def test_without_a_task_it_is_a_mistake_in_the_command(hs: Hs) -> None:
    answer = hs()

    assert (answer.code, answer.out) == (2, "")


def test_what_a_provider_refuses_is_said_with_its_words(hs: Hs, serve: Serve, wire: Wire) -> None:
    server = serve(wire, Step(status=401, said="invalid key of yours"))

    answer = hs("do it", env=wire.environment(server))

    assert (answer.code, answer.out) == (1, "")
    assert "401" in answer.err
    assert "invalid key of yours" in answer.err
    assert len(server.requests) == 1


def test_what_may_pass_is_asked_again(hs: Hs, serve: Serve, wire: Wire) -> None:
    now = (("retry-after", "0"),)
    server = serve(wire, Step(status=429, headers=now), Step(status=503, headers=now), say("At last."))

    answer = hs("do it", env=wire.environment(server))

    assert (answer.code, answer.out) == (0, "At last.\n"), answer.err
    assert "Asking again" in answer.err


def test_a_key_stands_in_no_file_and_in_no_tools_environment(
    hs: Hs, serve: Serve, wire: Wire, home: Path
) -> None:
    key = "sk-very-secret"
    server = serve(wire, use("bash", command="env"), say("Seen."))
    env = wire.environment(server) | {"OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key}
    env["HARNESS_PROVIDER"] = wire.provider

    answer = hs("look", env=env)

    assert answer.code == 0, answer.err
    assert key in str(server.headers[0])
    assert key not in str(server.requests)
    for path in session_of(home).rglob("*"):
        assert path.is_dir() or key not in path.read_text(encoding="utf-8")
