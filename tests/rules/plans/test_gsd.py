"""The plans of GSD: elements in Markdown, and what their author meant by them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness_lib.rules.plans import commands
from tests.rules.plans.reading import GSD, read


def test_gsd_has_a_task_for_each_element_and_asks_a_person_at_a_checkpoint() -> None:
    plan = read(GSD, "gsd")

    assert (plan.name, plan.after, plan.wave) == ("03-02", ("03-01",), 2)
    assert [(task.key, task.title, task.check) for task in plan.tasks] == [
        ("1", "Build the layout", "npm test -- page && npm run build"),
        ("2", "Start it", "npm run build"),
        ("3", "The page at http://localhost:3000", None),
    ]
    assert "<action>Make a grid & use a < b." in plan.tasks[0].description
    assert [task.human is not None for task in plan.tasks] == [False, False, True]
    assert "how to verify: Open it. Look at the grid." in (plan.tasks[2].human or "")
    lines = GSD.splitlines()
    assert [lines[task.lines[0] - 1].lstrip()[:5] for task in plan.tasks] == ["<task"] * 3
    assert lines[plan.tasks[2].lines[1] - 1] == "</task>"
    assert "All of it works" in plan.header
    assert "SUMMARY" not in plan.header
    assert "execute-plan" not in plan.header


def test_tasks_between_comments_keep_their_lines() -> None:
    task = '<task type="auto"><name>{}</name></task>\n'
    plan = read(f"<!-- one -->\n{task.format('A')}<!-- two\n-->\n{task.format('B')}", "gsd")
    assert [(each.title, each.lines) for each in plan.tasks] == [("A", (2, 2)), ("B", (5, 5))]


def test_several_commands_of_gsd_must_all_pass_and_may_be_of_unknown_programs() -> None:
    said = ("test -f a", "simctl --list", "MISSING: later")
    verify = "".join(f"<automated>{text}</automated>" for text in said)
    plan = read(f'<task type="auto"><name>A</name><verify>{verify}</verify></task>', "gsd")
    assert plan.tasks[0].check == "set -e\n(\ntest -f a\n)\n(\nsimctl --list\n)"


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (["test -d b && test -d a", "test -d a"], 1),
        (["cd a && test ! -d a", "test -d a"], 0),
        (["test -d a", "test -d b"], 1),
        (["```sh\nfalse && true\ntrue\n```"], 1),
        (["```sh\ncd a && true\ntest ! -d a\n```"], 0),
    ],
)
def test_commands_that_are_joined_pass_only_if_each_does(texts: list[str], code: int, tmp_path: Path) -> None:
    """A shell with `set -e` goes on where what fails stands before `&&`."""
    (tmp_path / "a").mkdir()
    command = commands.automated(texts)
    assert command is not None
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == code


def test_gsd_as_it_is_found() -> None:
    """A fence in a fence that is closed by three marks, a decision without a name, a colon of full width."""
    text = (
        '<task type="auto">\n<name>Task 1\uff1aWrite</name>\n<action>\n```markdown\n```sh\nmake\n```\n```\n'
        '</action>\n</task>\n<task type="checkpoint:decision">\n<decision>Which one?</decision>\n'
        "<options><option><name>This</name></option></options>\n<resume-signal>Say which</resume-signal>\n"
        '</task>\n<task type="auto">\n<name>Task 2: Use it</name>\n</task>\n'
    )
    plan = read(f"---\nphase: 00-base\nplan_number: 09\n---\n{text}", "gsd")
    assert [(task.key, task.title) for task in plan.tasks] == [
        ("1", "Write"),
        ("#2", "Which one?"),
        ("2", "Use it"),
    ]
    assert plan.name == "00-09"
    assert "resume signal: Say which" in (plan.tasks[1].human or "")


@pytest.mark.parametrize(
    ("front", "after", "wave"),
    [
        ("depends_on: []\nwave: 1", (), 1),
        ("depends_on:\n  - 01\n  - '02'\nwave: 3", ("01", "02"), 3),
        ("depends_on: [03A]", ("03A",), None),
        ("title: x", None, None),
    ],
)
def test_the_front_matter_of_gsd(front: str, after: tuple[str, ...] | None, wave: int | None) -> None:
    plan = read(f'---\n{front}\n---\n<task type="auto"><name>A</name></task>\n', "gsd")
    assert (plan.after, plan.wave) == (after, wave)
