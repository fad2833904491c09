"""The two files of the protocol: the log only grows; the list is backed up, replaced whole and restored."""

from __future__ import annotations

from tests.verbs.project import LINE, Agent, Project


def test_every_write_leaves_the_generation_before_it_in_the_backup(project: Project, agent: Agent) -> None:
    """Byte for byte, through a whole attempt; a command that changes nothing leaves the backup alone."""
    backup = project.top / "harness-tasks.json.bak"
    agent.ok("add", "Something", "--validate", "test -f work.txt")
    generations = project.top / ".harness/generations"
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
