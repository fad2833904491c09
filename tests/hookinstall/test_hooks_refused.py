"""`harness hooks`: what is not safe, works already or is another's is left alone, and why is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lib.agents import claude
from harness_lib.errors import HeldError
from harness_lib.hookinstall import entries, host_files
from tests.hookinstall.conftest import commands, everything, place
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent

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
def test_an_event_that_has_no_list_is_left_alone_and_named(agent: Agent, home: Path, listed: str) -> None:
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


def test_what_no_host_can_read_is_refused(agent: Agent, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


# -- what works already is not doubled, and another's hooks are not moved or taken away


def test_hooks_that_work_already_are_not_switched_on_twice(agent: Agent, home: Path) -> None:
    agent.ok("hooks", "install", "--agent", "codex")
    said = agent.ok("hooks", "install", "--agent", "codex", "--scope", "project")
    assert not said["written"]
    assert str(place(home, "codex")) in said["message"]


def test_a_skill_folder_or_a_plugin_that_brings_the_hooks_needs_no_file(agent: Agent, home: Path) -> None:
    folder = home / ".claude/skills/harness"
    for name in (".claude-plugin/plugin.json", "hooks/hooks.json"):
        put(folder / name, "{}")
    said = agent.ok("hooks", "install", "--agent", "claude")
    assert not said["written"]
    assert str(folder) in said["message"]
    file = put(place(home, "claude"), '{"enabledPlugins": {"harness@mk": true}}')
    before = file.read_bytes()
    assert "plugin harness@mk" in agent.ok("hooks", "install", "--agent", "claude")["message"]
    assert file.read_bytes() == before
    put(file, '{"enabledPlugins": {"harness@skills-dir": false}}')
    assert agent.ok("hooks", "install", "--agent", "claude")["written"]


def test_packages_say_where_hooks_are(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_HOME", tmp_path / "site-packages")
    said = agent.fails(7, "hooks", "install", "--agent", "claude")
    assert "npx skills add" in said["error"]["hint"]


def test_entries_of_a_checkout_that_moved_are_led_to_its_new_place(agent: Agent, home: Path) -> None:
    """Codex knows a hook by its place in the list; nobody else's may move."""
    file = place(home, "codex")
    agent.ok("hooks", "install", "--agent", "codex")
    old = json.loads(file.read_text().replace(str(entries.folder()), "/gone/hooks"))
    old["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs"}]})
    file.write_text(json.dumps(old, indent=2))
    assert "is gone" in agent.ok("hooks", "status", "--agent", "codex")["message"]
    agent.ok("hooks", "install", "--agent", "codex")
    installed = json.loads(file.read_text())
    assert [len(installed["hooks"][event]) for event in installed["hooks"]] == [2, 1, 1, 1, 1, 1, 1]
    assert installed["hooks"]["Stop"][1] == old["hooks"]["Stop"][1]
    assert "/gone/" not in file.read_text()


def test_another_harness_is_told_of_and_left(agent: Agent, home: Path) -> None:
    theirs = "python3 ~/.claude/skills/old/hooks/harness-stop.py"
    file = put(
        place(home, "claude"),
        json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": theirs}]}]}}),
    )
    linter = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "lint"}]}]}})
    put(agent.cwd / ".claude/settings.json", linter)
    said = agent.ok("hooks", "install", "--agent", "claude")
    assert ["another harness" in each for each in said["warnings"]].count(True) == 1
    agent.ok("hooks", "uninstall", "--agent", "claude")
    assert commands(file) == [theirs]


def test_ours_among_the_handlers_of_somebody_else_leaves_alone(agent: Agent, home: Path) -> None:
    file = place(home, "claude")
    agent.ok("hooks", "install", "--agent", "claude")
    installed = json.loads(file.read_text())
    installed["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "theirs"})
    file.write_text(json.dumps(installed))
    assert not agent.ok("hooks", "install", "--agent", "claude")["written"]
    agent.ok("hooks", "uninstall", "--agent", "claude")
    assert json.loads(file.read_text()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}
    }


def test_an_entry_whose_hooks_are_no_list_is_a_handler_itself() -> None:
    document = {"hooks": {"stop": [{"command": "theirs", "hooks": {}}]}}
    assert list(entries.handlers(document)) == [("stop", "theirs")]


RING = entries.command(Path("/x/hooks/harness-stop.py"), claude.HOOKS).partition("; ")[2]
FORMER = '[ ! -f "$f" ] || { HARNESS_CWD=$PWD; export HARNESS_CWD; cd /; exec python3 -I -S "$f"; }'


def test_what_is_spelled_so_is_ours_and_nothing_else() -> None:
    for ring in (RING, FORMER):
        assert entries.script_of(f"f=/x/hooks/harness-stop.py; {ring}") == Path("/x/hooks/harness-stop.py")
    for command in (
        "python3 hooks/harness-stop.py",
        f"f=/x/hooks/other.py; {RING}",
        f"f=/x/harness-stop.py; {RING}",
        f"f=/x/hooks/harness-stop.py; {RING}; echo mine",
        f"f=a b/hooks/harness-stop.py; {RING}",
        f"f='; {RING}",
        None,
        7,
    ):
        assert entries.script_of(command) is None, command
