"""`hs session`: sessions are forked, shown, exported and removed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, bodies, session_of
from tests.loop.servers.script import say, use


def test_a_fork_goes_on_from_a_message_and_leaves_the_original_alone(
    hs: Hs, serve: Serve, home: Path
) -> None:
    server = serve(CHAT, say("Blue."), say("Green."), say("Red."))
    env = CHAT.environment(server)
    hs("a colour", env=env)
    first = session_of(home)
    hs(first.name, "another", env=env)

    fork = hs("session", "fork", first.name, "2").out.strip()
    answer = hs(fork, "a third", env=env)

    assert answer.out == "Red.\n", answer.err
    sent = str(server.requests[2])
    assert "Blue." in sent
    assert "Green." not in sent
    assert len(bodies(first)) == 4
    assert hs("session", "fork", first.name, "9").code == 2


def test_show_sums_what_was_spent_and_export_tells_all(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, use("bash", command="echo hello"), say("Done."))
    hs("RUN it", "--model", "nobody-knows-its-price", env=CHAT.environment(server))
    name = session_of(home).name

    shown = hs("session", "show", name).out
    text = hs("session", "export", name).out
    whole = json.loads(hs("session", "export", name, "--json").out)
    assert json.loads(hs("session", "export", "--json", name).out) == whole

    assert "tokens_in=20\ntokens_out=10\ncost=unknown\n" in shown
    assert all(words in text for words in ("RUN it", "hello", "Done."))
    assert [message["role"] for message in whole["messages"]] == [
        "user", "assistant", "tool_result", "assistant",
    ]  # fmt: skip


def test_rm_takes_the_session_and_its_subagents_but_none_in_use(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, use("agent", prompt="help"), say("Helped."), say("Done."))
    hs("RUN it", env=CHAT.environment(server))
    store = home / ".harness" / "sessions"
    (name,) = hs("session", "list").out.split()
    holder = "import fcntl,sys;f=open(sys.argv[1]);fcntl.flock(f,2);print('held',flush=True);input()"
    lock = str(store / name / ".lock")
    with subprocess.Popen(
        [sys.executable, "-c", holder, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as held:
        assert held.stdout
        held.stdout.readline()
        refused = hs("session", "rm", name)
        held.communicate(b"\n")

    assert refused.code == 5
    assert len(list(store.iterdir())) == 2
    assert hs("session", "rm", name).code == 0
    assert list(store.iterdir()) == []


@pytest.mark.parametrize("command", ["session", "auth", "trust", "tools", "doctor", "help"])
def test_a_command_that_is_asked_for_help_says_its_line_and_does_nothing(hs: Hs, command: str) -> None:
    asked = hs(command, "--help")
    assert (asked.code, asked.err) == (0, "")
    line = next(line for line in hs("help").out.splitlines() if line.startswith(f"  {command} "))
    assert command == "help" or line.split(maxsplit=1)[1] in asked.out
