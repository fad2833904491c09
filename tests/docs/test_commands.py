"""Every command that a page shows can be typed, and the blocks of the pages lead where their words say."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from harness_lib.agents.registry import ADAPTERS
from harness_lib.cli import parser
from harness_lib.cli.parser import parse
from tests.conftest import CHECKOUT
from tests.docs.pages import block
from tests.verbs.conftest import Make, make_project

__all__ = ["make_project"]

INLINE = re.compile(r"`(harness [a-z][^`]*)`")
# In a table or a sentence: what the reader fills in stands for a word, and a plural for several commands.
OPEN = re.compile(r"[…\[]|\bVERB\b|'$")
FILLED = {"N": "1", "NAME": "codex"}


def can_be_typed(page: Path) -> None:
    """Fail unless each command of `page` names a verb and options that there are."""
    names = {*parser.known()}
    for command in _shown(page):
        words = [FILLED.get(word, word) for word in shlex.split(command, comments=True)[1:]]
        assert words[0] in names, command
        if "--help" not in words and len(words) > 1:
            parse(words)


def _shown(page: Path) -> list[str]:
    text = page.read_text()
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    typed = [
        command for line in lines for command in re.findall(r"(?:^|\w/|&& |\S=\S+ )(harness [a-z].*)", line)
    ]
    return [command for command in (*INLINE.findall(text), *typed) if not OPEN.search(command)]


PAGES = [
    *(CHECKOUT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SKILL")),
    *sorted(path for folder in ("docs", "references") for path in (CHECKOUT / folder).glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_can_be_typed(page: Path) -> None:
    can_be_typed(page)


def test_the_commands_of_several_workers_give_each_a_task(make_project: Make) -> None:
    init, worktree, claim = block("docs/unattended.md", "Several workers").splitlines()
    project = make_project(bare=True)
    first = project.agent("worker-1")
    first.ok(*init.split()[1:])
    for title in ("One", "Two"):
        first.ok("add", title, "--validate", "true")
    first.ok("claim")

    project.git(*worktree.split()[1:])
    place, named, command = re.fullmatch(r"cd (\S+) && HARNESS_WORKER_ID=(\S+) harness (.*)", claim).groups()  # type: ignore[union-attr]
    brief = project.agent(named, (project.top / place).resolve()).ok(*command.split())["brief"]

    assert brief.startswith("task-002 [P1] attempt 1 of 3: Two\n")
    assert [task["claimed_by"] for task in project.state["tasks"]] == ["worker-1", "worker-2"]
    assert project.task("task-002")["worktree"] == str(project.top.parent / "worker-2")


def test_the_check_list_of_the_page_on_planning_is_imported(make_project: Make) -> None:
    project = make_project()
    project.put("plan.md", block("references/planning.md", "Cut by", "markdown"))

    assert "would add 2 tasks" in project.agent()("import", "plan.md", "--dry-run").out
    project.agent().ok("import", "plan.md")

    assert [task["depends_on"] for task in project.state["tasks"]] == [[], ["task-001"]]


def test_the_words_that_narrow_an_agent_take_the_place_of_ours() -> None:
    text = (CHECKOUT / "docs/unattended.md").read_text()
    words = re.search(r"`(--agent claude --agent-arg=.*?)`", text)
    assert words
    args = parse(["run", *shlex.split(words[1])])

    argv = ADAPTERS[args.agent].launch(None, args.agent_arg).argv

    assert "--dangerously-skip-permissions" not in argv
    assert argv[-2:] == ("--allowedTools", "Edit Write Read Bash(npm test *)")


def test_a_link_puts_the_launcher_on_the_path(home: Path) -> None:
    """The line of README, typed in a clone: where the link leads is where the program is found."""
    text = (CHECKOUT / "README.md").read_text()
    link = text.split("- **In a shell**: `")[1].split("`")[0]

    subprocess.run(["sh", "-eu", "-c", link], cwd=CHECKOUT, check=True, env=dict(os.environ))

    for program in ("harness", "hs"):
        assert (home / ".local/bin" / program).resolve() == CHECKOUT / "bin" / program


def test_the_clients_that_were_tried_are_those_that_the_tests_drive() -> None:
    pinned = json.loads((CHECKOUT / "tests/hosts/clients.json").read_text())
    page = (CHECKOUT / "docs/agents.md").read_text()
    versions = {spec.rpartition("@")[2] for name, spec in pinned.items() if name not in ("node", "skills")}

    assert set(re.findall(r"the real client, ([\d.]+)", page)) == versions
