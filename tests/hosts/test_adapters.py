"""The adapters of `harness_lib.agents` start the real clients, and understand what they print."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

import pytest

from harness_lib.agents.adapter import Report
from harness_lib.agents.registry import named
from tests.hosts.claude import QUIET, Claude
from tests.hosts.codex import Codex
from tests.hosts.copilot import Copilot
from tests.hosts.gemini import Gemini
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


def drive(name: str, machine: Machine, env: Mapping[str, str], model: str | None = None) -> Report:
    """Let the client work on the brief as its adapter starts it; return what was understood."""
    adapter = named(name)
    launch = adapter.launch(model, ())
    usage = machine.home / "usage.json"
    ran = machine.run(*launch.command(usage=str(usage)), stdin=BRIEF, env={**env, **launch.env})
    report = Report()
    left = usage.read_text().replace("\n", " ") if usage.exists() else ""
    for line in [*ran.out.splitlines(keepends=True), left]:
        report = adapter.read(report, line, NOW)
    return report


def assert_understood(report: Report) -> None:
    """Fail unless one step and the last words were seen, and no trouble."""
    assert (report.actions, report.said, report.trouble) == (1, "Made it.", None)
    assert "echo one > one" in report.action


def test_claude_code(claude: Claude, model: Model, machine: Machine) -> None:
    model.play(works)

    report = drive("claude", machine, {**QUIET, "ANTHROPIC_BASE_URL": claude.address})

    assert_understood(report)
    assert report.tokens > 0
    assert report.cost_usd is not None
    assert (machine.project / "one").exists()


@pytest.mark.parametrize(
    "linked", [False, pytest.param(True, marks=pytest.mark.release)], ids=["checkout", "worktree"]
)
def test_codex(codex: Codex, model: Model, machine: Machine, *, linked: bool) -> None:
    """In a linked work tree too, of which it knows nothing."""
    if linked:
        tree = machine.project.parent / "tree"
        machine.run("git", "worktree", "add", "-q", "--detach", tree).check()
        machine.project = tree
    model.play(works)

    report = drive("codex", machine, codex.env)

    assert_understood(report)
    assert report.tokens > 0


@pytest.mark.release
def test_gemini(gemini: Gemini, model: Model, machine: Machine) -> None:
    model.play(works)
    env = {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": gemini.address}

    # Left to itself it asks another model first which one is to be asked.
    report = drive("gemini", machine, {**env, "GEMINI_TELEMETRY_ENABLED": "false"}, model="gemini-2.5-flash")

    assert_understood(report)
    assert report.tokens > 0
    assert (machine.project / "one").exists()


@pytest.mark.release
def test_copilot(copilot: Copilot, model: Model, machine: Machine) -> None:
    model.play(works)
    report = drive("copilot", machine, copilot.env)

    assert_understood(report)
    # Credits are GitHub's, and this provider is not.
    assert (report.tokens, report.cost_usd) == (30, None)
    assert (machine.project / "one").exists()
