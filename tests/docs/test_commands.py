"""Commands, numbers, flags and outcomes that pages name are those of the code and of the tests."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import ways
from benchmarks.cases import Case, Result
from benchmarks.cheats import CHEATS
from benchmarks.honest import HONEST
from harness_lib import task
from harness_lib.agents.registry import ADAPTERS
from harness_lib.attempts import requeue, rescue_refs
from harness_lib.cli import parser
from harness_lib.cli.parser import parse
from harness_lib.hookio import policy
from harness_lib.rules import recovery
from harness_lib.runs import settings
from harness_lib.state import store
from harness_lib.system.files import printed
from tests.conftest import CHECKOUT
from tests.docs.pages import block
from tests.verbs.conftest import Make, make_project

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
    text = page.read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    typed = [
        command for line in lines for command in re.findall(r"(?:^|\w/|&& |\S=\S+ )(harness [a-z].*)", line)
    ]
    return [command for command in (*INLINE.findall(text), *typed) if not OPEN.search(command)]


# -- commands, numbers, flags and outcomes that pages name are those of the code and of the tests


__all__ = ["make_project"]

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
    text = (CHECKOUT / "docs/unattended.md").read_text(encoding="utf-8")
    words = re.search(r"`(--agent claude --agent-arg=.*?)`", text)
    assert words
    args = parse(["run", *shlex.split(words[1])])

    argv = ADAPTERS[args.agent].launch("x", extra=args.agent_arg).argv

    assert "--dangerously-skip-permissions" not in argv
    assert argv[-2:] == ("--allowedTools", "Edit Write Read Bash(npm test *)")


def test_a_link_puts_the_launcher_on_the_path(home: Path) -> None:
    """The line of README, typed in a clone: where the link leads is where the program is found."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    link = text.split("- **In a shell**: `")[1].split("`")[0]

    subprocess.run(["sh", "-eu", "-c", link], cwd=CHECKOUT, check=True, env=dict(os.environ))

    for program in ("harness", "hs"):
        assert (home / ".local/bin" / program).resolve() == CHECKOUT / "bin" / program


def test_the_clients_that_were_tried_are_those_that_the_tests_drive() -> None:
    pinned = json.loads((CHECKOUT / "tests/hosts/clients.json").read_text(encoding="utf-8"))
    page = (CHECKOUT / "docs/agents.md").read_text(encoding="utf-8")
    versions = {spec.rpartition("@")[2] for name, spec in pinned.items() if name not in ("node", "skills")}

    assert set(re.findall(r"the real client, ([\d.]+)", page)) == versions


MEGA = 1024 * 1024
IN_WORDS = {2: "two times", 8: "Eight times"}
MAX_FILE = settings.KEYS["max-file"].default

NAMED = [
    ("docs/hooks.md", f"{IN_WORDS[policy.PATIENCE]} in a row without progress"),
    ("docs/design.md", f"| {IN_WORDS[policy.PATIENCE].split()[0].lower()} blocks in a row"),
    ("docs/commands.md", f"({rescue_refs.DAYS:g} days, {rescue_refs.MEGABYTES} MB)"),
    ("docs/unattended.md", f"both ends are kept, {printed.KEPT_BYTES // MEGA} MB each"),
    ("docs/unattended.md", f"more than {MAX_FILE:g} MB (`--max-file`)"),
    ("docs/unattended.md", f"the first {IN_WORDS[requeue.FREE_ROUNDS]} no attempt is counted"),
    ("references/checks.md", f"after `--timeout` seconds ({task.DEFAULT_TIMEOUT_SECONDS} unless told)"),
    ("references/concurrent.md", f"{recovery.DEFAULT_SECONDS // 60} minutes (`{recovery.VARIABLE}`)"),
    ("docs/design.md", f"waited for at most {store.TIMEOUT_SECONDS:g} seconds"),
]
GIVEN = [
    ("claude", "--dangerously-skip-permissions"),
    ("gemini", "--approval-mode yolo"),
    ("copilot", "--allow-all-tools"),
    ("opencode", "--auto"),
    ("codex", "--sandbox workspace-write"),
]


def test_a_page_names_the_number_of_the_code() -> None:
    for page, words in NAMED:
        assert words in (CHECKOUT / page).read_text(encoding="utf-8"), page


def test_an_agent_is_started_with_what_the_page_says() -> None:
    page = (CHECKOUT / "docs/unattended.md").read_text(encoding="utf-8")
    told = page.split("## What the agents may do")[1].split("\n## ")[0]
    for agent, flags in GIVEN:
        assert f"`{flags}`" in told
        assert flags in " ".join(ADAPTERS[agent].launch("x").argv)


PAGE = (CHECKOUT / "docs" / "done.md").read_text(encoding="utf-8")
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
RUN, HELD_OUT = "harness run", "harness run with held-out checks"


def _rows(title: str) -> dict[str, list[str]]:
    """Return the rows of the table with that title, by their first cell."""
    table = PAGE.split(f"| {title} |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    return {name: cells for name, *cells in rows}


def _count(several: Mapping[str, Case], *results: Result) -> str:
    return str(sum(case.run in results for case in several.values()))


def test_the_tables_have_a_row_for_each_way_of_working() -> None:
    for title in ("20 tasks", f"{len(CHEATS)} ways to cheat", f"{len(HONEST)} honest tasks"):
        assert list(_rows(title)) == list(ways.WAYS)


def test_what_a_run_makes_of_the_cases_is_what_the_tests_of_each_hold() -> None:
    for title, several in (("ways to cheat", CHEATS), ("honest tasks", HONEST)):
        false, named, held, _ = _rows(f"{len(several)} {title}")[RUN]
        assert false == _count(several, "false", "named")
        assert named == _count(several, "named")
        assert held == _count(several, "held")


def test_what_still_passes_is_listed_to_the_last_cheat() -> None:
    nobody, told = PAGE.split("Nobody is told:")[1].split("You are told")
    for text, result in ((nobody, "false"), (told, "named")):
        listed = re.findall(r"^- \*([^*]+)\*:", text, re.MULTILINE)
        assert listed == [name for name, case in CHEATS.items() if case.run == result]


def test_the_bars_are_kept_by_what_was_measured() -> None:
    tasks = _rows("20 tasks")

    assert int(tasks[RUN][1]) <= 4
    assert int(tasks[HELD_OUT][1]) == 0
    assert all(int(_rows(f"{len(HONEST)} honest tasks")[way][2]) <= 1 for way in (RUN, HELD_OUT))


def test_the_first_screen_has_the_figure() -> None:
    tasks = _rows("20 tasks")
    (line,) = (line for line in README.splitlines()[:24] if "docs/done.md" in line)
    counted = re.findall(r"\d+", line)

    assert counted == ["20", tasks["a loop that believes the check"][1], tasks[RUN][1], tasks[HELD_OUT][1]]
