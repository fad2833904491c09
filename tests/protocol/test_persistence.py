"""The two files of the prose: the log only grows; the list is backed up, replaced whole and restored."""

from __future__ import annotations

import json
import threading

import pytest

from tests.verbs.project import LINE, Agent, Project


def test_every_write_leaves_the_generation_before_it_in_the_backup(project: Project, agent: Agent) -> None:
    """Byte for byte, through a whole attempt; a command that changes nothing leaves the backup alone."""
    backup = project.top / "harness-tasks.json.bak"
    agent.ok("add", "Something", "--validate", "test -f work.txt")
    generations = project.top / ".harness" / "generations"
    seen = project.file.read_bytes()
    for command in (("start",), ("claim",), ("checkpoint", "task-001", "1/1", "written"), ("finish",)):
        if command == ("finish",):
            project.put("work.txt")
        agent.ok(*command)
        kept = [path.read_bytes() for path in sorted(generations.iterdir())]
        assert kept[-1] == project.file.read_bytes()
        assert kept[-2] == backup.read_bytes()
        assert seen in kept
        seen = project.file.read_bytes()
    before = backup.read_bytes()
    agent("status")
    agent("claim")
    assert backup.read_bytes() == before


def test_readers_never_see_part_of_a_file(project: Project, agent: Agent) -> None:
    """A reader without any lock looks all the while; the file is replaced, never written into."""
    agent.ok("add", "Something " * 50)
    wrong: list[str] = []
    inodes = {project.file.stat().st_ino}
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for path in (project.file, project.top / "harness-tasks.json.bak"):
                try:
                    json.loads(path.read_bytes())
                except ValueError as error:
                    wrong.append(f"{path.name}: {error}")

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for number in range(15):
            agent.ok("add", f"Task {number}")
            inodes.add(project.file.stat().st_ino)
    finally:
        over.set()
        reader.join()
    assert wrong == []
    assert len(inodes) > 1


def test_the_log_only_grows(project: Project, agent: Agent) -> None:
    """Whatever happens, what stood there before stands there afterwards, in the same file."""
    log = project.top / "harness-progress.txt"
    before, inode = log.read_bytes(), log.stat().st_ino
    agent.ok("add", "Something", "--validate", "false")
    for command in (("init",), ("start",), ("claim",), ("finish",), ("stop",), ("start",), ("pause",)):
        agent(*command)
        after = log.read_bytes()
        assert after.startswith(before)
        before = after
    assert log.stat().st_ino == inode
    assert all(LINE.match(line) for line in project.log)


def test_a_list_that_is_no_json_is_restored_from_the_backup(project: Project, agent: Agent) -> None:
    """As the prose restores it, and what the broken file held is kept beside it."""
    agent.ok("add", "First")
    agent.ok("add", "Second")
    backup = (project.top / "harness-tasks.json.bak").read_bytes()
    for path in project.generations:
        path.unlink()
    project.put("harness-tasks.json", b'{"tasks": [{"id": "task-0')

    agent.ok("add", "Third")

    assert [task["title"] for task in project.state["tasks"]] == ["First", "Third"]
    assert json.loads(backup)["tasks"] == project.state["tasks"][:1]
    assert project.grep("WARN", "restored from harness-tasks.json.bak")
    kept = project.top.glob("harness-tasks.json.broken-*")
    assert [path.read_text() for path in kept] == ['{"tasks": [{"id": "task-0']


@pytest.mark.parametrize("verb", ["start", "claim", "finish", "recover", "stop"])
def test_with_nothing_to_restore_from_the_line_of_the_prose_is_logged_and_nothing_written(
    project: Project, agent: Agent, verb: str
) -> None:
    """Whichever command of a session meets it first; looking at it writes nothing at all."""
    agent.ok("add", "First")
    for path in [*project.generations, project.top / "harness-tasks.json.bak"]:
        path.write_bytes(b"no json")
    project.put("harness-tasks.json", b"no json either")
    agent.fails(4, "status")
    assert project.grep("ERROR") == []

    agent.fails(4, verb)

    assert project.read("harness-tasks.json") == "no json either"
    (line,) = project.grep("ERROR")
    assert line.endswith("ERROR [ENV_SETUP] harness-tasks.json corrupted and unrecoverable")
