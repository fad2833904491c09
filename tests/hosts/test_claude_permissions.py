"""What Claude Code asks the user about in its default mode: not the loop, but every new command."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.hosts.agents import TIRED, launcher
from tests.hosts.claude import Claude
from tests.hosts.machine import Machine
from tests.hosts.model import Model
from tests.hosts.talk import Call, Request, Say, Script

ASKED = "requires approval"


@pytest.mark.release
@pytest.mark.parametrize("way", ["skill", "skill of several agents", "plugin"])
def test_nobody_is_asked(claude: Claude, model: Model, machine: Machine, published: Path, way: str) -> None:
    """From `start` to the final check, beyond a stop that was refused; `skills` links what several share."""
    flags = ["--plugin-dir", str(published)]
    if way != "plugin":
        agents = ("claude-code", "codex") if "several" in way else ("claude-code",)
        machine.skills_add(published, "-g", agents=agents)
        flags = []
    machine.add("Read it", "--validate", "test -f README.md")
    heard: list[str] = []

    def works(request: Request) -> Script:
        harness = launcher(request.everything)
        for command in ("status", "start"):
            request = yield request.shell(f"{harness} {command}")
            heard.append(request.last)
        request = yield Say(TIRED)
        # As the hook says it, with its path.
        request = yield request.shell(re.findall(r"Type: (.+)", request.last)[-1])
        heard.append(request.last)
        request = yield request.shell(f'{harness} checkpoint task-001 1/1 "I have read it"')
        heard.append(request.last)
        for command in ("finish task-001", "validate --all --committed"):
            request = yield request.shell(f"{harness} {command}")
            heard.append(request.last)
        yield Say(TIRED)

    model.play(works)

    ran = claude.asking("/harness run", *flags)

    assert not [said for said in heard if ASKED in said]
    assert len(ran.blocks()) == 1
    assert machine.statuses == ["completed"]


@pytest.mark.release
@pytest.mark.usefixtures("with_skill")
@pytest.mark.parametrize(
    "command",
    [
        "edit task-001 --validate 'rm -rf ~'",
        "add Two --validate 'rm -rf ~'",
        "trust --yes",
        "tidy --yes",
    ],
)
def test_what_runs_later_is_asked_about(claude: Claude, model: Model, machine: Machine, command: str) -> None:
    """A check is a command of the shell: whoever may add one without asking may do anything."""
    machine.add("Read it", "--validate", "test -f README.md")
    heard: list[str] = []

    def writes(request: Request) -> Script:
        request = yield request.shell(f"{launcher(request.everything)} {command}")
        heard.append(request.last)
        yield Say(TIRED)

    model.play(writes)

    claude.asking("/harness add")

    assert [ASKED in said for said in heard] == [True]
    assert machine.statuses == ["pending"]


@pytest.mark.release
def test_a_guard_that_breaks_refuses_the_edit(
    claude: Claude, model: Model, machine: Machine, published: Path, tmp_path: Path
) -> None:
    """What was meant to look at it did not: the list stays as it is."""
    plugin = tmp_path / "plugin"
    shutil.copytree(published, plugin)
    (plugin / "hooks/harness-pretooluse.py").write_text("raise SystemExit(1)\n")
    machine.add("Read it", "--validate", "test -f README.md")
    file = machine.project / "harness-tasks.json"
    before = file.read_bytes()

    def edits(_request: Request) -> Script:
        yield Say(calls=(Call("Read", {"file_path": str(file)}),))
        yield Say(calls=(Call("Write", {"file_path": str(file), "content": "{}"}),))
        yield Say(TIRED)

    model.play(edits)

    claude("Mark it done.", "--plugin-dir", str(plugin))

    assert file.read_bytes() == before
