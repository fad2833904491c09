"""`harness hooks`: what is special about a host is heeded, from its syntax to the place of its file."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from harness_lib.agents import codex, registry
from harness_lib.hookinstall import entries
from tests.hookinstall.conftest import HOSTS, everything, place
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project


@pytest.mark.parametrize(
    "text", ["", 'model = "x"\n', 'model = "x"', 'a = 1\r\n[[hooks]]\r\nevent = "X"\r\n']
)
@pytest.mark.parametrize("touched", [False, True])
def test_kimi_gets_a_block_at_the_end_only(agent: Agent, home: Path, text: str, *, touched: bool) -> None:
    file = put(place(home, "kimi"), text)
    said = agent.ok("hooks", "install", "--agent", "kimi")["message"]
    assert "+ PreToolUse: " in said
    installed = file.read_bytes()
    assert installed.startswith(text.encode())
    guard, *_, hook = tomlkit.parse(installed).unwrap()["hooks"][-3:]
    assert set(guard) == {"event", "matcher", "command", "timeout"}
    assert set(hook) == {"event", "command", "timeout"}
    if touched:
        file.write_bytes(installed + b"b = 2\n")
    agent.ok("hooks", "uninstall", "--agent", "kimi")
    if not touched:
        assert file.read_bytes() == text.encode()
    elif text.endswith("\n"):
        assert file.read_bytes() == text.encode() + b"b = 2\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1\n[hooks]\nb = 2\n", "hooks is not a list"),
        ('hooks = [{ event = "Stop", command = "theirs" }]\n', "hooks is not a list of [[hooks]]"),
        ("a = \n", "line 1"),
    ],
)
def test_a_file_of_kimi_that_takes_none_is_refused(agent: Agent, home: Path, text: str, reason: str) -> None:
    file = put(place(home, "kimi"), text)
    said = agent.fails(3, "hooks", "install", "--agent", "kimi")
    assert str(file) in said["message"]
    assert reason in said["message"]
    assert file.read_text() == text


def test_what_is_ours_outside_of_its_block_is_not_called_gone(agent: Agent, home: Path) -> None:
    """0.1.0 added to an array where there was one."""
    file = put(place(home, "kimi"), "")
    agent.ok("hooks", "install", "--agent", "kimi")
    command = tomlkit.parse(file.read_text()).unwrap()["hooks"][0]["command"]
    put(file, f'hooks = [{{ event = "Stop", command = {json.dumps(command)} }}]\n')
    said = agent.fails(8, "hooks", "uninstall", "--agent", "kimi")
    assert f"{file} has hooks of harness outside of its block" in said["message"]
    assert "yourself" in said["error"]["hint"]


def test_opencode_is_told_the_truth(agent: Agent, home: Path) -> None:
    before = everything(home)
    for action in ("install", "status", "uninstall"):
        assert "no hook can hold it" in agent.ok("hooks", action, "--agent", "opencode")["message"]
    assert everything(home) == before


def test_the_trust_that_the_host_asks_for_is_named(agent: Agent) -> None:
    for name in HOSTS:
        *change, last = agent.ok("hooks", "install", "--agent", name)["message"].splitlines()
        assert last.startswith("What to do in ")
        assert name != "codex" or "/hooks" in last
        assert len(change) <= 10, change


def test_status_says_that_codex_skips_hooks_which_nobody_has_trusted(agent: Agent) -> None:
    agent.ok("init", "--git")
    agent.ok("add", "One", "--validate", "test 1")
    agent.ok("hooks", "install", "--agent", "codex")

    assert "hooks: on, but Codex skips them until you trust them: codex, /hooks\n" in agent("status").out
    agent.ok("hooks", "install", "--agent", "claude")
    assert "; Codex skips them until you trust them: codex, /hooks\n" in agent("status").out


def test_no_trust_is_forged(agent: Agent, home: Path) -> None:
    config = put(home / ".codex/config.toml", 'model = "x"\n')
    agent.ok("hooks", "install", "--agent", "codex")
    assert config.read_text() == 'model = "x"\n'
    assert "not trusted yet" in agent.ok("hooks", "status", "--agent", "codex")["message"]
    put(config, f'[hooks.state."{place(home, "codex")}:stop:0:0"]\ntrusted_hash = "sha256:x"\n')
    said = agent.ok("hooks", "status", "--agent", "codex")["message"]
    assert f"Codex: user file {place(home, 'codex')}" in said.splitlines()


@pytest.mark.parametrize("name", HOSTS)
def test_every_command_rings_and_is_silent_where_the_script_is_gone(name: str, tmp_path: Path) -> None:
    """As a host runs it: through `sh -c`, in a folder without a list."""
    host = registry.HOSTS[name]
    assert entries.by_event(host).keys() == set(host.events.values())
    weird = tmp_path / 'it\'s a "folder"'
    for script in (entries.folder() / "harness-stop.py", weird / "hooks/harness-stop.py"):
        command = entries.command(script, host)
        assert entries.script_of(command) == script
        done = run_to_end(["sh", "-c", command], cwd=tmp_path, stdin="{}")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


EDITS = "Edit|Write|MultiEdit|NotebookEdit|apply_patch"


@pytest.mark.parametrize(
    ("name", "event", "shape", "handler"),
    [
        ("claude", "Stop", {"hooks": 0}, {"command": "", "timeout": 10}),
        # It alone is told what a guard that fails means: others take no key that they do not know.
        (
            "claude",
            "PreToolUse",
            {"matcher": EDITS, "hooks": 0},
            {"command": "", "timeout": 10, "onFailure": "block"},
        ),
        ("codex", "PreToolUse", {"matcher": EDITS, "hooks": 0}, {"command": " codex", "timeout": 10}),
        ("copilot", "Stop", {}, {"bash": " copilot", "timeoutSec": 10}),
        (
            "copilot",
            "PreToolUse",
            {},
            {"bash": " copilot", "timeoutSec": 10, "matcher": "Edit|Write"},
        ),
        ("kimi", "PreToolUse", {}, {"command": " kimi", "timeout": 10, "matcher": "Edit|Write"}),
        ("cursor", "stop", {}, {"command": " cursor", "timeout": 10, "loop_limit": 1000}),
        # Its unit is the millisecond.
        (
            "gemini",
            "SessionStart",
            {"hooks": 0},
            {"command": " gemini", "timeout": 10_000, "name": "harness-sessionstart"},
        ),
    ],
)
def test_each_host_gets_entries_as_it_reads_them(
    name: str, event: str, shape: dict[str, Any], handler: dict[str, Any]
) -> None:
    entry: Any = entries.by_event(registry.HOSTS[name])[event]
    found = entry["hooks"][0] if shape else entry
    (key,) = {"command", "bash"} & set(found)

    assert found == {"type": "command", **handler, key: found[key]}
    assert found[key].endswith(f'-I -S "$f"{handler[key]}; }}')
    assert ("|| exit 0" in found[key]) is ("onFailure" in handler)
    assert not shape or entry == {**shape, "hooks": [found]}


def test_hooks_in_a_place_that_no_setting_can_hold_are_not_installed(
    agent: Agent, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "_HOME", put(tmp_path / "a\nb/hooks/hooks.json", "{}").parent.parent)

    assert "no setting can hold" in agent.fails(2, "hooks", "install", "--agent", "claude")["message"]
    assert not place(home, "claude").exists()


def test_the_arguments_of_a_command_are_quoted() -> None:
    command = entries.command(Path("/a b/$(x)/hooks/harness-stop.py"), codex.HOOKS)
    assert shlex.split(command.partition(";")[0])[0] == "f=/a b/$(x)/hooks/harness-stop.py"
    assert os.sep in command


# -- for which host and in which place, the user's or the project's, is asked and kept to


def test_the_scope_project_is_the_top_of_the_work_tree(project: Project, agent: Agent, home: Path) -> None:
    agent.cwd = project.put("deep/er/file").parent
    before = everything(home)
    for name in ("claude", "codex", "gemini", "copilot", "cursor"):
        said = agent.ok("hooks", "install", "--agent", name, "--scope", "project")
        file = project.top / registry.HOSTS[name].files["project"][0]
        assert Path(said["file"]) == file
        assert file.is_file()
        agent.ok("hooks", "uninstall", "--agent", name)
        assert not file.exists()
    assert everything(home) == before


def test_a_home_that_is_the_project_is_one_place(agent: Agent, home: Path) -> None:
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    before = everything(home)
    agent.cwd = home
    agent.ok("hooks", "install", "--agent", "codex")
    assert "twice" not in agent("doctor").out
    agent.ok("hooks", "uninstall", "--agent", "codex")
    assert everything(home) == before


def test_what_leaves_the_project_stays_in_the_home(agent: Agent) -> None:
    file = Path(agent.ok("hooks", "install", "--agent", "codex")["file"])
    before = file.read_bytes()
    agent.ok("hooks", "uninstall", "--agent", "codex", "--scope", "project")
    assert file.read_bytes() == before


def test_kimi_has_no_file_for_a_project(agent: Agent) -> None:
    error = agent.fails(2, "hooks", "install", "--agent", "kimi", "--scope", "project")["error"]
    assert error["hint"] == "harness hooks install --agent kimi --scope user"


def test_a_moved_home_of_the_host_is_honoured(agent: Agent, tmp_path: Path) -> None:
    for name, variable, file in (
        ("codex", "CODEX_HOME", "hooks.json"),
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("kimi", "KIMI_CODE_HOME", "config.toml"),
    ):
        agent.ok("hooks", "install", "--agent", name, **{variable: str(tmp_path / name)})
        assert (tmp_path / name / file).is_file()


def test_install_needs_to_know_for_whom(agent: Agent) -> None:
    agent.fails(2, "hooks", "install")
    agent.fails(2, "hooks", "uninstall")
    agent.fails(2, "hooks", "install", "--agent", "emacs")
    assert "Claude Code: no hooks" in agent.ok("hooks")["message"]
