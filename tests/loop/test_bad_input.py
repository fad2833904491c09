"""When something is wrong: names, arguments, plugins, disks and sessions."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from harness_lib.loop import processes, turn
from tests.loop.conftest import ANTHROPIC, CHAT, DONE, Done, Follow, Go, Hs, Serve, Wire, bodies, session_of
from tests.loop.in_process import started
from tests.loop.servers.script import Step, Use, bash, say, use
from tests.loop.source_files import at_home, write, write_program, write_script

# How much memory `hs` takes: what is put before it tells, in a last line, its kilobytes at most.
_PROGRAM = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], check=False); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
)
MEASURED = (sys.executable, "-c", _PROGRAM)
TOOL = """\
#!/usr/bin/env python3
import json, os, sys
if sys.argv[1] == "--schema":
    print(json.dumps({"name": os.path.basename(sys.argv[0]), "description": "WORDS"}))
elif sys.argv[1] == "--exec":
    print("it ran")
"""


def test_tools_whose_names_no_host_takes_are_left_out_and_each_is_named_once(
    done: Done, project: Path
) -> None:
    names = ("two words", "two\nlines", "dotted.name", "x" * 65, "ünïcode", "$(touch ran)")
    for name in (*names, "fine"):
        write_program(f"tools/{name}", TOOL)
    write_program("tools/odd", TOOL.replace("os.path.basename(sys.argv[0])", '"other"'))
    server, answer = done(use("fine"), use("odd"), say("Done."))
    assert answer.err.count("is left out: no host takes such a name") == len(names)
    assert ["it ran" in result for result in server.results(2)] == [True, False]
    assert not (project / "ran").exists()


def test_a_tool_that_changes_during_a_run_is_told_anew(done: Done) -> None:
    path = at_home("tools/look")
    write_program(path, TOOL)
    server, _ = done(bash(f"sed -i s/WORDS/others/ '{path}'"), say("Done."))
    offered = [str(request["tools"]) for request in server.requests]
    assert ["WORDS" in text for text in offered] == [True, False]
    assert "others" in offered[1]


@pytest.mark.parametrize("cut", range(0, 200, 9))
@pytest.mark.usefixtures("in_process")
def test_an_answer_that_is_half_written_can_be_gone_on_from(serve: Serve, project: Path, cut: int) -> None:
    server = serve(CHAT, say("Done."))
    run = started(project, CHAT, server)
    whole = (
        "---\nrole: assistant\nseq: 0002\nstop: tool_calls\n---\nLet me see.\n\n"
        '```tool_call id=c1 name=bash\n{"command":"echo x >> ran"}\n```\n\n'
        '```tool_call id=c2 name=bash\n{"command":"echo x >> ran"}\n```\n'
    )
    path = run.session.directory / "messages/0002-assistant.md"
    path.write_text(whole[:cut])
    run.session.append("user", {}, "go on")

    assert turn.follow(run) == DONE

    assert not (project / "ran").exists()


def test_whole_calls_run_though_their_host_says_that_it_has_stopped(follow: Follow, project: Path) -> None:
    calls = Step(uses=(Use("bash", {"command": "echo x >> ran"}),), stop="stop")
    _, _, ending = follow(CHAT, calls, say("Done."))
    assert ending == DONE
    assert (project / "ran").read_text() == "x\n"


def test_a_result_of_fifty_megabytes_takes_bounded_memory(go: Go) -> None:
    loud = bash("head -c 50000000 /dev/zero | tr '\\0' x")
    _, answer = go(loud, say("Done."), through=MEASURED)
    said, kilobytes = answer.out.splitlines()
    assert (answer.code, said) == (0, "Done."), answer.err
    (kept,) = (session_of() / "output").iterdir()
    assert kept.stat().st_size == 50_000_000
    assert int(kilobytes) < 90_000


def test_a_tool_whose_flag_hangs_or_floods_is_left_out(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "FLAG_SECONDS", 0.5)
    write_script("tools/hangs", "sleep 600")
    write_script("tools/floods", "exec yes")
    _, server, ending = follow(CHAT, say("Done."))
    assert ending == DONE
    assert {"hangs", "floods"}.isdisjoint(tool["function"]["name"] for tool in server.requests[0]["tools"])


def test_a_hook_that_floods_ends_its_stage(go: Go) -> None:
    write_script("hooks.d/start/50-floods", "exec yes")
    server, answer = go(say("never"), words=("RUN it",))
    assert answer.code == 1
    assert "printed more than" in answer.err
    assert server.requests == []


def test_a_tool_that_floods_gives_both_ends_and_the_run_goes_on(done: Done) -> None:
    server, _ = done(bash("yes"), say("Done."), words=("RUN it",))
    assert "all of it in" in str(server.requests[-1])
    assert len(str(server.requests[-1])) < 300_000


# To root nothing is forbidden, unless it gives that up.
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else ["env"]


def test_a_full_disk_ends_the_run_with_its_reason_and_leaves_the_session_whole(go: Go, hs: Hs) -> None:
    # In blocks of 512 bytes.
    full = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh")
    much, env = Step(text="much " * 2000), {"PYTHONDONTWRITEBYTECODE": "1"}
    _, answer = go(much, say("Done."), words=("--json", "RUN it"), through=full, env=env)

    assert answer.code == 7
    assert "File too large" in answer.err
    assert "Traceback" not in answer.err
    assert '"stop":"error"' in answer.out.splitlines()[-1]
    assert [path.name for path in (session_of() / "messages").iterdir()] == ["0001-user.md"]
    assert hs("--continue", "again").out == "Done.\n"


def test_a_tool_that_deletes_the_session_ends_the_run_with_its_reason(go: Go) -> None:
    # Again where hs has noted meanwhile, in the session, that the command runs.
    command = 'until rm -rf "$HARNESS_SESSION"; do :; done'
    _, answer = go(bash(command), say("Done."), words=("RUN it",))
    assert answer.code == 7
    assert "cannot be written" in answer.err
    assert "It has been removed" in answer.err
    assert "Traceback" not in answer.err
    assert list(at_home("sessions").iterdir()) == []


@pytest.mark.parametrize("spoil", ["mkdir", "mkfifo"])
def test_events_that_cannot_be_written_end_nothing(go: Go, spoil: str) -> None:
    command = f'cd "$HARNESS_SESSION" && rm .stream && {spoil} .stream && echo spoilt'
    server, answer = go(bash(command), say("Done."))
    assert (server.told(1), answer.out) == ("spoilt", "Done.\n"), answer.err


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take UTF-8 only")
def test_a_directory_whose_name_is_not_utf8_is_named(go: Go, project: Path) -> None:
    odd = project / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    server, answer = go(say("never"), cwd=odd)
    assert (answer.code, server.requests) == (7, []), answer.err
    assert f"not UTF-8: '{project}/caf\\udce9'. Rename it." in answer.err
    assert not list(at_home().rglob("sessions/*"))


def test_a_session_that_cannot_be_written_is_said_before_anything_is_asked(go: Go, hs: Hs) -> None:
    server, _ = go(say("Done."), say("never"), words=("RUN it",))
    session = session_of()
    for path in (session / "messages", session):
        path.chmod(0o500)
    answer = hs(session.name, "again", through=WITHOUT_RIGHTS)

    for path in (session, session / "messages"):
        path.chmod(0o700)
    assert answer.code == 7, answer.err
    assert "cannot be written: Permission denied" in answer.err
    assert len(server.requests) == 1


def test_a_home_that_cannot_be_written_gives_its_credentials_and_is_named_once(
    hs: Hs, serve: Serve, served: dict[str, str], tmp_path: Path
) -> None:
    server = serve(ANTHROPIC, bash("echo hello"), say("Done."))
    write(".auth.json", '{"anthropic": [{"type": "api_key", "key": "kept"}]}')
    at_home().chmod(0o500)
    del served["ANTHROPIC_API_KEY"]

    answer = hs("RUN it", env={"HARNESS_SESSIONS": str(tmp_path / "sessions")}, through=WITHOUT_RIGHTS)

    at_home().chmod(0o700)
    assert (answer.code, answer.out) == (0, "Done.\n"), answer.err
    assert answer.err.count("cannot be written (Permission denied)") == 1
    assert server.headers[0]["x-api-key"] == "kept"


@pytest.mark.parametrize("number", ["²", "0", "9" * 11, "9" * 5000])
def test_numbers_that_no_engine_writes_end_nothing(number: str, go: Go) -> None:
    call = "```tool_call id=c1 name=bash\n{}\n```"
    answer = f"---\nrole: assistant\nfence: {number}\ntokens_in: {number}\n---\n{call}\n"
    summary = f"---\nrole: summary\nkeep: {number}\n---\n\n"
    messages = at_home("sessions/s/messages")
    for name, text in (("0001-user", "Begin."), ("0002-assistant", answer), ("0003-summary", summary)):
        write(messages / f"{name}.md", text)
    write(messages.parent / "session.conf", "id=s\n")
    os.mkfifo(messages / "0004-user.md")
    server, said = go(say("Done."), words=("s", "go on"), env={"HARNESS_MAX_TURNS": "9" * 5000})
    assert (said.code, said.out) == (0, "Done.\n"), said.err
    assert "Begin." in str(server.requests)


@pytest.mark.parametrize(
    ("hook", "printed", "said"),
    [
        ("receive/50-x", {"tool_calls": [{"name": "bash", "input": "x"}], "next_state": "tool_exec"}, ""),
        ("tool_gate/10-x", {"input": "rm"}, "gave an input that is not a JSON object"),
        ("assemble/34-x", {"system": 5, "messages": [], "next_state": "send"}, "`system` that is not text"),
        ("assemble/90-x", {"messages": "abc", "next_state": "send"}, "messages that are not a list of obj"),
        ("assemble/90-x", {"tools": [1], "next_state": "send"}, "tools that are not a list of objects"),
        ("sources/50-x", {"sources": ["/a\0b"]}, "ended without"),
        ("sources/50-x", {"sources": [5]}, "ended without"),
        ("tool_exec/50-x", {"error": ["x"], "result": {}, "next_state": "tool_done"}, ""),
        ("done/50-x", {"output": ["a"]}, "ended in the stage done"),
    ],
)
def test_a_hook_that_prints_values_of_another_kind_is_an_error_and_no_bug(
    hook: str, printed: dict[str, object], said: str, go: Go
) -> None:
    write_script(f"hooks.d/{hook}", f"cat <<'X'\n{json.dumps(printed)}\nX")
    write("skills/cook/SKILL.md", "---\nname: cook\ndescription: Cooks\n---\nBoil.\n")
    _, answer = go(bash("echo hi"), say("Done."), env={"HARNESS_MAX_TURNS": "2"})
    assert answer.code in {0, 1, 3}, answer.err
    assert said in answer.err


def test_a_session_that_was_edited_by_hand_goes_on(go: Go, hs: Hs, wire: Wire, home: Path) -> None:
    server, _ = go(bash("echo hello"), say("First."), say("Second."), words=("RUN it",), wire=wire)
    messages = session_of() / "messages"
    (messages / "0001-user.md").write_text("---\nrole: user\n---\nwithout an end")
    (messages / "0004-assistant.md").rename(messages / "0009-assistant.md")
    (messages / "0009-user.md").write_text("of the same number\n")
    (messages / "0010-user.md").write_bytes(b"---\nrole: user\n---\n\xff\xfe\x00 binary\n")
    (messages / "notes.txt").write_text("no message\n")
    (messages / "0011-user.md").mkdir()
    (home / "secret").write_text("what a link leads to\n")
    (messages / "0002-user.md").symlink_to(home / "secret")

    answer = hs("--continue", "and now?")

    assert (answer.code, answer.out) == (0, "Second.\n"), answer.err
    sent = str(server.requests[-1])
    assert all(words in sent for words in ("without an end", "First.", "same number", "binary", "and now?"))
    assert "leads to" not in sent
    assert (messages / "0013-assistant.md").is_file()


@pytest.mark.release
def test_a_session_of_ten_thousand_messages_goes_on_in_bounded_memory(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say("First."), say("Second."))
    # Of this model no context is known, so that all of it is told.
    env = {"HARNESS_MODEL": "m"}
    hs("RUN it", env=env)
    messages = session_of() / "messages"
    for number in range(3, 10_001):
        role = "user" if number % 2 else "assistant"
        text = f"---\nrole: {role}\n---\nmessage {number} {'x' * 100}\n"
        (messages / f"{number:04d}-{role}.md").write_text(text)

    answer = hs("--continue", "and now?", env=env, through=MEASURED)

    said, kilobytes = answer.out.splitlines()
    assert (answer.code, said) == (0, "Second."), answer.err
    assert len(server.requests[-1]["messages"]) == 10_002
    assert (messages / "10002-assistant.md").is_file()
    assert int(kilobytes) < 200_000


def test_a_session_that_fills_the_disk_keeps_no_more_and_ends_the_turn(go: Go) -> None:
    # With a hole in it, the file takes no room.
    grow = bash('truncate -s 2G "$HARNESS_SESSION/mcp.log"; seq 1 20000')
    server, answer = go(grow, say("never"))
    assert (answer.code, len(server.requests)) == (1, 1), answer.err
    assert "has more than 1024 MiB on disk, which is the limit" in answer.err
    assert not (session_of() / "output").exists()
    assert "which was not kept" in bodies()[2][1]
