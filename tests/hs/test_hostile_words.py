"""What others have written moves no cursor: answers, results, errors and names, shown on a terminal."""

from __future__ import annotations

import os
import pty
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.loop.conftest import CHAT, Go, Hs, Serve, Started, session_of
from tests.loop.servers.script import Step, bash, say

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b1mhello"


Shown = Callable[..., str]


@pytest.fixture
def shown(started: Started) -> Shown:
    """Return a callable that returns what `hs ARGS` shows on a terminal, where both of its outputs are."""

    def show(*args: str) -> str:
        leader, follower = pty.openpty()
        text = b""
        with started(*args, stdout=follower, stderr=follower):
            os.close(follower)
            # Linux says by an error that the other end is closed.
            with suppress(OSError):
                while part := os.read(leader, 65536):
                    text += part
        os.close(leader)
        return text.decode("utf-8", "replace")

    return show


def is_harmless(text: str) -> bool:
    return "hello" in text and not set(text) & set("\x1b\x07\x9b")


def test_answers_results_and_arguments(serve: Serve, shown: Shown) -> None:
    command = r"printf '\033[2J\033]0;owned\007hello'"
    serve(CHAT, bash(command), bash(f"echo '{EVIL}'"), say(f"All{EVIL}."))

    seen = shown("go")

    assert is_harmless(seen)
    # It has streamed, and is not shown again at its end.
    assert seen.count("hello.") == 1


@pytest.mark.parametrize("status", [400, 503])
def test_the_words_of_a_host_that_refuses(serve: Serve, shown: Shown, status: int) -> None:
    now = (("retry-after", "0.01"),)
    serve(CHAT, Step(status=status, said=EVIL, headers=now), Step(status=400, said="no"))

    assert is_harmless(shown("go"))


def test_a_session_that_is_looked_at(go: Go, hs: Hs, shown: Shown) -> None:
    go(bash(f"echo '{EVIL}'"), say(EVIL))
    name = session_of().name

    assert is_harmless(shown("session", "export", name))
    # A program gets what was said.
    assert EVIL in hs("session", "export", name).out


def test_a_word_that_was_pasted(shown: Shown) -> None:
    assert is_harmless(shown("session", "show", EVIL))
    assert is_harmless(shown(f"--{EVIL}"))
