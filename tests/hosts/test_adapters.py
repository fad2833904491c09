"""The adapters of `harness_lib.agents` start the real clients, and understand what they print."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

import pytest

from harness_lib.agents.adapter import Report
from harness_lib.agents.registry import named
from tests.conftest import for_release
from tests.hosts import gemini
from tests.hosts.machine import Machine
from tests.hosts.model import Model
from tests.hosts.talk import Request, Script, says

# Clients print local time.
NOW = datetime.now(timezone.utc).astimezone()

# No client takes so long an argument; the last words tell that all of it arrived.
BRIEF = "Make one.\n" + "This is how it was tried before.\n" * 5_000 + "THE END OF THE BRIEF\n"


def works(request: Request) -> Script:
    assert "THE END OF THE BRIEF" in request.said_by("user")
    heard = yield request.shell("echo one > one")
    yield from says("Made it.")(heard)


def drive(name: str, machine: Machine, env: Mapping[str, str]) -> Report:
    """Let the client work on the brief as its adapter starts it; return what was understood."""
    adapter = named(name)
    launch = adapter.launch(gemini.MODEL if name == "gemini" else None, ())
    usage = machine.home / "usage.json"
    ran = machine.run(*launch.command(usage=str(usage)), stdin=BRIEF, env={**env, **launch.env})
    report = Report()
    left = usage.read_text().replace("\n", " ") if usage.exists() else ""
    for line in [*ran.out.splitlines(keepends=True), left]:
        report = adapter.read(report, line, NOW)
    return report


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("claude", "checkout"),
        ("codex", "checkout"),
        # Of a linked work tree it knows nothing.
        *for_release(("codex", "worktree"), ("gemini", "checkout"), ("copilot", "checkout")),
    ],
)
def test_a_client_is_started_and_understood(
    request: pytest.FixtureRequest, model: Model, machine: Machine, name: str, place: str
) -> None:
    client = request.getfixturevalue(name)
    if place == "worktree":
        tree = machine.project.parent / "tree"
        machine.run("git", "worktree", "add", "-q", "--detach", tree).check()
        machine.project = tree
    model.play(works)

    report = drive(name, machine, client.env)

    assert (report.actions, report.said, report.trouble) == (1, "Made it.", None)
    assert "echo one > one" in report.action
    # The sandbox of Codex needs a kernel that lets it.
    assert name == "codex" or (machine.project / "one").exists()
    # Copilot's credits are GitHub's, and this provider is not.
    assert report.tokens == 30 if name == "copilot" else report.tokens > 0
    assert (report.cost_usd is not None) is (name == "claude")
