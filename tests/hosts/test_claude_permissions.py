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
    rest = ('checkpoint task-001 1/1 "I have read it"', "finish task-001", "validate --all --committed")

    def works(request: Request) -> Script:
        harness = launcher(request.everything)
        for command in ("status", "start"):
            request = yield request.shell(f"{harness} {command}")
        request = yield Say(TIRED)
        # As the hook says it, with its path.
        request = yield request.shell(re.findall(r"Type: (.+)", request.last)[-1])
        for command in rest:
            request = yield request.shell(f"{harness} {command}")
        yield Say(TIRED)

    model.play(works)

    ran = claude.asking("/harness run", *flags)

    assert not [request for request in model.requests if ASKED in request.last]
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

    def writes(request: Request) -> Script:
        yield request.shell(f"{launcher(request.everything)} {command}")
        yield Say(TIRED)

    model.play(writes)

    claude.asking("/harness add")

    assert [ASKED in request.last for request in model.requests] == [False, True]
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
    before = machine.tasks_file.read_bytes()

    def edits(_request: Request) -> Script:
        file = {"file_path": str(machine.tasks_file)}
        yield Say(calls=(Call("Read", file),))
        yield Say(calls=(Call("Write", {**file, "content": "{}"}),))
        yield Say(TIRED)

    model.play(edits)

    claude("Mark it done.", "--plugin-dir", str(plugin))

    assert machine.tasks_file.read_bytes() == before
