"""`harness hooks`: a file that cannot be read, written or reached safely is left alone, and why is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.agents import claude
from harness_lib.errors import HeldError
from harness_lib.hookinstall import host_files
from tests.hookinstall.hookfiles import agent, commands, everything, place
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent

__all__ = ["agent"]


BROKEN: list[tuple[str | bytes, int]] = [
    ('{\n  "a": 1\n  "b": 2\n}', 3),
    ('{\n  "hooks": []\n}', 2),
    ('{"a": 1}\n}', 2),
    ("[]", 1),
    (b'{\n"a": "\xff"}', 2),
    ("[" * 200_000, 1),
]


@pytest.mark.parametrize("name", ["claude", "codex", "cursor"])
def test_a_broken_file_is_left_alone_and_its_line_named(agent: Agent, home: Path, name: str) -> None:
    for data, line in BROKEN:
        file = put(place(home, name), data)
        before = everything(home)
        said = agent.fails(3, "hooks", "install", "--agent", name)
        assert f"{file}, line {line}" in said["message"]
        assert everything(home) == before
        assert f"line {line}" in agent.ok("hooks", "status", "--agent", name)["message"]


@pytest.mark.parametrize("listed", ['"x"', "{}", "null"])
def test_what_stands_for_an_event_and_is_no_list_is_left_alone_and_named(
    agent: Agent, home: Path, listed: str
) -> None:
    file = put(place(home, "claude"), f'{{"hooks": {{"Stop": {listed}}}}}')
    before = everything(home)
    said = agent.fails(3, "hooks", "install", "--agent", "claude")
    assert f"{file}, hooks.Stop must be a list" in said["message"]
    assert everything(home) == before


def test_a_read_only_file_is_refused(agent: Agent, home: Path) -> None:
    file = put(place(home, "claude"), "{}")
    file.chmod(0o444)
    said = agent.fails(8, "hooks", "install", "--agent", "claude")
    assert "read-only" in said["message"]
    assert file.read_bytes() == b"{}"


def test_a_file_that_no_host_could_read_is_refused(
    agent: Agent, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(place(home, "claude"), "{}")
    monkeypatch.setattr(host_files, "LARGEST", 1)
    assert "could read" in agent.fails(8, "hooks", "install", "--agent", "claude")["message"]
    assert file.read_bytes() == b"{}"


def test_what_somebody_writes_meanwhile_is_not_written_over(home: Path) -> None:
    file = put(place(home, "claude"), "{}")
    read = host_files.read(claude.HOOKS, file)
    put(file, '{"theirs": 1}')
    with pytest.raises(HeldError, match="has changed just now"):
        host_files.write(read, read.installed())
    assert file.read_text() == '{"theirs": 1}'


def test_a_directory_in_the_place_of_the_file_is_refused(agent: Agent, home: Path) -> None:
    place(home, "claude").mkdir(parents=True)
    agent.fails(8, "hooks", "install", "--agent", "claude")


@pytest.mark.parametrize("dangling", [False, True])
def test_a_linked_file_is_written_to(agent: Agent, home: Path, tmp_path: Path, *, dangling: bool) -> None:
    behind = tmp_path / "dotfiles/claude.json"
    if not dangling:
        put(behind, '{"a": 1}')
    link = place(home, "claude")
    link.parent.mkdir(parents=True)
    link.symlink_to(behind)
    agent.ok("hooks", "install", "--agent", "claude")
    assert link.is_symlink()
    assert len(commands(behind)) == len(claude.HOOKS.events)
    agent.ok("hooks", "uninstall", "--agent", "claude")
    assert link.is_symlink()
    assert behind.exists() == (not dangling)
    assert dangling or behind.read_text() == '{"a": 1}'


def test_a_link_out_of_the_project_is_refused(agent: Agent, tmp_path: Path) -> None:
    """A clone could bring it."""
    (tmp_path / "elsewhere").mkdir()
    (agent.cwd / ".codex").symlink_to(tmp_path / "elsewhere")
    agent.fails(8, "hooks", "install", "--agent", "codex", "--scope", "project")
    assert not any((tmp_path / "elsewhere").iterdir())
