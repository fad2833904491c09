"""Disks and sessions as they are when something is wrong: full, forbidden, deleted, edited, very long."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from tests.loop.conftest import ANTHROPIC, CHAT, Hs, Serve, Wire, bodies, session_of
from tests.loop.environment import environment
from tests.loop.memory import MEASURED
from tests.loop.servers.script import Step, say, use

# To root nothing is forbidden, unless it gives that up.
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def test_a_full_disk_ends_the_run_with_its_reason_and_leaves_the_session_whole(
    hs: Hs, serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, Step(text="much " * 2000), say("Done."))
    env = environment(wire.environment(server))

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
        env=environment(CHAT.environment(server)),
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
    env = environment(ANTHROPIC.environment(server))
    del env["ANTHROPIC_API_KEY"]

    done = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-m", "harness_lib.hs", "RUN it"],
        env={**env, "HARNESS_SESSIONS": str(project.parent / "sessions")},
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

    answer = hs("--continue", "and now?", env=env, through=MEASURED)

    said, kilobytes = answer.out.splitlines()
    assert (answer.code, said) == (0, "Second."), answer.err
    assert len(server.requests[-1]["messages"]) == 10_002
    assert (messages / "10002-assistant.md").is_file()
    assert int(kilobytes) < 200_000


def test_a_session_that_fills_the_disk_keeps_no_more_and_ends_the_turn(
    hs: Hs, serve: Serve, home: Path
) -> None:
    # With a hole in it, the file takes no room.
    grow = use("bash", command='truncate -s 2G "$HARNESS_SESSION/mcp.log"; seq 1 20000')
    server = serve(CHAT, grow, say("never"))

    answer = hs("go", env=CHAT.environment(server))

    assert (answer.code, len(server.requests)) == (1, 1), answer.err
    assert "has more than 1024 MiB on disk, which is the limit" in answer.err
    assert not (session_of(home) / "output").exists()
    assert "which was not kept" in bodies(session_of(home))[2][1]
