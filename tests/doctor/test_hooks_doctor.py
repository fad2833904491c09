"""`harness doctor` finds why hooks do not work, and says what to do."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.system.place import find_root
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put
from tests.verbs.findings import finding, troubles
from tests.verbs.project import Agent, Project

pytestmark = pytest.mark.usefixtures("asked_once")

INSIDE_CODEX = {"CODEX_SESSION_ID": "s"}
INSIDE_CLAUDE = {"CLAUDECODE": "1"}


def programs(folder: Path, *names: str, **scripts: str) -> str:
    """Return a PATH with the real programs `names` and the shell `scripts`."""
    folder.mkdir()
    for name in names:
        real = next(Path(p) / name for p in os.environ["PATH"].split(os.pathsep) if (Path(p) / name).exists())
        (folder / name).symlink_to(real)
    for name, script in scripts.items():
        put(folder / name, f"#!/bin/sh\n{script}\n", executable=True)
    return str(folder)


def skill_folder(folder: Path) -> None:
    """Make what Claude Code takes for a skill folder that is a plugin."""
    for name in (".claude-plugin/plugin.json", "hooks/hooks.json"):
        file = folder / name
        put(file, "{}")


def test_hooks_that_are_not_loaded_are_told_inside_the_agent(agent: Agent) -> None:
    said = finding(agent.ok("doctor", **INSIDE_CLAUDE), "does not load the hooks")
    assert (said["level"], said["cure"]) == ("warn", "harness hooks install --agent claude")
    agent.ok("hooks", "install", "--agent", "claude")
    assert finding(agent.ok("doctor", **INSIDE_CLAUDE), "Claude Code loads the hooks")["level"] == "ok"


def test_where_no_agent_is_used_nothing_is_missed_and_one_that_is_only_installed_is_no_trouble(
    agent: Agent, home: Path
) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    assert troubles(agent.ok("doctor")) == []
    (home / ".gemini").mkdir()
    said = finding(agent.ok("doctor"), "Gemini CLI is used on this machine without the hooks")
    assert (said["level"], said["cure"]) == ("ok", "harness hooks install --agent gemini")


def test_hooks_that_codex_does_not_trust_are_told(agent: Agent, home: Path) -> None:
    agent.ok("hooks", "install", "--agent", "codex")
    said = finding(agent.ok("doctor", **INSIDE_CODEX), "has not been told to trust")
    assert "/hooks" in said["cure"]
    key = f"{home}/.codex/hooks.json:stop:0:0"
    (home / ".codex/config.toml").write_text(f'[hooks.state."{key}"]\n')
    assert finding(agent.ok("doctor", **INSIDE_CODEX), "Codex loads the hooks")["level"] == "ok"


@pytest.mark.parametrize("trusted", [False, True])
def test_an_untrusted_skill_is_told(project: Project, agent: Agent, home: Path, *, trusted: bool) -> None:
    project.put(".claude/skills/harness/.claude-plugin/plugin.json", "{}")
    project.put(".claude/skills/harness/hooks/hooks.json", "{}")
    known = {"projects": {str(project.top): {"hasTrustDialogAccepted": trusted}}}
    (home / ".claude.json").write_text(json.dumps(known))
    said = agent.ok("doctor", **INSIDE_CLAUDE)
    assert finding(said, "project skill folder")["level"] == ("ok" if trusted else "warn")


def test_an_installed_plugin_of_claude_code_goes_before_the_skill_folder(agent: Agent, home: Path) -> None:
    """Claude Code leaves the folder out then, as `claude plugin list` says; so nothing is loaded twice."""
    skill_folder(home / ".claude/skills/harness")
    assert finding(agent.ok("doctor"), "Claude Code loads the hooks")["what"].endswith("skills/harness")
    settings = home / ".claude/settings.json"
    for others in ('"harness@skills-dir": true', '"harness@harness": false, "theirs@harness": true'):
        settings.write_text(f'{{"enabledPlugins": {{{others}}}}}')
        assert finding(agent.ok("doctor"), "Claude Code loads the hooks")["what"].endswith("skills/harness")
    settings.write_text('{"enabledPlugins": {"harness@harness": true}}')
    assert finding(agent.ok("doctor"), "Claude Code loads the hooks: plugin harness@harness")


def test_hooks_that_are_loaded_twice_are_told(agent: Agent, home: Path) -> None:
    agent.ok("hooks", "install", "--agent", "claude")
    skill_folder(home / ".claude/skills/harness")
    said = finding(agent.ok("doctor", **INSIDE_CLAUDE), "twice")
    assert said["cure"] == "harness hooks uninstall --agent claude --scope user"
    agent(*said["cure"].split()[1:])
    assert finding(agent.ok("doctor", **INSIDE_CLAUDE), "Claude Code loads the hooks")["level"] == "ok"


def test_a_plugin_of_codex_beside_its_file_is_twice(agent: Agent, home: Path) -> None:
    agent.ok("hooks", "install", "--agent", "codex")
    config = '[plugins."harness@mk"]\nenabled = true\n'
    (home / ".codex/config.toml").write_text(config)
    assert finding(agent.ok("doctor", **INSIDE_CODEX), "Codex loads the hooks twice")["level"] == "warn"
    agent.ok("hooks", "uninstall", "--agent", "codex")
    assert finding(agent.ok("doctor"), "the hooks of the plugin harness@mk, and skips")["level"] == "warn"
    trusted = config + '[hooks.state."harness@mk:hooks/hooks.json:stop:0:0"]\n'
    (home / ".codex/config.toml").write_text(trusted)
    assert finding(agent.ok("doctor"), "Codex loads the hooks: plugin harness@mk")["level"] == "ok"


def test_scripts_that_are_gone_are_told(agent: Agent, home: Path) -> None:
    agent.ok("hooks", "install", "--agent", "claude")
    file = home / ".claude/settings.json"
    file.write_text(file.read_text().replace("f=", "f=/gone"))
    assert finding(agent.ok("doctor"), "is gone")["cure"] == "harness hooks install --agent claude"


def test_settings_that_cannot_be_read_are_told(agent: Agent, home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text("{\n")
    assert finding(agent.fails(1, "doctor"), "settings.json, line 2")["level"] == "bad"


@pytest.mark.parametrize("how", ["missing", "old"])
def test_a_python_that_hooks_cannot_run_with_is_told(agent: Agent, tmp_path: Path, how: str) -> None:
    scripts = {} if how == "missing" else {"python3": "exit 1"}
    path = programs(tmp_path / "bin", "git", "sh", **scripts)
    said = agent("doctor", "--json", PATH=path).json
    words = "python3 is not on the PATH" if how == "missing" else "which starts the hooks, is older"
    assert finding(said, words)["cure"]


def test_a_list_unseen_from_a_worktree_is_told(project: Project, agent: Agent, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "linked"))
    (project.top / ".git" / find_root.NOTE).unlink()
    agent.cwd = tmp_path / "linked"
    said = finding(agent.fails(1, "doctor"), "not found from this linked worktree")
    agent.ok("init", said["cure"].split()[2])
    assert str(project.top) in finding(agent.ok("doctor"), "state root")["what"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root; see tests/hosts for a sandbox")
def test_a_repository_that_cannot_be_written_is_told(project: Project, agent: Agent) -> None:
    (project.top / ".git").chmod(0o555)
    try:
        said = finding(agent.fails(1, "doctor", **INSIDE_CODEX), "nothing can be committed")
    finally:
        (project.top / ".git").chmod(0o755)
    assert "writable_roots" in said["cure"]


MOUNTED = ["unshare", "--user", "--map-root-user", "--mount"]


def _mounts() -> bool:
    try:
        return subprocess.run([*MOUNTED, "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not _mounts(), reason="this machine makes no mount namespaces for its users")
def test_a_file_system_that_is_mounted_for_reading_is_told_from_a_missing_right(project: Project) -> None:
    only_read = f"mount --bind {project.top} {project.top}; mount -o remount,bind,ro {project.top}"
    doctor = f"cd {project.top}; {shlex.quote(sys.executable)} -m harness_lib doctor"
    said = run_to_end([*MOUNTED, "sh", "-c", f"{only_read}; {doctor}"])
    assert said.returncode == 1, said.stderr
    assert f"mount its file system for writing: findmnt -T {project.top}" in said.stdout
    assert "give yourself write permission" not in said.stdout
