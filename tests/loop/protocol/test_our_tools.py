"""Each tool of ours has the three flags of the protocol, run as a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.protocol.conftest import Ours, Ran
from tests.loop.source_files import write

TOOLS = ["agent", "bash", "edit_file", "read_file", "replace", "skill", "write_file"]


@pytest.mark.parametrize("name", TOOLS)
def test_schema_and_description(ours: Ours, name: str) -> None:
    schema = ours.tool(name, "--schema").json

    assert schema["name"] == name
    assert schema["description"]
    assert schema["input_schema"]["type"] == "object"
    assert set(schema["input_schema"]["required"]) <= set(schema["input_schema"]["properties"])
    described = ours.tool(name, "--describe")
    assert described.code == 0
    assert described.out
    assert "\n" not in described.out


def test_bash_gives_output_and_errors_together_and_says_how_it_ended(ours: Ours, project: Path) -> None:
    assert ours.tool("bash", "--exec", {"command": "pwd; echo err >&2"}) == Ran(0, f"{project}\nerr")
    assert ours.tool("bash", "--exec", {"command": "echo out; exit 3"}) == Ran(1, "out\n[exit status 3]")
    assert ours.tool("bash", "--exec", {"command": "kill -9 $$"}) == Ran(1, "[ended by signal 9]")
    ours.env["HARNESS_TOOL_TIMEOUT"] = "1"
    assert "timed out after 1 seconds" in ours.tool("bash", "--exec", {"command": "sleep 300"}).out


def test_what_is_no_text_in_a_result_is_replaced_or_lost(ours: Ours) -> None:
    ran = ours.tool("bash", "--exec", {"command": r"printf 'a\0b\377c\n\n'"})

    assert ran == Ran(0, "ab\ufffdc")


def test_replace_wants_the_text_once_or_all(ours: Ours, project: Path) -> None:
    write(project / "f", "a b a\n")

    for more in ({}, {"all": "false"}):
        assert ours.tool("replace", "--exec", {"path": "f", "old": "a", "new": "x", **more}).code == 1
    assert ours.tool("replace", "--exec", {"path": "f", "old": "z", "new": "x"}).code == 1
    assert ours.tool("replace", "--exec", {"path": "f", "old": "b", "new": "B"}).code == 0
    assert ours.tool("replace", "--exec", {"path": "f", "old": "a", "new": "x", "all": True}).code == 0
    assert (project / "f").read_text() == "x B x\n"


def test_skill_prints_its_text_its_directory_and_its_files(ours: Ours, project: Path) -> None:
    skill = project / ".agents/skills/cook"
    write(skill / "SKILL.md", "---\nname: cooking\ndescription: Cooks\n---\nBoil it.\n")
    write(skill / "scripts/heat", "")
    write(skill / "elsewhere", "")

    ran = ours.tool("skill", "--exec", {"name": "cooking"})

    assert ran.code == 0
    assert ran.out.splitlines() == [
        '<skill name="cooking">', "Boil it.", "", f"Skill directory: {skill}",
        "<skill-resources>", "scripts/heat", "</skill-resources>", "</skill>",
    ]  # fmt: skip
    assert ours.tool("skill", "--exec", {"name": "cook"}) == Ran(1, "error: skill 'cook' not found")
