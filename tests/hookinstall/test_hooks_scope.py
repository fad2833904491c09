"""`harness hooks`: for which host and in which place, the user's or the project's, is asked and kept to."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness_lib.agents.registry import HOSTS
from tests.hookinstall.hookfiles import agent, everything
from tests.verbs.project import Agent, Project

__all__ = ["agent"]


def test_the_scope_project_is_the_top_of_the_work_tree(project: Project, agent: Agent, home: Path) -> None:
    agent.cwd = project.put("deep/er/file").parent
    before = everything(home)
    for name in ("claude", "codex", "gemini", "copilot", "cursor"):
        said = agent.ok("hooks", "install", "--agent", name, "--scope", "project")
        file = project.top / HOSTS[name].files["project"][0]
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
