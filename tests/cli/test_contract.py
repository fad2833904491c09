"""What holds for every verb: help with an example, one JSON object whatever happens, exit codes, bounds.

The verbs are taken from the table of the parser, and what is typed from their own examples: a new verb
is held to the contract the day it is added.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import harness_lib
from harness_lib.cli import main, parser
from harness_lib.errors import Exit
from harness_lib.ops import status
from harness_lib.state import schema
from tests.conftest import FOREIGN_PREFIXES, GIT_CONFIG, Harness
from tests.ops import project as projects
from tests.ops.project import Agent, Project, Said

NAMES = [verb.name for verb in parser.VERBS]
EXAMPLES = {verb.name: shlex.split(verb.example)[1:] for verb in parser.VERBS}
# It makes a project of its own and works it off; its own test does that.
LONG = {"demo"}
TYPED = {name: words for name, words in EXAMPLES.items() if name not in LONG}

BIG = 5000
LINES = 60
# What an agent can read without losing much of its context window.
CHARACTERS = 16_000
JSON_CHARACTERS = 120_000


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Project]:
    """Make a project with the three tasks that the examples speak of."""
    made = _filled(tmp_path / "repo")
    yield made
    made.close()


@pytest.fixture(scope="module")
def spoiled(places: Path) -> Iterator[Project]:
    """Make a project whose list breaks the contract; no verb may change it."""
    made = _filled(places / "spoiled")
    made.edit_task(status="pnding")
    yield made
    made.close()


@pytest.fixture(scope="module")
def nowhere(places: Path) -> Iterator[Agent]:
    """Return somebody in a directory that is no project and no repository."""
    made = Project(places / "nowhere")
    made.top.mkdir()
    yield made.agent()
    made.close()


@pytest.fixture(scope="module")
def big(places: Path) -> Iterator[Project]:
    """Make a project with 5,000 tasks, none of them modest, and twenty sessions."""
    made = projects.make(places / "big", mode="concurrent")
    made.edit(tasks=[_big_task(number) for number in range(BIG)], sessions=[_session(n) for n in range(20)])
    with (made.top / "harness-progress.txt").open("a", encoding="utf-8") as log:
        log.writelines(f"[2025-07-01T10:00:00Z] [SESSION-1] WARN {'word ' * 60}\n" for _ in range(BIG))
    yield made
    made.close()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a directory for what tests share, with the house rules of a single test around it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(FOREIGN_PREFIXES)]:
            patch.delenv(name)
        patch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path_factory.mktemp("config") / "gitconfig"))
        Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text(GIT_CONFIG, encoding="utf-8")
        yield tmp_path_factory.mktemp("places").resolve()


def _filled(top: Path) -> Project:
    made = projects.make(top)
    for number in range(3):
        made.agents[0].ok("add", f"Task {number}", "--validate", "true")
    return made


def keeps_the_contract(said: Said) -> dict[str, Any]:
    """Return the reply, which is all of stdout and fits the schema and the exit code."""
    assert schema.reply_problems(said.json) == []
    assert said.json["exit"] == said.code
    assert said.json["ok"] == (said.code == 0)
    assert "Traceback" not in said.err
    return said.json


# --- help


@pytest.mark.parametrize("name", NAMES)
def test_every_verb_has_help_with_an_example_that_can_be_typed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert "example: harness " in text
    assert EXAMPLES[name][0] == name
    assert parser.parse(EXAMPLES[name]).verb.name == name


def test_the_program_lists_its_verbs_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    text = capsys.readouterr().out
    for verb in parser.VERBS:
        assert f"    {verb.name}" in text
    for code in Exit:
        assert f" {int(code)} " in text


def test_the_version_is_the_packages(harness: Harness) -> None:
    said = harness("--version")
    assert (said.code, said.out) == (0, f"harness {harness_lib.__version__}\n")


# --- one object, whatever happens


@pytest.mark.parametrize("name", TYPED)
def test_json_in_a_project_is_one_object_that_fits_the_schema(filled: Project, name: str) -> None:
    said = filled.agent()(*TYPED[name], "--json")
    assert keeps_the_contract(said)["verb"] == name


@pytest.mark.parametrize("name", TYPED)
def test_json_for_who_holds_the_task_fits_the_schema(filled: Project, name: str) -> None:
    agent = filled.agent()
    agent.ok("claim")
    assert keeps_the_contract(agent(*TYPED[name], "--json"))["verb"] == name


@pytest.mark.parametrize("name", TYPED)
def test_json_without_a_project_is_an_object_too(nowhere: Agent, name: str) -> None:
    said = nowhere(*TYPED[name], "--json")
    assert keeps_the_contract(said)["verb"] == name


@pytest.mark.parametrize("name", TYPED)
def test_json_about_a_list_that_breaks_the_contract_is_an_object_too(spoiled: Project, name: str) -> None:
    before = spoiled.file.read_bytes()
    said = keeps_the_contract(spoiled.agents[0](*TYPED[name], "--json"))
    assert said["exit"] != Exit.BUG
    assert spoiled.file.read_bytes() == before


@pytest.mark.parametrize(
    "argv",
    [[], ["nonsense"], ["add"], ["log", "-n", "x"], ["claim", "--nonsense"], ["checkpoint", "task-001"]],
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_wrong_arguments_are_a_usage_error_as_json(spoiled: Project, argv: list[str], place: str) -> None:
    typed = ["--json", *argv] if place == "before" else [*argv, "--json"]
    said = keeps_the_contract(spoiled.agents[0](*typed))
    assert (said["exit"], said["error"]["kind"]) == (2, "USAGE")
    assert "--help" in said["error"]["hint"]


# --- exit codes


def _done(project: Project) -> Said:
    return project.agent()("status", "--json")


def _check_failed(project: Project) -> Said:
    project.edit(tasks=[{"id": "a", "status": "pending", "depends_on": ["a"]}])
    return project.agent()("check", "--json")


def _usage(project: Project) -> Said:
    return project.agent()("why", "nobody", "--json")


def _config(project: Project) -> Said:
    project.edit_task(priority="P9")
    return project.agent()("status", "--json")


def _unreadable(project: Project) -> Said:
    for path in [
        *(project.top / ".harness" / "generations").iterdir(),
        project.top / "harness-tasks.json.bak",
    ]:
        path.unlink()
    project.file.write_text("{", encoding="utf-8")
    return project.agent()("status", "--json")


def _held(project: Project) -> Said:
    project.agent("first").ok("start")
    return project.agent("second")("claim", "--json")


def _lease_lost(project: Project) -> Said:
    project.agent("person").ok("edit", "--mode", "concurrent")
    first = project.agent("first")
    first.ok("claim")
    project.agent("person").ok("stop", "--session", "1")
    project.agent("second").ok("recover")
    return first("finish", "task-001", "--json")


def _env_setup(project: Project) -> Said:
    return project.agent(HARNESS_STATE_ROOT=str(project.top / "nowhere"))("status", "--json")


def _refused(project: Project) -> Said:
    project.put("tracked.txt", "a person's work\n")
    return project.agent()("claim", "--json")


def _stop(project: Project) -> Said:
    project.edit(tasks=[])
    return project.agent()("start", "--json")


STORIES: dict[Exit, Callable[[Project], Said]] = {
    Exit.DONE: _done,
    Exit.CHECK_FAILED: _check_failed,
    Exit.USAGE: _usage,
    Exit.CONFIG: _config,
    Exit.STATE_UNREADABLE: _unreadable,
    Exit.HELD: _held,
    Exit.LEASE_LOST: _lease_lost,
    Exit.ENV_SETUP: _env_setup,
    Exit.REFUSED: _refused,
    Exit.STOP: _stop,
}


@pytest.mark.parametrize("code", STORIES, ids=lambda code: code.name)
def test_each_exit_code_is_reached_and_says_what_to_do(filled: Project, code: Exit) -> None:
    said = STORIES[code](filled)
    found = keeps_the_contract(said)
    assert said.code == code, said.text
    if found["error"]:
        assert found["error"]["kind"] == code.name
        assert found["error"]["hint"]


def test_the_schema_knows_exactly_these_exit_codes() -> None:
    assert schema.load(schema.REPLY)["properties"]["exit"]["enum"] == [int(code) for code in Exit]
    assert set(STORIES) == set(Exit) - {Exit.BUG}


# --- our own bugs


def test_a_bug_is_reported_in_a_file_and_not_as_a_traceback(
    filled: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_options: object) -> NoReturn:
        raise ZeroDivisionError("a number of ours")

    monkeypatch.setattr(status, "run", broken)
    said = filled.agent()("status", "--json")
    found = keeps_the_contract(said)
    assert (said.code, found["error"]["kind"]) == (Exit.BUG, "BUG")
    assert "a number of ours" in found["message"]
    (report,) = (filled.top / ".harness").glob("bug-*.txt")
    assert str(report) in found["error"]["hint"]
    assert "ZeroDivisionError" in report.read_text(encoding="utf-8")
    assert "Traceback" not in filled.agent()("status").text


# --- pipes


def test_a_reader_that_has_seen_enough_is_no_failure(filled: Project) -> None:
    """`harness status | head -1`: nobody complains about the closed pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "harness_lib", "status"]
    try:
        done = subprocess.run(command, cwd=filled.top, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


# --- bounds


def _big_task(number: int) -> dict[str, Any]:
    """One in ten is in progress, failed for good, halted, or without a check; all have much to tell."""
    kind = number % 10
    return {
        "id": f"task-{number:04}",
        "title": f"Title {number} " + "long " * 100,
        "description": "described " * 300,
        "status": {0: "completed", 1: "in_progress", 2: "failed"}.get(kind, "pending"),
        "attempts": 3 if kind == 2 else 0,
        "claimed_by": f"worker-{number}" if kind == 1 else None,
        "lease_expires_at": "2025-07-01T10:00:00Z" if kind == 1 else None,
        "halt": "CONFIG: " + "a word " * 30 if kind == 3 else None,
        "validation": {"command": None if kind == 4 else "no-such-program " + "x" * 1000},
        "error_log": ["[TEST_FAIL] " + "failed " * 60] * 3 if kind == 2 else [],
        "depends_on": [f"task-{n:04}" for n in range(max(0, number - 3), number)],
    }


def _session(number: int) -> dict[str, Any]:
    return {
        "number": number + 1,
        "worker": f"worker-{number}",
        "host": "elsewhere",
        "halt": f"CONFIG: {number}",
    }


LOOKING = [
    ["status"],
    ["log"],
    ["graph"],
    ["graph", "--format", "mermaid"],
    ["why", "task-4999"],
    ["check"],
    ["doctor"],
    ["show", "task-4992"],
    ["claim", "--dry-run"],
    ["rescue", "list"],
]


@pytest.mark.parametrize("argv", LOOKING, ids=" ".join)
def test_what_is_piped_is_short_however_long_the_list_is(big: Project, argv: list[str]) -> None:
    text = big.agents[0](*argv)
    assert len(text.out.splitlines()) <= LINES
    assert len(text.out) <= CHARACTERS
    found = big.agents[0](*argv, "--json")
    assert len(found.out) <= JSON_CHARACTERS
    assert schema.reply_problems(json.loads(found.out)) == []
