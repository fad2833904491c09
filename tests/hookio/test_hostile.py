"""Bad input, bad places, and bugs of our own: no host crashes, no agent is held by accident."""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hookio.conftest import EVENTS, HOOKS, Ring, add, agent
from tests.verbs.project import Project

NONSENSE = {
    "empty": b"",
    "no-object": b"[1, 2]",
    "text": b"hello",
    "binary": bytes(range(256)) * 100,
    "deep": b"[" * 200_000,
    "open": b'{"session_id": "' + b"x" * 1000,
    "wrong-types": b'{"session_id": 1, "cwd": [], "hook_event_name": {}, "tool_input": 3}',
    "surrogate": b'{"session_id": "\\ud800", "cwd": "\\ud800", "agent_id": "\\udfff", "reason": "\\ud800"}',
    "null-bytes": b'{"cwd": "/tmp/\\u0000", "session_id": "\\u0000", "tool_input": {"file_path": "\\u0000"}}',
    "unknown-event": b'{"hook_event_name": "Nonesuch"}',
}


def test_nonsense_is_survived_by_every_hook(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    before = project.file.read_bytes()
    for name, data in NONSENSE.items():
        for hook in EVENTS:
            heard = ring(hook, data)
            assert heard.code == 0, (name, hook, heard)
            assert heard.err == "" or "held 8 times" in heard.err, (name, hook, heard)
            assert heard.out == "" or json.loads(heard.out), (name, hook, heard)
    assert project.file.read_bytes() == before
    assert not list((project.top / ".harness").glob("bug-*"))


def test_fifty_megabytes_are_read_to_the_end(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")

    assert ring("stop", {"last_assistant_message": "x" * 50_000_000}).reason
    assert ring("stop", {"session_id": "other", "last_assistant_message": "x" * 50_000_000}).silent


@pytest.mark.parametrize("place", ["gone", "file", "relative"])
def test_a_cwd_that_is_no_directory_gives_way_to_our_own(ring: Ring, project: Project, place: str) -> None:
    add(project, "One")
    agent(project).ok("start")
    named = {"gone": "/nonexistent/place", "file": str(project.file), "relative": "nowhere"}[place]

    assert ring("stop", {"cwd": named}).reason


def test_the_cwd_of_the_payload_comes_before_our_own(ring: Ring, project: Project, tmp_path: Path) -> None:
    odd = project.top / 'ü "x"\\y'
    odd.mkdir()
    add(project, "One")
    agent(project).ok("start")

    assert ring("stop", {"cwd": str(odd)}, cwd=tmp_path).reason
    assert ring("stop", {"cwd": str(tmp_path)}, cwd=project.top).silent


def test_a_directory_that_was_removed_under_us_is_survived(tmp_path: Path) -> None:
    program = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    gone = tmp_path / "gone"
    gone.mkdir()
    command = [sys.executable, "-c", program, sys.executable, "-I", "-S", str(HOOKS / "harness-stop.py")]

    done = subprocess.run(command, cwd=gone, input=b"{}", capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_bug_of_ours_lets_the_agent_go_and_leaves_a_report(ring: Ring, project: Project) -> None:
    """A summary of the right stamp and the wrong shape is not expected anywhere."""
    add(project, "One")
    agent(project).ok("start")
    file = project.top / ".harness" / "summary.json"
    summary = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**summary, "counts": 7}), encoding="utf-8")

    heard = ring("stop", {})

    assert (heard.code, heard.out, heard.err.count("\n")) == (0, "", 1)
    assert "a bug in its Stop hook, which holds nobody" in heard.err
    (report,) = (project.top / ".harness").glob("bug-*.txt")
    assert "Traceback" in report.read_text(encoding="utf-8")
    assert str(report) in heard.err


def test_a_block_that_cannot_be_counted_is_not_given(ring: Ring, project: Project) -> None:
    """It would be one of endlessly many."""
    add(project, "One")
    agent(project).ok("start")
    (project.top / ".harness" / "stops").write_text("in the way", encoding="utf-8")

    heard = ring("stop", {})

    assert (heard.code, heard.out, heard.err.count("\n")) == (0, "", 1)
    assert "holds nobody" in heard.err


def test_a_person_who_types_its_name_is_not_kept_waiting(project: Project) -> None:
    import pty  # noqa: PLC0415 (for this test only)

    controller, terminal = pty.openpty()
    command = [sys.executable, "-I", "-S", str(HOOKS / "harness-stop.py")]
    done = subprocess.run(
        command, cwd=project.top, stdin=terminal, capture_output=True, timeout=30, check=False
    )
    os.close(controller)
    os.close(terminal)

    assert done.returncode == 0


@pytest.mark.parametrize("args", [("nonesuch",), ("--help",), ("",)])
def test_an_unknown_host_gets_the_common_words(ring: Ring, project: Project, args: tuple[str, ...]) -> None:
    add(project, "One")
    agent(project).ok("start")

    assert ring("stop", {}, args=args).reason


STREAMS = {
    "closed": ">&-",
    "all closed": "<&- >&- 2>&-",
    "full": ">/dev/full",
    "both full": ">/dev/full 2>/dev/full",
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("streams", STREAMS.values(), ids=STREAMS)
def test_an_answer_that_nobody_can_hear_is_no_error(project: Project, streams: str) -> None:
    add(project, "One")
    agent(project).ok("start")
    bell = shlex.join([sys.executable, "-I", "-S", str(HOOKS / "harness-stop.py")])

    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {bell} {streams}"],
        cwd=project.top,
        input=b"{}",
        capture_output=True,
        check=False,
    )

    heard = "holds nobody, as the system said" if streams == STREAMS["full"] else ""
    assert (done.returncode, done.stdout) == (0, b"")
    assert heard in done.stderr.decode()
    assert done.stderr.count(b"\n") == bool(heard)
    assert not list((project.top / ".harness").glob("bug-*"))


def test_a_host_whose_pipe_never_waits_is_heard_to_the_end(project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    stdin, host = os.pipe()
    os.set_blocking(stdin, False)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(HOOKS / "harness-stop.py")],
        cwd="/", stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as hook:  # fmt: skip
        # Once it waits for more, it has found the pipe empty, or read its first half.
        assert hook.stdout is not None
        assert select.select([hook.stdout], [], [], 1)[0] == []
        os.write(host, json.dumps({"cwd": str(project.top)}).encode())
        os.close(host)
        os.close(stdin)
        out, err = hook.communicate(timeout=60)

    assert (hook.returncode, err) == (0, b"")
    assert json.loads(out)["decision"] == "block"


def test_a_path_that_is_no_text_hides_no_other(ring: Ring, project: Project) -> None:
    add(project, "One")
    patch = "*** Begin Patch\n*** Update File: \ud800\n*** Update File: harness-tasks.json\n*** End Patch"

    heard = ring("pretooluse", {"tool_input": {"file_path": "\ud800", "command": patch}})

    assert heard.json["hookSpecificOutput"]["permissionDecision"] == "deny"
