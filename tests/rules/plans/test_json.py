"""Task Master and issues of GitHub: plans that are JSON."""

from __future__ import annotations

import json

import pytest

from tests.rules.plans.reading import read


def test_task_master_has_tags_subtasks_as_steps_and_dependencies() -> None:
    steps = [{"id": 1, "title": "Draw it", "details": "By hand.", "status": "done"}]
    master = [
        {"id": 1, "title": "Model", "status": "done", "dependencies": [], "details": "D"},
        {"id": 2, "title": "Page", "dependencies": [1], "testStrategy": "npm test", "subtasks": steps},
        {"id": "3", "title": "Link", "dependencies": ["2.1"], "priority": "high", "testStrategy": "By eye."},
    ]
    text = {"master": {"tasks": master}, "later": {"tasks": [{"id": 1, "title": "X", "dependencies": []}]}}
    plan = read(json.dumps(text), "task-master")

    one, two, three, other = plan.tasks
    assert [task.key for task in plan.tasks] == ["1", "2", "3", "later/1"]
    assert (one.done, one.description) == (True, "D")
    assert (two.after, two.check) == (("1",), "npm test")
    assert "2.1 Draw it (done)\nBy hand." in two.description
    assert (three.after, three.check, three.priority) == (("2",), None, "P0")
    assert other.after == ()
    assert read(json.dumps({"tasks": master}), "task-master").tasks[1] == two


def test_github_issues_wait_only_for_those_that_they_name() -> None:
    issues = [
        {
            "number": 7,
            "title": "B",
            "body": "Blocked by #3 and #9.",
            "labels": [{"name": "bug"}],
            "state": "OPEN",
        },
        {"number": 3, "title": "A", "body": "Run: `make`\nExpected: PASS", "labels": [], "state": "OPEN"},
        {"number": 4, "title": "C", "body": "", "labels": [], "state": "CLOSED"},
    ]
    plan = read(json.dumps(issues), "github")

    assert [(task.key, task.title, task.after, task.check, task.done) for task in plan.tasks] == [
        ("3", "A", (), "make", False),
        ("4", "C", (), None, True),
        ("7", "B", ("3",), None, False),
    ]
    assert plan.tasks[2].description.endswith("Labels: bug")


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("**Depends on:** #3-#4", ("3", "4")),
        ("Depends on #3 / #4", ("3", "4")),
        ("blocked-by: #4", ("4",)),
        ("## Blocked by\n- #3 the model\n- [ ] #4\n\nMore", ("3", "4")),
        ("Depends on [#3](https://example.org/3)", ("3",)),
        ("It no longer depends on #3", ()),
        ("Found after #3", ()),
        ("~~Depends on #3~~ and `depends on #4`", ()),
        ("- #8: requires #3", ()),
    ],
)
def test_what_an_issue_waits_for(body: str, after: tuple[str, ...]) -> None:
    issues = [{"number": number, "title": "A", "body": "", "state": "OPEN"} for number in (3, 4)]
    issues.append({"number": 7, "title": "B", "body": body, "state": "OPEN"})
    assert read(json.dumps(issues), "github").tasks[2].after == after
