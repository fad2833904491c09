"""Work that changes what judges it must also pass as it was judged before.

In a chat that is a warning; where the task says `--protect auto`, and in every run (tests/runs), it is held.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness_lib.attempts import inspection
from tests.conftest import for_release, needs
from tests.verbs.project import Agent, Project, begin

# It starts in a fifth of the time that pytest needs.
UNITTEST = f"{shlex.quote(sys.executable)} -m unittest"
CASE = "import unittest\n\n\nclass Case(unittest.TestCase):\n    def test_it(self):\n        "
PASSES = f"{CASE}pass\n"
BASE = {
    ".gitignore": "__pycache__\n",
    "product.sh": "echo wrong\n",
    "check.sh": "sh lib.sh && sh tests/more.sh\n",
    "lib.sh": "sh product.sh | grep -q right\n",
    "tests/more.sh": 'test "$(sh product.sh)" = "$(cat tests/expected)"\n',
    "tests/expected": "right\n",
    "Makefile": "include checks.mk\n",
    "checks.mk": "test:\n\tsh check.sh\n",
    "tests/test_a.py": PASSES,
    "a.py": "def one():\n    return 0\n",
}
RIGHT = {"product.sh": "echo right\n"}

CHEATS: dict[str, tuple[str, Mapping[str, str | None], str]] = {
    "the script": ("sh check.sh", {"check.sh": "true\n"}, "check.sh"),
    "a script that it calls": ("sh check.sh", {"lib.sh": "true\n", "tests/more.sh": "true\n"}, "lib.sh"),
    "an include of the Makefile": ("make test", {"checks.mk": "test:\n\ttrue\n"}, "checks.mk"),
    "what stands beside the tests": (
        "sh tests/more.sh",
        {"tests/more.sh": "true\n", "tests/expected": "wrong\n"},
        "tests/more.sh",
    ),
    "a link in the place of a script": ("sh check.sh", {"check.sh": None, "true.sh": "true\n"}, "check.sh"),
}
OFTEN = ("the script", "what stands beside the tests")
# What judges no attempt at all: tests/rules/test_input_changes.py.
HONEST: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "a new test that the check names": ("sh tests/new.sh", "", {**RIGHT, "tests/new.sh": "sh lib.sh\n"}),
    "a case that is appended to a test": (
        "sh check.sh",
        "",
        {**RIGHT, "tests/more.sh": f"{BASE['tests/more.sh']}sh lib.sh\n"},
    ),
    "new settings that say nothing about tests": (
        f"{UNITTEST} tests/test_a.py && test -f pyproject.toml",
        "",
        {"pyproject.toml": '[project]\nname = "a"\n'},
    ),
    "tests for existing code": (
        f"{UNITTEST} tests/test_more.py",
        "Test what is there.",
        {"tests/test_more.py": PASSES, "README.md": "more\n"},
    ),
    "new tests that fail without the work": (
        f"{UNITTEST} tests/test_b.py",
        "",
        {
            "b.py": "def two():\n    return 2\n",
            "tests/test_b.py": f"{CASE}import b; self.assertEqual(b.two(), 2)\n",
        },
    ),
    "a target that is added to a Makefile": (
        "make test",
        "",
        {**RIGHT, "Makefile": f"{BASE['Makefile']}build:\n\ttrue\n"},
    ),
    "a test that the task names for change": (
        "sh tests/more.sh",
        "Rewrite tests/more.sh: wrong is right now",
        {"tests/more.sh": 'test "$(sh product.sh)" = wrong\n'},
    ),
}


def _begin(project: Project, agent: Agent, check: str, *more: str) -> None:
    project.commit(files=BASE)
    begin(agent, check, *more)


def _put(project: Project, files: Mapping[str, str | None]) -> None:
    for name, text in files.items():
        if text is None:
            (project.top / name).unlink()
            (project.top / name).symlink_to("true.sh")
        else:
            project.put(name, text)


@pytest.mark.parametrize("name", [*OFTEN, *for_release(*(name for name in CHEATS if name not in OFTEN))])
def test_only_changing_what_judges_is_sent_back_then_held(project: Project, agent: Agent, name: str) -> None:
    check, files, named = CHEATS[name]
    _begin(project, agent, check, "--protect", "auto")
    _put(project, files)

    first = agent.fails(1, "finish")["message"]
    error = agent.fails(8, "finish")["error"]

    assert named in first
    assert "No attempt was counted." in first
    assert f"--path {named}" in error["message"]
    assert "put them back as they were" in error["hint"]
    task = project.task()
    assert (task["status"], task["attempts"], task["halt_kind"]) == ("in_progress", 0, "JUDGES")
    assert all((project.top / path).exists() for path in files)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[needs("make")] if "Makefile" in name else []) for name in HONEST]
)
def test_honest_work_is_completed(project: Project, agent: Agent, name: str) -> None:
    check, title, files = HONEST[name]
    _begin(project, agent, check, "--protect", "auto", *(("--description", title) if title else ()))
    _put(project, files)

    reply = agent.ok("finish")

    assert reply["task"]["status"] == "completed"
    assert not reply["task"].get("look_at"), reply["task"]["look_at"]


def test_who_puts_the_judge_back_is_completed(project: Project, agent: Agent) -> None:
    _begin(project, agent, "sh check.sh", "--protect", "auto")
    agent.finishes({"check.sh": "true\n"}, code=1)
    project.put("check.sh", BASE["check.sh"])
    _put(project, RIGHT)

    assert agent.ok("finish")["task"]["status"] == "completed"


@pytest.mark.parametrize(
    "words", ["Say right, and adapt the tests", *for_release("", "Say right; update the snapshots")]
)
def test_what_weakens_a_test_and_passes_anyway_is_named(project: Project, agent: Agent, words: str) -> None:
    """Also where the task asks for it."""
    _begin(project, agent, "sh check.sh", "--protect", "auto", "--description", words)
    _put(project, {**RIGHT, "tests/more.sh": "sh lib.sh\n"})

    (sentence,) = agent.ok("finish")["task"]["look_at"]

    assert "changed a file that its check depends on: tests/more.sh (1 line)" in sentence


def test_in_a_chat_it_is_a_warning_and_none_lifts_it(project: Project, agent: Agent) -> None:
    """So are tests that pass without the work."""
    _begin(project, agent, "sh check.sh")
    reply = agent.finishes({"check.sh": "true\n"})

    assert any("passes only with its own changes to files" in warning for warning in reply["warnings"])
    begin(agent, "sh lib.sh", "--protect", "none")
    project.put("lib.sh", "true\n")
    assert not agent.ok("finish")["task"].get("look_at")
    begin(agent, f"{UNITTEST} tests/test_more.py")
    _put(project, {"a.py": "def one():\n    return 1\n", "tests/test_more.py": PASSES})
    (sentence,) = agent.ok("finish")["task"]["look_at"]
    assert "adds tests that pass without its work" in sentence


@pytest.mark.parametrize("is_done", [*for_release(True), False])
def test_the_judges_of_another_task_count_too(project: Project, agent: Agent, is_done: bool) -> None:
    _begin(project, agent, "sh lib.sh")
    if is_done:
        _put(project, RIGHT)
    agent.ok("finish" if is_done else "release")
    agent.ok("add", "Second", "--validate", "grep -q x f", "--protect", "auto", "--priority", "P0")
    agent.ok("start")
    agent.ok("claim", "task-002")
    _put(project, {"f": "x\n", "lib.sh": "true\n", "product.sh": "echo wrong\n"})

    message = agent.fails(1, "finish")["message"]

    assert "'lib.sh'" in message
    assert "task-001" in message


def test_the_user_takes_what_waits_or_sends_it_back(project: Project, agent: Agent) -> None:
    person = project.agent("person")
    _begin(project, agent, "sh check.sh", "--protect", "auto")
    agent.finishes({"check.sh": "true\n"}, code=1)
    agent.fails(8, "finish")

    person.ok("return", "task-001", "leave it as it was")
    task = project.task()
    assert (task["status"], task["attempts"], task.get("halt")) == ("pending", 0, None)
    assert "leave it as it was" in agent.ok("claim")["brief"]
    agent.fails(8, "finish")
    assert person.fails(2, "accept", "task-001")["error"]["hint"].endswith("--path check.sh")
    done = person.ok("accept", "task-001", "--path", "check.sh")

    assert done["task"]["status"] == "completed"
    assert project.git("show", "HEAD:check.sh") == "true"


def test_what_cannot_be_repeated_elsewhere_proves_nothing(project: Project, agent: Agent) -> None:
    """The check needs a file that git ignores: a clean checkout says nothing of the judges."""
    project.put("needs.sh", "sh lib.sh && test -e ignored/x\n")
    _begin(project, agent, "sh needs.sh", "--protect", "auto")
    project.put("ignored/x")
    project.put(".git/info/exclude", "ignored\n")
    _put(project, {**RIGHT, "needs.sh": "test -e ignored/x && sh lib.sh\n"})

    reply = agent.ok("finish")

    assert reply["task"]["status"] == "completed"
    assert any("could not be repeated on a clean checkout" in text for text in reply["task"]["look_at"])


def test_where_there_is_no_clean_checkout_the_check_in_place_counts(project: Project, agent: Agent) -> None:
    project.put("harness-init.sh", "test -e ignored/x\n")
    project.put("ignored/x")
    project.put(".git/info/exclude", "ignored\n")
    project.commit(files=BASE)
    agent.trusts()
    begin(agent, "sh check.sh", "--protect", "auto")
    _put(project, {**RIGHT, "check.sh": "sh lib.sh\n"})

    reply = agent.ok("finish")

    assert any("could not be repeated on a clean checkout" in text for text in reply["task"]["look_at"])


def test_new_tests_that_pass_without_the_work_send_it_back_once(project: Project, agent: Agent) -> None:
    _begin(project, agent, f"{UNITTEST} tests/test_more.py", "--protect", "auto")
    _put(project, {"a.py": "def one():\n    return 1\n", "tests/test_more.py": PASSES})

    message = agent.fails(1, "finish")["message"]
    task = project.task()

    assert "your tests pass without your change: with 'tests/test_more.py' alone" in message
    assert (task["status"], task["attempts"], task["sent_back"]) == ("in_progress", 0, ["vacuous"])
    (sentence,) = agent.ok("finish")["task"]["look_at"]
    assert "adds tests that pass without its work: tests/test_more.py" in sentence


def test_what_the_user_had_lying_there_is_no_test_of_the_attempt(project: Project, agent: Agent) -> None:
    project.put("tests/test_more.py", PASSES)
    for name, text in BASE.items():
        project.put(name, text)
    project.git("add", *BASE)
    project.git("commit", "-q", "-m", "Base")
    begin(agent, f"{UNITTEST} tests/test_more.py", "--protect", "auto")
    project.put("a.py", "def one():\n    return 1\n")

    assert "look_at" not in agent.ok("finish")["task"]


@pytest.mark.release
def test_of_many_checks_some_are_repeated(project: Project, agent: Agent, tmp_path: Path) -> None:
    """A change of what thousands of checks go by must not run them all; who is named by it comes first."""
    runs = tmp_path / "runs"
    project.commit(files={"tests/named.sh": "true\n"})
    for number in range(inspection.MOST + 2):
        begin(agent, f"echo {number} >> {runs}; sh tests/{'named' if number == 1 else number}.sh")
        agent.finishes({f"tests/{number}.sh": "true\n"})
    runs.unlink()
    begin(agent, "test -f f", "--protect", "auto")
    _put(project, {"f": "", "tests/named.sh": "true # more\n"})

    task = agent.ok("finish")["task"]

    assert runs.read_text().split() == ["1", "6", "5", "4", "3"]
    assert any("what 2 more checks of completed tasks go by" in each for each in task["look_at"])
