"""Files that no tool reads, by whatever way, under every approval; and those that the user is asked about."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop import discovery, trust
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import asking
from harness_lib.loop.tools.asking import Question, Said, always_about
from tests.loop.source_files import write, write_tool
from tests.loop.tools.conftest import Do

SECRET = "sk-very-secret"


@pytest.fixture
def reader(run: Runtime) -> Runtime:
    """Return the run with a foreign tool that says of itself that it only reads."""
    write_tool("reader", "echo it ran", annotations={"readOnlyHint": True})
    discovery.refresh(run)
    return run


@pytest.fixture
def credentials(home: Path, project: Path) -> Path:
    """Store a key as `hs auth set` does, and put links to it and to /proc into the project."""
    stored = write(".auth.json", json.dumps({"openai": [{"key": SECRET}]}))
    for name in (".netrc", ".ssh/id_ed25519", ".aws/credentials", ".cursor/auth.json", ".hex/hex.config"):
        write(home / name, SECRET)
    write(project / "inside/.harness/.auth.json", SECRET)
    (project / "link").symlink_to(stored)
    (project / "chain").symlink_to("link")
    (project / "environ").symlink_to("/proc/self/environ")
    (project / "source").symlink_to(home / ".harness")
    (project / "process").symlink_to("/proc/thread-self")
    return stored


WAYS = [
    "{home}/.harness/.auth.json", "~/.harness/.auth.json", "../{up}/.harness/.auth.json", "link", "chain",
    "source/.auth.json", "source/../.harness/.auth.json", "inside/.harness/.auth.json",
    "~/.netrc", "~/.ssh/id_ed25519", "~/.aws/credentials", "~/.cursor/auth.json", "~/.hex/hex.config",
]  # fmt: skip
WAYS_OF_LINUX = [
    "/proc/self/environ", "/proc/thread-self/environ", "/proc/{pid}/environ", "/proc/1/environ",
    "/proc/self/task/{pid}/environ", "/proc/self/mem", "/proc/self/fd/0", "/dev/fd/0", "/dev/stdin",
    "/etc/../proc/self/environ", "environ", "process/environ", "process/../../environ",
    "/proc/self/root/proc/self/environ", "/proc/self/root{home}/.harness/.auth.json", "/proc/self/cwd/link",
]  # fmt: skip


@pytest.mark.parametrize("way", [*WAYS, *(WAYS_OF_LINUX if Path("/proc/self").exists() else [])])
def test_no_tool_reads_credentials_or_a_process(
    do: Do, reader: Runtime, home: Path, project: Path, credentials: Path, way: str
) -> None:
    path = way.format(home=home, pid=os.getpid(), up=os.path.relpath(home, project.parent))
    reader.asker = lambda _: Said(allowed=True)
    before = credentials.read_text()
    changes: dict[str, dict[str, Any]] = {
        "read_file": {},
        "write_file": {"content": "x"},
        "replace": {"old": "s", "new": "x", "all": True},
        "edit_file": {"edits": [{"type": "append_file", "content": "x"}]},
    }

    for mode in trust.SETTINGS["approve"][1]:
        reader.env["HARNESS_APPROVE"] = mode
        for tool in ("read_file", "reader"):
            verdict = asking.decide(reader, {"id": "1", "name": tool, "input": {"path": path}})
            assert (verdict.decision, "no tool reads it" in verdict.reason) == ("deny", True)
    for tool, more in changes.items():
        result = do(tool, path=path, **more)
        assert result.error
        assert "no tool reads it" in result.text
        assert SECRET not in result.text
    assert credentials.read_text() == before


@pytest.mark.parametrize(("mode", "expected"), [("ask", "asked"), ("read-only", "asked"), ("auto", "ran")])
def test_what_reads_outside_of_the_project_is_asked_about(
    reader: Runtime, home: Path, project: Path, mode: str, expected: str
) -> None:
    write("skills/cook/SKILL.md", "---\nname: cook\ndescription: Cooks\n---\nBoil.\n")
    write("skills/cook/references/salt.md", "salt")
    outside, inside = write(home / "notes/diary", "dear"), write(project / "src/a", "a")
    (project / "away").symlink_to(outside)
    kept = write(reader.session.directory / "output/0001.txt", "long")
    asked: list[Question] = []

    def person(question: Question) -> Said:
        asked.append(question)
        return Said(allowed=False)

    reader.asker = person
    reader.env["HARNESS_APPROVE"] = mode

    def is_asked(tool: str, **tool_input: object) -> bool:
        before = len(asked)
        asking.decide(reader, {"id": "1", "name": tool, "input": tool_input})
        return len(asked) > before

    for path in (inside, kept, home / ".harness/skills/cook/references/salt.md", "src/a", "not there"):
        assert not is_asked("read_file", path=str(path))
    away = [
        is_asked("read_file", path=path) for path in (str(outside), "away", "~/notes/diary", "../nowhere")
    ]
    away += [
        is_asked("reader", files=["src/a", str(outside)]),
        is_asked("reader", deep={"uri": str(outside)}),
        is_asked("grep", pattern="dear", path="~/notes"),
    ]
    assert not is_asked("glob", pattern="*")
    assert not is_asked("reader", pattern="/a.*b/", text="no path\nof any kind")
    assert away == [expected == "asked"] * 7
    if asked:
        assert "It reads outside of the project: " in asked[0].reason
        assert always_about(asked[0]) == f"read_file in {outside.parent}"


def test_always_for_an_edit_in_the_project_is_none_outside_of_it(
    run: Runtime, home: Path, project: Path
) -> None:
    asked: list[str] = []

    def person(question: Question) -> Said:
        asked.append(always_about(question))
        return Said(allowed=True, always=True)

    run.asker, run.env["HARNESS_APPROVE"] = person, "ask"
    for path in ("a", "b", f"{home}/.bashrc", f"{home}/.profile", "~unknown-user/x"):
        asking.decide(run, {"id": "1", "name": "write_file", "input": {"path": path, "content": "x"}})

    assert asked == ["write_file", f"write_file in {home}"]
    assert str(project) not in str(asked)
