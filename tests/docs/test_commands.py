"""Every command that a page shows can be typed, and the blocks of the pages lead where their words say."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.agents import ADAPTERS
from harness_lib.cli import verb
from harness_lib.cli.parser import parse
from tests.conftest import CHECKOUT
from tests.system.git.gitrepo import sh

PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
PAGES += sorted((CHECKOUT / "references").glob("*.md"))
WRONG = "docs/when-something-is-wrong.md"
INLINE = re.compile(r"`(harness [a-z][^`]*)`")
# In a table or a sentence: what the reader fills in stands for a word, and a plural for several commands.
OPEN = re.compile(r"[…\[]|\bVERB\b|'$")


FILLED = {"N": "1", "NAME": "codex"}


def shown(page: Path) -> list[str]:
    """Return the commands of harness that `page` shows, in its sentences and in its blocks for a shell."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    typed = [
        command for line in lines for command in re.findall(r"(?:^|\w/|&& |\S=\S+ )(harness [a-z].*)", line)
    ]
    return [command for command in (*INLINE.findall(text), *typed) if not OPEN.search(command)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_can_be_typed(page: Path) -> None:
    names = {*verb.known()}
    for command in shown(page):
        words = [FILLED.get(word, word) for word in shlex.split(command, comments=True)[1:]]
        assert words[0] in names, command
        if "--help" not in words and len(words) > 1:
            parse(words)


def block(page: str, title: str, language: str = "sh") -> str:
    """Return the first block of `language` below a heading of `page`, or below a bold title."""
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    below = re.split(rf"^(?:## |1\. \*\*|\*\*){re.escape(title)}", text, maxsplit=1, flags=re.MULTILINE)[1]
    return below.split(f"```{language}\n")[1].split("```")[0]


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `harness` is this checkout's, as a link on the PATH makes it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    launcher = programs / "harness"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m harness_lib "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}


def typed(script: str, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        ["sh", "-eu", "-c", script], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    return done.stdout


def test_the_commands_of_several_workers_give_each_a_task(repo: Path, shell: dict[str, str]) -> None:
    init, worktree, claim = block("docs/unattended.md", "Several workers").splitlines()
    typed(init, repo, shell)
    for title in ("One", "Two"):
        typed(f"harness add {title} --validate true", repo, shell)
    typed("HARNESS_WORKER_ID=worker-1 harness claim", repo, shell)

    said = typed(f"{worktree}\n{claim}", repo, shell)

    assert "\ntask-002 [P1] attempt 1 of 3: Two\n" in said
    state = json.loads((repo / "harness-tasks.json").read_text(encoding="utf-8"))
    assert [task["claimed_by"] for task in state["tasks"]] == ["worker-1", "worker-2"]
    assert state["tasks"][1]["worktree"] == str(repo.parent / "worker-2")


def test_the_check_list_of_the_page_on_planning_is_imported(repo: Path, shell: dict[str, str]) -> None:
    (repo / "plan.md").write_text(block("references/planning.md", "Cut by", "markdown"), encoding="utf-8")
    typed("harness init", repo, shell)

    assert "would add 2 tasks" in typed("harness import plan.md --dry-run", repo, shell)
    typed("harness import plan.md", repo, shell)

    tasks = json.loads((repo / "harness-tasks.json").read_text(encoding="utf-8"))["tasks"]
    assert [task["depends_on"] for task in tasks] == [[], ["task-001"]]


def test_failed_work_is_got_back_as_shown(repo: Path, shell: dict[str, str]) -> None:
    text = (CHECKOUT / WRONG).read_text(encoding="utf-8").split("**Get failed work back**")[1]
    commands = INLINE.findall(text.split("\n\n", maxsplit=1)[0])
    begin = (
        "harness init; harness add One --validate false; harness claim; echo x > made; harness finish || :"
    )
    typed(f"export HARNESS_WORKER_ID=me; {begin}", repo, shell)
    assert not (repo / "made").exists()

    for command in commands:
        typed(command, repo, shell)

    assert (repo / "made").read_text(encoding="utf-8") == "x\n"


def test_the_words_that_narrow_an_agent_take_the_place_of_ours() -> None:
    text = (CHECKOUT / "docs/unattended.md").read_text(encoding="utf-8")
    words = re.search(r"`(--agent claude --agent-arg=.*?)`", text)
    assert words
    args = parse(["run", *shlex.split(words[1])])

    argv = ADAPTERS[args.agent].launch("x", extra=args.agent_arg).argv

    assert "--dangerously-skip-permissions" not in argv
    assert argv[-2:] == ("--allowedTools", "Edit Write Read Bash(npm test *)")


def test_a_link_puts_the_launcher_on_the_path(home: Path) -> None:
    """The line of README, typed in a clone: where the link leads is where the program is found."""
    (home / ".local/bin").mkdir(parents=True)
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    link = text.split("- **In a shell**: `")[1].split("`")[0]
    assert link.startswith("ln -s ")

    subprocess.run(["sh", "-eu", "-c", link], cwd=CHECKOUT, check=True, env=dict(os.environ))

    assert (home / ".local/bin/harness").resolve() == CHECKOUT / "bin/harness"


def test_the_lines_that_are_left_for_the_reader_to_delete_are_all_that_is_left(
    repo: Path, shell: dict[str, str]
) -> None:
    before = {path for path in (repo / ".git").rglob("*") if path.is_file() and "objects" not in path.parts}
    exclude = repo / ".git/info/exclude"
    lines = exclude.read_text(encoding="utf-8").splitlines() if exclude.exists() else []
    typed("harness init; harness add One --validate true; harness claim; harness finish", repo, shell)

    typed(block(WRONG, "Remove everything"), repo, shell)

    added = [line for line in exclude.read_text(encoding="utf-8").splitlines() if line not in lines]
    assert all(line.startswith(("/harness-", "/.harness")) for line in added), added
    after = {path for path in (repo / ".git").rglob("*") if path.is_file() and "objects" not in path.parts}
    assert not [path for path in after - before if "harness" in path.name], after - before
    assert sh(repo, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_the_clients_that_were_tried_are_those_that_the_tests_drive() -> None:
    pinned = json.loads((CHECKOUT / "tests/hosts/clients.json").read_text(encoding="utf-8"))
    page = (CHECKOUT / "docs/agents.md").read_text(encoding="utf-8")
    versions = {spec.rpartition("@")[2] for name, spec in pinned.items() if name not in ("node", "skills")}

    assert set(re.findall(r"the real client, ([\d.]+)", page)) == versions
