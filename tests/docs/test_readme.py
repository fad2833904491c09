"""What README, and the pages that it leads to, say is so, also as a newcomer pastes it."""

from __future__ import annotations

import html
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from harness_lib.agents.registry import ADAPTERS
from harness_lib.attempts import brought
from harness_lib.cli import parser
from harness_lib.core import sessions, stops
from harness_lib.errors import Exit
from harness_lib.rules import checklist, stats
from harness_lib.rules.run_state import Row, RunState, Spent
from harness_lib.runs import overview
from harness_lib.runs.run_files import Seen
from harness_lib.system.git import calls
from harness_lib.task import State, StopReason, Task
from tests.conftest import CHECKOUT, Harness
from tests.docs.pages import README, page, section
from tests.launcher.launching import REAL_ENVIRON
from tests.system.git.gitrepo import commit_all, sh
from tests.terminal.pseudo_terminal import ESCAPE, TERMINAL, read_to_end

DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/*.md"), *CHECKOUT.glob("benchmarks/*.md")])
LONGEST = 150
FIRST_SCREEN = 24


def test_the_first_page_is_one_page() -> None:
    assert len(README.splitlines()) <= LONGEST


def test_its_first_line_says_what_it_is_before_what_it_is_called() -> None:
    first = README.splitlines()[0]

    assert first.startswith("# A task list ")
    assert first.endswith(": harness")


def test_every_page_is_linked_from_the_first_one() -> None:
    linked = set(re.findall(r"\(docs/([\w-]+\.md)[)#]", section("Read on")))

    assert {path.name for path in CHECKOUT.glob("docs/*.md")} <= linked


def test_the_table_of_verbs_is_complete() -> None:
    named = re.findall(r"^\| (`.*?) \|", page("commands.md"), re.MULTILINE)
    words = {word for row in named for word in re.findall(r"`(\w+)`", row)}

    assert words == {*parser.known()}


def test_the_table_of_exit_codes_is_complete() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", page("commands.md"), re.MULTILINE)}

    assert codes == {int(code) for code in Exit}


def test_every_stop_reason_has_words() -> None:
    assert all(stops.answer(reason).words and stops.answer(reason).next for reason in get_args(StopReason))


def test_the_plan_is_imported_as_written(harness: Harness, repo: Path) -> None:
    """The Markdown of the page on plans becomes the tasks that the words below it tell of."""
    plan = page("plans.md").split("```markdown\n")[1].split("```")[0]
    (repo / "plan.md").write_text(plan)
    assert harness("init").code == 0

    answer = harness("import", "plan.md", "--json")

    assert answer.code == 0, answer.err
    tasks = json.loads((repo / "harness-tasks.json").read_text())["tasks"]
    assert [(task["title"], task["depends_on"]) for task in tasks] == [
        ("Add the rate limiter", []),
        ("In the API", ["task-001"]),
        ("In the command line", ["task-001"]),
    ]
    assert all(task["validation"]["command"] for task in tasks)
    assert len(plan.splitlines()) == len("ten lines.")


def test_every_field_of_a_plan_is_told() -> None:
    """No field of a check list is missing in the table, and every name there is one."""
    table = page("plans.md").split("| field | means |")[1].split("\n\n")[0]
    rows = [re.findall(r"`([a-z][a-z ]*)`", row) for row in table.splitlines()[2:]]
    named = {checklist.field_of(words[0]) for words in rows}
    also = {
        word
        for row in table.splitlines()
        for names in re.findall(r"\(also (.*?)\)", row)
        for word in re.findall(r"`(.*?)`", names)
    }

    assert named == set(checklist.KEYS.values())
    assert all(checklist.field_of(word) for word in also)


def test_what_a_new_work_tree_gets_is_what_the_page_says() -> None:
    """The names of ignored files that are brought in, and the agents that are looked for."""
    unattended = page("unattended.md")

    assert all(f"`{name}`" in unattended for name in brought.BROUGHT)
    assert f"the first agent it finds: {', '.join(ADAPTERS)}" in unattended


def test_the_sample_of_status_is_what_status_prints() -> None:
    """Every line of the sample, of a run with two workers of which one is done."""
    sample = page("unattended.md").split("```text\n")[1].split("```")[0]
    done, left, later = (
        Task("task-001", title="Multiply", status="completed"),
        Task("task-002", title="Subtract", status="in_progress"),
        Task("task-003", title="Document"),
    )
    state = State(tasks=(left, later, done), session_count=1)
    row = Row(
        2, "task-002", "Subtract", 1, "works", since=8.0, cost=0.02, tokens=2000, last="kept both sides"
    )
    moment = "2026-11-22T12:32:4"
    view = overview.View(
        counts=stats.count(state),
        shown=state.tasks,
        sessions="sessions: 1 of at most 50, last none",
        session_count=1,
        last_session=None,
        unproven=(),
        beside={"task-002": f"by run-7508-29d3b349#2 since {moment}6Z"},
        halts=(),
        look_at=(),
        hooks="hooks: on; Claude Code is held until the list is finished (harness pause switches them off)",
        log=(f"[{moment}6Z] [SESSION-1] Completed [task-001] (commit f49b52689fe5)",),
        people=(f"open: session 1 of run-7508-29d3b349 since {moment}5Z",),
        next=sessions.WATCH,
        is_finished=False,
        warnings=(),
        runs=(Seen(7508, RunState(0.0, {2: row}, Spent(0.03, 3400, 0.0, 1), (2.0,))),),
        ahead=stats.of(state),
        up_next=("task-003 Document",),
    )

    assert sample.splitlines() == [
        *(line.text for line in overview.lines(view, 10.0)),
        f"next: {sessions.WATCH}",
    ]


def test_what_is_needed_stands_above_the_first_command() -> None:
    needs, first = README.index("It needs Python"), README.index("bin/harness demo")
    runs, others = (".".join(map(str, least)) for least in (calls.OLDEST_FOR_RUNS, calls.OLDEST))

    assert needs < first
    assert f"git: {runs} or newer for `demo` and `run`, {others} for everything else" in README


def test_so_many_packages_are_fetched_as_it_says() -> None:
    """A bare checkout has no TOML reader on Python 3.10, so the lines are counted."""
    project = (CHECKOUT / "pyproject.toml").read_text()
    dependencies = project.split("\ndependencies = [\n")[1].split("\n]")[0].splitlines()
    words = {5: "five", 6: "six", 7: "seven"}

    assert f"fetches {words[len(dependencies)]} Python packages and what they need" in README


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), (document, target)


def test_the_first_screen_has_the_two_commands() -> None:
    """A newcomer sees how to run it and how to test it, and both are there."""
    first_screen = "\n".join(README.splitlines()[:FIRST_SCREEN])

    for command in ("bin/harness demo", "bin/test"):
        assert f"```sh\n{command}\n```" in first_screen
        assert (CHECKOUT / command.split(maxsplit=1)[0]).stat().st_mode & 0o111


def test_the_picture_shows_a_demo_that_kept_its_promises() -> None:
    """It loads no font and no picture of another host."""
    picture = (CHECKOUT / "docs/demo.svg").read_text()
    drawn = html.unescape("\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))).replace("\xa0", " ")

    for promised in (
        "task-006 failed",
        "killed with SIGKILL",
        "recovered task-001",
        "[failed] task-005",
        "log:",
    ):
        assert promised in drawn
    assert "url(" not in re.sub(r"url\(#[^)]*\)", "", picture)


# All that is on the PATH of a new machine: git, Python, and what every system has.
PROGRAMS = "git sh bash env mkdir ln cat grep dirname readlink uname rm ps"
COMPLETED = "[completed] task-001: Say hello"


def _block(text: str, number: int = 0) -> str:
    return text.split("```sh\n")[number + 1].split("```", maxsplit=1)[0]


def _typed(cwd: Path, env: dict[str, str], text: str) -> str:
    """Paste `text` into an interactive shell in `cwd`, leave it, and return what the terminal shows."""
    ours, theirs = pty.openpty()
    shell = ["bash", "--norc", "--noprofile", "-i"]
    process = subprocess.Popen(
        shell, cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        os.write(ours, f"{text}\nexit\n".encode())
        return ESCAPE.sub("", read_to_end(ours))
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _project(place: Path) -> None:
    """Make the repository that README calls your-project."""
    top = place / "your-project"
    top.mkdir()
    sh(top, "init", "-q", "-b", "main", ".")
    commit_all(top, "Begin", {"README.md": "A project\n"})


def test_the_first_list_pasted_as_a_block_is_worked_through(tmp_path: Path) -> None:
    """A question of any verb would swallow the next line."""
    _project(tmp_path)

    said = _typed(tmp_path, {**os.environ, **TERMINAL}, _block(section("A first list")))

    assert COMPLETED in said, said
    assert "session 1 has ended" in said, said


@pytest.mark.release
def test_readme_typed_on_a_new_machine(tmp_path: Path) -> None:
    """From a clone to the first completed task, with git, Python and a package registry only."""
    _project(tmp_path)
    clone, home, programs = (tmp_path / name for name in ("clone", "home", "programs"))
    shutil.copytree(
        CHECKOUT, clone, ignore=shutil.ignore_patterns(".*_cache", ".venv", "__pycache__", ".git")
    )
    home.mkdir()
    shutil.copy(Path.home() / ".gitconfig", home)
    programs.mkdir()
    for name in PROGRAMS.split():
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))
    kept = {name: REAL_ENVIRON[name] for name in REAL_ENVIRON if name.startswith(("PIP_", "SSL_", "UV_"))}
    path = {"HOME": str(home), "PATH": f"{home}/.local/bin:{programs}"}
    env = {**kept, **TERMINAL, **path, "HARNESS_WORKER_ID": "newcomer"}
    install = section("Install").split("**In a shell**: `")[1].split("`")[0]

    demo = _typed(clone, env, _block(README))
    linked = _typed(clone, env, f"{install}\nhs --version; harness --version")
    said = _typed(tmp_path, env, _block(section("A first list")))

    assert "next: " in demo, demo
    assert "bash: " not in demo + linked + said
    assert linked.count("harness 0") == 2, linked
    assert COMPLETED in said, said
