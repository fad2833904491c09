"""A held-out check must pass too, on a clean checkout; who is judged by it learns no more than whether."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, own_work_tree

SECRET = "the-answer-is-42"
TEST = f"""
import unittest

from product import answer


class HeldOut(unittest.TestCase):
    def test_{SECRET.replace("-", "_")}(self):
        self.assertEqual(answer(), 42, "{SECRET}")
"""
# It starts in a fifth of the time that pytest needs.
UNITTEST = f"{shlex.quote(sys.executable)} -m unittest"
PYTEST = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider"
SEEN = "import unittest\n\n\nclass Seen(unittest.TestCase):\n    def test_seen(self):\n        pass\n"


@pytest.fixture
def person(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "data"))
    put(tmp_path / "held/test_held.py", TEST)
    os.truncate(put(tmp_path / "held/large", ""), 10_000_001)
    return project.agent("person")


def _held(project: Project, place: str = "test_more.py") -> str:
    return f"{project.top.parent}/held/test_held.py:{place}"


def _add(person: Agent, *words: str, check: str = "test -f product.py") -> None:
    options = [option for word in words for option in ("--hidden", word)]
    person.ok("add", "One", "--validate", check, *options)


def _attempt(project: Project, agent: Agent, answer: int) -> None:
    agent.ok("claim")
    project.put("product.py", f"def answer():\n    return {answer}\n")


def test_work_that_fails_it_learns_nothing_of_it(project: Project, agent: Agent, person: Agent) -> None:
    _add(person, _held(project), f"{UNITTEST} test_more.py")
    _attempt(project, agent, 41)

    said = agent.fails(1, "finish")

    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", 1)
    assert "A held-out check failed." in said["message"]
    assert not _leaks(project, json.dumps(said))


def _leaks(project: Project, said: str) -> list[str]:
    """Return where something of the held-out check stands beside the user's data directory."""
    words = (SECRET, "test_more", "test_held")
    texts = {"reply": said} | {
        str(path.relative_to(project.top)): path.read_bytes().decode("utf-8", "replace")
        for path in project.top.rglob("*")
        if path.is_file()
    }
    return [f"{word} in {name}" for name, text in texts.items() for word in words if word in text]


def test_the_list_has_a_digest_and_others_cannot_read_what_is_kept(person: Agent, project: Project) -> None:
    for _ in range(2):
        _add(person, _held(project), f"{UNITTEST} test_more.py")

    held_out, again = (task["validation"]["hidden"] for task in project.state["tasks"])
    assert held_out != again, "nobody finds out what it is of by trying"

    assert re.fullmatch(r"[0-9a-f]{64}", held_out["sha256"])
    assert list(held_out) == ["sha256"]
    assert not _leaks(project, "")
    kept = list((project.top / "../data/hidden").rglob("*"))
    assert [path for path in kept if path.stat().st_mode & 0o077] == []
    assert (project.top / "../data/hidden").stat().st_mode & 0o777 == 0o700


def test_names_of_tests_are_told_only_where_asked_for(project: Project, agent: Agent, person: Agent) -> None:
    _add(person, _held(project), f"{PYTEST} test_more.py")
    person.ok("edit", "task-001", "--hidden-names")
    _attempt(project, agent, 41)

    message = agent.fails(1, "finish")["message"]

    assert "A held-out check failed: test_more.py::HeldOut::test_the_answer_is_42." in message
    assert "assert" not in message


def test_a_file_alone_is_for_the_check_of_the_task(project: Project, agent: Agent, person: Agent) -> None:
    """It stands in the place of what the agent sees there, and only while it is run."""
    project.commit(files={"tests/test_seen.py": SEEN})
    _add(person, _held(project, "tests/test_seen.py"), check=f"{UNITTEST} tests/test_seen.py")
    _attempt(project, agent, 41)

    assert "A held-out check failed." in agent.fails(1, "finish")["message"]
    assert project.read("tests/test_seen.py") == SEEN


def test_an_executable_is_run_and_is_in_no_checkout(project: Project, agent: Agent, person: Agent) -> None:
    script = project.put("../held/check.sh", "#!/bin/sh\nls; grep -q 42 product.py\n", executable=True)
    _add(person, str(script))
    script.unlink()
    _attempt(project, agent, 41)
    agent.fails(1, "finish")
    _attempt(project, agent, 42)

    agent.ok("finish")

    said = [log.read_text() for log in (project.top / "../data/hidden").rglob("*.log")]
    assert ["check.sh" in each for each in said] == [False] * len(said)


def test_a_program_that_is_put_in_place_is_one_there(project: Project, agent: Agent, person: Agent) -> None:
    script = project.put("../held/check.sh", "#!/bin/sh\ngrep -q 42 product.py\n", executable=True)
    _add(person, f"{script}:tests/check.sh", "tests/check.sh")
    _attempt(project, agent, 42)

    agent.ok("finish")


@pytest.mark.parametrize(
    ("words", "check", "why"),
    [
        (("held/gone.py:tests/test_x.py",), "true", "held/gone.py is not there"),
        (("/no/such/script.sh",), "true", "/no/such/script.sh is not there"),
        (("held:tests",), "true", "held is not a file"),
        (("held/test_held.py",), "true", "not executable"),
        (("held/test_held.py:../x.py",), "true", "'../x.py' is not a place in the work tree"),
        (("held/test_held.py:x", "held/test_held.py:./x"), "sh x", "Two files would be put at 'x'"),
        (("held/test_held.py:x/y", "held/test_held.py:x"), "sh x", "Two files would be put at 'x'"),
        (("held/test_held.py:.git/x",), "true", "not a place"),
        (("held/large:x",), "sh x", "held/large is larger than 10,000,000 bytes"),
        (("true", "false"), "true", "one command"),
        (("held/test_held.py:tests/x.py",), "pytest -q tests/test_a.py", "does not name tests/x.py"),
        (("held/test_held.py:tests/x.py",), "", "no check that could run with this file"),
    ],
)
def test_what_cannot_be_held_out_is_refused(
    project: Project, person: Agent, tmp_path: Path, words: tuple[str, ...], check: str, why: str
) -> None:
    elsewhere = [word.replace("held", f"{tmp_path}/held", 1) for word in words]
    options = [option for word in elsewhere for option in ("--hidden", word)]

    error = person.fails(2, "add", "One", "--validate", check, *options)["error"]

    assert why in error["message"].replace(f"{tmp_path}/", "")
    assert error["hint"]
    assert not project.state["tasks"]


def test_the_data_directory_may_not_be_in_the_project(project: Project) -> None:
    """Nor in the repository around a list, nor in the git directory of all work trees."""
    below, tree = project.agent("below", project.put("below/x").parent), own_work_tree(project, "tree")
    for who, place in ((below, below.cwd), (below, project.top), (tree, project.top / ".git")):
        who.ok("init", ".")
        error = who.fails(2, "add", "One", "--hidden", "true", HARNESS_HOME=str(place / "data"))["error"]
        assert "where agents work" in error["message"]


@pytest.mark.parametrize("how", ["gone", "changed"])
def test_another_machine_completes_nothing(project: Project, agent: Agent, person: Agent, how: str) -> None:
    _add(person, "true")
    _attempt(project, agent, 42)
    (kept,) = (project.top / "../data/hidden").rglob("check.json")
    if how == "gone":
        kept.unlink()
    else:
        kept.write_text(kept.read_text().replace("true", "test"))

    error = agent.fails(3, "finish")["error"]

    assert ("is not on this machine" if how == "gone" else "was changed") in error["message"]
    task = project.task()
    assert (task["status"], task["attempts"]) == ("in_progress", 0)
    assert project.read("product.py")
    agent.ok("release")
    assert "validation.hidden" in agent.fails(3, "claim")["error"]["message"]


def test_one_that_cannot_run_is_no_failed_attempt(project: Project, agent: Agent, person: Agent) -> None:
    _add(person, "no-such-program --now")
    _attempt(project, agent, 42)

    error = agent.fails(7, "finish")["error"]

    assert "no-such-program" not in json.dumps(error)
    assert (project.task()["status"], project.task()["attempts"]) == ("in_progress", 0)


def test_an_agent_may_neither_set_nor_lift_nor_see_it(project: Project, person: Agent) -> None:
    _add(person, "echo the-answer-is-42")
    inside = project.agent("other", CLAUDECODE="1")
    plan = project.put("../plan.md", "- [ ] Two\n  - check: true\n  - hidden: true\n")
    before = project.state

    for verb in (
        ("add", "Two", "--hidden", "true"),
        ("edit", "task-001", "--hidden", ""),
        ("edit", "task-001", "--hidden", "true"),
        ("edit", "task-001", "--hidden-names"),
        ("import", str(plan)),
    ):
        assert "A held-out check must be decided by the user" in inside.fails(8, *verb)["error"]["message"]

    assert project.state == before
    # Nor does whoever reads it elsewhere than on a terminal, who may be an agent that shows no sign.
    assert not any(SECRET in who("show", "task-001").text for who in (inside, person))


def test_an_attempt_that_lifts_it_has_changed_its_gate(project: Project, agent: Agent, person: Agent) -> None:
    _add(person, "false")
    _attempt(project, agent, 42)
    validation = project.task()["validation"]
    project.edit_task(validation={key: value for key, value in validation.items() if key != "hidden"})

    said = agent.fails(1, "finish")

    assert "The attempt changed its own gate" in said["message"]
    assert project.task()["halt_kind"] == "CHECK_CHANGED"


def test_a_plan_holds_out_what_its_lines_say(project: Project, person: Agent) -> None:
    lines = [
        "- [ ] One",
        "  - check: true",
        f"  - hidden: {_held(project)}",
        "  - hidden: pytest test_more.py",
        "- [x] Was done\n  - hidden: /no/such/file.py:x.py",
    ]
    document = [{"title": "Two", "check": "true", "hidden": "true"}, {"title": "Three", "check": "true"}]
    plan = project.put("../plan.md", "\n".join(lines) + "\n")
    person.ok("import", str(plan), "--dry-run")
    assert not (project.top / "../data/hidden").exists()

    person.ok("import", str(plan))
    person.ok("import", str(project.put("../plan.json", json.dumps(document))))

    first, second, third = (task["validation"].get("hidden") for task in project.state["tasks"])
    assert first != second
    assert third is None
    assert len(list((project.top / "../data/hidden").iterdir())) == 2
    bad = project.put("../bad.md", "- [ ] Four\n  - check: true\n  - hidden: /no/such/file.py:x.py\n")
    assert "line 3: /no/such/file.py is not there" in person.fails(2, "import", str(bad))["error"]["message"]


def test_who_says_it_is_done_is_believed_if_it_passes(project: Project, agent: Agent, person: Agent) -> None:
    _add(person, "false", check="true")
    agent.ok("start")
    project.edit_task(status="completed")

    agent.ok("claim")

    assert project.task()["status"] == "in_progress"


def test_work_that_passes_both_is_done_until_it_breaks(project: Project, agent: Agent, person: Agent) -> None:
    _add(person, _held(project), f"{UNITTEST} test_more.py")
    _attempt(project, agent, 42)
    agent.ok("finish")
    assert {"product.py", "test_more.py"}.intersection(project.in_commit()) == {"product.py"}
    project.commit(files={"product.py": "def answer():\n    return 41\n"})

    said = agent.fails(1, "validate", "--all", "--committed")

    recheck = project.task()["recheck"]
    assert (recheck["passed"], recheck["tail"]) == (False, "A held-out check failed.")
    assert not _leaks(project, json.dumps(said))


@pytest.mark.release
def test_the_final_check_elsewhere_proves_nothing(project: Project, agent: Agent, person: Agent) -> None:
    _add(person, "true")
    _attempt(project, agent, 42)
    agent.ok("finish")
    (kept,) = (project.top / "../data/hidden").rglob("check.json")
    kept.unlink()

    agent("validate", "--all", "--committed")

    assert project.task()["recheck"]["excuse"] == "held_out"
    assert "held-out check not run: task-001" in agent.ok("status")["message"]


def test_its_files_do_not_leave_the_checkout(project: Project, agent: Agent, person: Agent) -> None:
    _add(person, _held(project, "more/test_more.py"), "true")
    agent.ok("claim")
    project.put("product.py")
    outside = project.top.parent / "outside"
    outside.mkdir()
    (project.top / "more").symlink_to(outside)

    assert "A held-out check failed." in agent.fails(1, "finish")["message"]
    assert not list(outside.iterdir())


@pytest.mark.parametrize("what", ["seen", "held out"])
def test_a_product_that_ends_its_tests_fails(
    project: Project, agent: Agent, person: Agent, what: str
) -> None:
    test = "import product\n\n\ndef test_one():\n    assert product.one == 2\n"
    project.put("../held/test_seen.py", test)
    if what == "seen":
        project.commit(files={"test_seen.py": test})
        _add(person, check=f"{PYTEST} test_seen.py")
    else:
        _add(person, f"{project.top.parent}/held/test_seen.py:test_seen.py", f"{PYTEST} test_seen.py")
    said = agent.works({"product.py": "import os\n\nos._exit(0)\n"}, code=1)

    expected = "pytest ended with exit code 0" if what == "seen" else "A held-out check failed."
    assert expected in said["message"]
