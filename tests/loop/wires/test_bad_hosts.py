"""Bad weather: hosts, disks, sessions and plugins as they are when something is wrong."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop import follower, foreign
from harness_lib.loop.failures import TransientError
from harness_lib.loop.follower import Ending
from harness_lib.loop.wires import http
from tests.loop.conftest import ANTHROPIC, CHAT, RESPONSES, Hs, Serve, Wire, session_of
from tests.loop.in_process import started
from tests.loop.servers.script import Json, Step, Use, say, use
from tests.loop.source_files import write_program

pytestmark = pytest.mark.usefixtures("in_process")

PASSING: dict[str, Json] = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Too much."}},
    "chat": {"error": {"message": "Too much."}},
    "responses": {"type": "error", "code": "server_error", "message": "Too much."},
}
LASTING: dict[str, Json] = {
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error", "message": "Not this."}},
    "responses": {"type": "response.failed", "response": {"error": {"code": "bad", "message": "Not this."}}},
}
# Runs the command behind it, and says how many kilobytes it took at most.
MEASURED = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], check=False); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
)
# To root nothing is forbidden, unless it gives that up.
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
CALL = (Use("bash", {"command": "echo x >> ran"}),)


def test_an_answer_with_an_error_in_it_is_asked_again_and_runs_nothing(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, Step(uses=CALL, inserted=(PASSING[wire.name],)), say("Done."))

    assert follower.follow(started(home, project, wire, server)) == Ending("Done.", failed=False)

    assert not (project / "ran").exists()


@pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES], ids=lambda wire: wire.name)
def test_an_error_in_a_stream_that_will_not_pass_is_said(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, Step(uses=CALL, inserted=(LASTING[wire.name],)))

    ending = follower.follow(started(home, project, wire, server))

    assert ending.failed
    assert "Not this." in ending.output
    assert len(server.requests) == 1


def test_unknown_events_and_data_without_a_space_change_nothing(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    news: tuple[Json, ...] = ({"type": "news.of.tomorrow", "index": 7, "delta": {"x": 1}}, {"type": "ping"})
    server = serve(wire, Step(uses=CALL, inserted=news, glued=True), Step("Done.", inserted=news, glued=True))

    assert follower.follow(started(home, project, wire, server)) == Ending("Done.", failed=False)

    assert (project / "ran").read_text(encoding="utf-8") == "x\n"


def test_a_page_in_place_of_an_error_is_asked_again_and_shown_in_short(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    page = f"<html><h1>502 Bad Gateway</h1>{'<br>' * 5000}</html>"
    server = serve(wire, Step(status=502, html=page))

    ending = follower.follow(started(home, project, wire, server))

    assert ending.failed
    assert "502 Bad Gateway" in ending.output
    assert len(ending.output) < 1000
    assert len(server.requests) == 3


def test_a_host_that_says_nothing_is_asked_again(
    serve: Serve, wire: Wire, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SILENCE_SECONDS", 2.0)
    server = serve(wire, Step(silent=True), say("Done."))

    assert follower.follow(started(home, project, wire, server)) == Ending("Done.", failed=False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep more connections waiting")
def test_a_host_that_takes_no_connection_is_waited_for_shorter_than_one_that_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (http.CONNECT_SECONDS, http.SILENCE_SECONDS) == (10.0, 300.0)
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.5)
    kept: dict[str, Any] = {}
    with ExitStack() as sockets:
        deaf = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # Whoever stands before us leaves no room: the system does not even answer.
        for _ in range(4):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        port = deaf.getsockname()[1]

        with pytest.raises(TransientError, match=r"cannot be reached: (?!it said nothing)"):
            list(http.events(kept, f"http://127.0.0.1:{port}/v1/messages", {}, {}))
    http.forget(kept)


def test_a_full_disk_ends_the_run_with_its_reason_and_leaves_the_session_whole(
    hs: Hs, serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, Step(text="much " * 2000), say("Done."))
    env = {**os.environ, **wire.environment(server), "HOME": str(home), "NO_PROXY": "127.0.0.1"}

    done = subprocess.run(
        [sys.executable, "-B", "-m", "harness_lib.hs", "--json", "RUN it"],
        env=env,
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        timeout=60,
        check=False,
    )

    assert done.returncode == 7
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert '"stop":"error"' in done.stdout.splitlines()[-1]
    assert [path.name for path in (session_of(home) / "messages").iterdir()] == ["0001-user.md"]
    assert hs("--continue", "again", env=wire.environment(server)).out == "Done.\n"


def test_a_tool_that_deletes_the_session_ends_the_run_with_its_reason(
    hs: Hs, serve: Serve, wire: Wire, home: Path
) -> None:
    server = serve(wire, use("bash", command='rm -rf "$HARNESS_SESSION"'), say("Done."))

    answer = hs("RUN it", env=wire.environment(server))

    assert answer.code == 7
    assert "cannot be written" in answer.err
    assert "Traceback" not in answer.err
    assert list((home / ".harness" / "sessions").iterdir()) == []


def test_a_session_that_cannot_be_written_is_said_before_anything_is_asked(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    server = serve(CHAT, say("Done."), say("never"))
    hs("RUN it", env=CHAT.environment(server))
    session = session_of(home)
    for path in (session / "messages", session):
        path.chmod(0o500)
    done = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-m", "harness_lib.hs", session.name, "again"],
        env={**os.environ, **CHAT.environment(server), "HOME": str(home), "NO_PROXY": "127.0.0.1"},
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )

    for path in (session, session / "messages"):
        path.chmod(0o700)
    assert done.returncode == 7, done.stderr
    assert "cannot be written: Permission denied" in done.stderr
    assert len(server.requests) == 1


def test_a_home_that_cannot_be_written_gives_its_credentials_and_is_named_once(
    serve: Serve, home: Path, project: Path
) -> None:
    server = serve(ANTHROPIC, use("bash", command="echo hello"), say("Done."))
    source = home / ".harness"
    source.mkdir()
    (source / ".auth.json").write_text(
        '{"anthropic": [{"type": "api_key", "key": "kept"}]}', encoding="utf-8"
    )
    source.chmod(0o500)
    env = {**os.environ, **ANTHROPIC.environment(server), "HOME": str(home), "NO_PROXY": "127.0.0.1"}
    del env["ANTHROPIC_API_KEY"]

    done = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-m", "harness_lib.hs", "RUN it"],
        env={**env, "HARNESS_SESSIONS": str(project / "sessions")},
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )

    source.chmod(0o700)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert done.stderr.count("cannot be written (Permission denied)") == 1
    assert server.headers[0]["x-api-key"] == "kept"


def test_a_session_that_was_edited_by_hand_goes_on(hs: Hs, serve: Serve, wire: Wire, home: Path) -> None:
    server = serve(wire, use("bash", command="echo hello"), say("First."), say("Second."))
    hs("RUN it", env=wire.environment(server))
    messages = session_of(home) / "messages"
    (messages / "0001-user.md").write_text("---\nrole: user\n---\nwithout an end", encoding="utf-8")
    (messages / "0004-assistant.md").rename(messages / "0009-assistant.md")
    (messages / "0009-user.md").write_text("of the same number\n", encoding="utf-8")
    (messages / "0010-user.md").write_bytes(b"---\nrole: user\n---\n\xff\xfe\x00 binary\n")
    (messages / "notes.txt").write_text("no message\n", encoding="utf-8")
    (messages / "0011-user.md").mkdir()

    answer = hs("--continue", "and now?", env=wire.environment(server))

    assert (answer.code, answer.out) == (0, "Second.\n"), answer.err
    sent = str(server.requests[-1])
    assert all(words in sent for words in ("without an end", "First.", "same number", "binary", "and now?"))
    assert (messages / "0013-assistant.md").is_file()


def test_a_session_of_ten_thousand_messages_goes_on_in_bounded_memory(
    hs: Hs, serve: Serve, home: Path
) -> None:
    server = serve(CHAT, say("First."), say("Second."))
    # Of this model no context is known, so that all of it is told.
    env = CHAT.environment(server) | {"HARNESS_MODEL": "m"}
    hs("RUN it", env=env)
    messages = session_of(home) / "messages"
    for number in range(3, 10_001):
        role = "user" if number % 2 else "assistant"
        text = f"---\nrole: {role}\n---\nmessage {number} {'x' * 100}\n"
        (messages / f"{number:04d}-{role}.md").write_text(text, encoding="utf-8")

    answer = hs("--continue", "and now?", env=env, through=(sys.executable, "-c", MEASURED))

    said, kilobytes = answer.out.splitlines()
    assert (answer.code, said) == (0, "Second."), answer.err
    assert len(server.requests[-1]["messages"]) == 10_002
    assert (messages / "10002-assistant.md").is_file()
    assert int(kilobytes) < 200_000


def test_a_result_of_fifty_megabytes_takes_bounded_memory(hs: Hs, serve: Serve, home: Path) -> None:
    loud = use("bash", command="head -c 50000000 /dev/zero | tr '\\0' x")
    server = serve(CHAT, loud, say("Done."))

    answer = hs("go", env=CHAT.environment(server), through=(sys.executable, "-c", MEASURED))

    said, kilobytes = answer.out.splitlines()
    assert (answer.code, said) == (0, "Done."), answer.err
    (kept,) = (session_of(home) / "output").iterdir()
    assert kept.stat().st_size == 50_000_000
    assert int(kilobytes) < 90_000


def test_a_tool_whose_flag_hangs_or_floods_is_left_out(
    serve: Serve, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "_FLAG_SECONDS", 0.5)
    write_program(home / ".harness" / "tools" / "hangs", "#!/bin/sh\nsleep 600\n")
    write_program(home / ".harness" / "tools" / "floods", "#!/bin/sh\nexec yes\n")
    server = serve(CHAT, say("Done."))

    assert follower.follow(started(home, project, CHAT, server)) == Ending("Done.", failed=False)

    assert {"hangs", "floods"}.isdisjoint(tool["function"]["name"] for tool in server.requests[0]["tools"])


def test_a_hook_that_floods_ends_its_stage(hs: Hs, serve: Serve, home: Path) -> None:
    write_program(home / ".harness" / "hooks.d" / "start" / "50-floods", "#!/bin/sh\nexec yes\n")
    server = serve(CHAT, say("never"))

    answer = hs("RUN it", env=CHAT.environment(server))

    assert answer.code == 1
    assert "printed more than" in answer.err
    assert server.requests == []


def test_a_tool_that_floods_gives_both_ends_and_the_run_goes_on(hs: Hs, serve: Serve, wire: Wire) -> None:
    server = serve(wire, use("bash", command="yes"), say("Done."))

    answer = hs("RUN it", env=wire.environment(server))

    assert (answer.code, answer.out) == (0, "Done.\n"), answer.err
    assert "all of it in" in str(server.requests[-1])
    assert len(str(server.requests[-1])) < 300_000


def test_a_hook_that_hangs_is_ended_with_the_run(serve: Serve, home: Path, project: Path) -> None:
    fifo = project / "pid"
    os.mkfifo(fifo)
    write_program(
        home / ".harness" / "hooks.d" / "start" / "50-hangs",
        f"#!/bin/sh\necho $$ >'{fifo}'\nexec sleep 600\n",
    )
    server = serve(CHAT, say("never"))
    run = subprocess.Popen(
        [sys.executable, "-m", "harness_lib.hs", "RUN it"],
        env={**os.environ, **CHAT.environment(server), "HOME": str(home)},
        cwd=project,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pid = int(fifo.read_text(encoding="utf-8"))

    run.send_signal(signal.SIGINT)

    assert run.wait(60) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
