"""What others have written moves no cursor: answers, results, errors and names, shown on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.forked import Forked
from tests.loop.conftest import CHAT, Go, Hs, Serve, session_of
from tests.loop.environment import environment
from tests.loop.servers.script import Step, bash, say

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b1mhello"


def shown(project: Path, env: dict[str, str], *args: str) -> str:
    """Return what `hs ARGS` shows on a terminal, where both of its outputs are."""
    leader, follower = pty.openpty()
    with Forked(
        args, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, cwd=project, env=environment(env),
    ) as process:  # fmt: skip
        os.close(follower)
        text = b""
        try:
            while part := os.read(leader, 65536):
                text += part
        except OSError:
            # Linux says so that the other end is closed.
            pass
        process.wait(timeout=200)
    os.close(leader)
    return text.decode("utf-8", "replace")


def is_harmless(text: str) -> bool:
    return "hello" in text and not set(text) & set("\x1b\x07\x9b")


def test_answers_results_and_arguments(serve: Serve, project: Path) -> None:
    command = r"printf '\033[2J\033]0;owned\007hello'"
    server = serve(CHAT, bash(command), bash(f"echo '{EVIL}'"), say(f"All{EVIL}."))

    seen = shown(project, CHAT.environment(server), "go")

    assert is_harmless(seen)
    # It has streamed, and is not shown again at its end.
    assert seen.count("hello.") == 1


@pytest.mark.parametrize("status", [400, 503])
def test_the_words_of_a_host_that_refuses(serve: Serve, project: Path, status: int) -> None:
    now = (("retry-after", "0"),)
    server = serve(CHAT, Step(status=status, said=EVIL, headers=now), Step(status=400, said="no"))

    assert is_harmless(shown(project, CHAT.environment(server), "go"))


def test_a_session_that_is_looked_at(go: Go, hs: Hs, project: Path) -> None:
    go(bash(f"echo '{EVIL}'"), say(EVIL))
    name = session_of().name

    assert is_harmless(shown(project, {}, "session", "export", name))
    # A program gets what was said.
    assert EVIL in hs("session", "export", name).out


def test_a_word_that_was_pasted(project: Path) -> None:
    assert is_harmless(shown(project, {}, "session", "show", EVIL))
    assert is_harmless(shown(project, {}, f"--{EVIL}"))
