"""The rig itself: the clients run, hear the script, and can go nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hosts.talk import Request, Script, says

if TYPE_CHECKING:
    from tests.hosts.claude import Claude
    from tests.hosts.codex import Codex
    from tests.hosts.copilot import Copilot
    from tests.hosts.gemini import Gemini
    from tests.hosts.model import Model


def look_around(request: Request) -> Script:
    """Run one command, then repeat what it printed."""
    heard = yield request.shell("pwd; echo $HTTPS_PROXY")
    assert "127.0.0.1:9" in heard.last
    heard = yield heard.shell("expr 40 + 2")
    yield from says(f"it is {'42' if '42' in heard.last else 'lost'}")(heard)


@pytest.mark.release
def test_claude_code_plays_a_script(claude: Claude, model: Model) -> None:
    """A script's tool calls are run by the real client, and their results come back to it."""
    model.play(look_around)

    ran = claude("Look around.")

    assert (ran.code, ran.result) == (0, "it is 42")


@pytest.mark.release
def test_codex_plays_a_script(codex: Codex, model: Model) -> None:
    """As above, over OpenAI's wire."""
    model.play(look_around)

    ran = codex("Look around.").check()

    assert "it is 42" in ran.out


@pytest.mark.release
def test_gemini_plays_a_script(gemini: Gemini, model: Model) -> None:
    """As above, over Google's wire."""
    model.play(look_around)

    ran = gemini("Look around.").check()

    assert "it is 42" in ran.out


@pytest.mark.release
def test_copilot_plays_a_script(copilot: Copilot, model: Model) -> None:
    """As above, over chat completions."""
    model.play(look_around)

    ran = copilot("Look around.").check()

    assert "it is 42" in ran.out
