"""OpenSpec, plans that are JSON, the commands in sentences of any plan, and texts that are no plan."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.rules import plans
from harness_lib.rules.plans import commands, gsd, plan
from harness_lib.rules.plans.plan import Document
from tests.rules.plans.reading import GSD, SPEC_KIT, read


def test_openspec_has_a_task_for_each_number_that_groups_no_others() -> None:
    plan = read(
        "# Tasks\n\nKeep it small.\n\n## 1. Parser\n\n- [x] 1.1 Read the head\n- [ ] 1.2 Read the **body**\n"
        "  - also when it is empty\n\n## 2. Documents\n\n- [ ] 2. Pages\n"
        "  - [ ] 2.1 Write `index.md`; verify `mkdocs build --strict` succeeds\n",
        "openspec",
    )

    assert [(task.key, task.title, task.done) for task in plan.tasks] == [
        ("1.1", "Read the head", True),
        ("1.2", "Read the **body**", False),
        ("2.1", "Write `index.md`; verify `mkdocs build --strict` succeeds", False),
    ]
    assert plan.tasks[1].description.endswith("also when it is empty\n\nPart of: 1. Parser")
    assert plan.tasks[2].description.endswith("Part of: 2. Documents\n\nPart of: 2. Pages")
    assert plan.tasks[2].check == "mkdocs build --strict"
    assert plan.header == "# Tasks\n\nKeep it small."
    assert plan.strays == ()
    assert all(task.after is None for task in plan.tasks)
    assert read("- [ ] 1.1 A\n- [ ] in no task\n", "openspec").strays == (2,)


def test_a_comment_is_no_text_and_one_without_an_end_is() -> None:
    assert plan.without_comments("a\n<!-- b\n<!-- -->\n\nc <!-- d") == "a\n\nc <!-- d"


def test_another_plan_is_meant_by_the_name_of_its_file_too() -> None:
    other = plan.Read("phase/models-PLAN.md", gsd.FORMAT, plan.Plan("", (), "01-01"))
    assert plan.is_called(other, plan.Plan("", (), "01-02"), "models")


def test_of_very_many_pairs_one_task_waits_for_all_and_the_others_for_it() -> None:
    before = tuple(map(str, range(plan.MOST_PAIRS)))
    assert plan.join_after(["a", "b"], before[:2]) == {"a": before[:2], "b": before[:2]}
    assert plan.join_after(["a", "b", "c"], before) == {"a": before, "b": ("a",), "c": ("a",)}


@pytest.mark.parametrize(
    ("item", "check", "is_human"),
    [
        ("Run `npm test`.", "npm test", False),
        ("Run `npm test` and fix any failure", "npm test", False),
        ("`openspec validate x --strict`", "openspec validate x --strict", False),
        ("Run `npm test` and see it fail", None, False),
        ("Run `npm run dev`", None, False),
        ("Run `test`", None, False),
        ("Test `tools/list` with a client", None, False),
        ("Verify `/api/health` returns 200", None, False),
        ("Verify `test` directory exists", None, False),
        ("(manual) Start it and look", None, True),
        ("Manual test: log in", None, True),
        ("Manual: `npm test` passes", None, True),
        ("Write the manual", None, False),
    ],
)
def test_items_of_openspec(item: str, check: str | None, *, is_human: bool) -> None:
    (task,) = read(f"## 1. One\n\n- [ ] 1.1 {item}\n", "openspec").tasks
    assert (task.check, task.human is not None) == (check, is_human)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("npm test", "npm test"),
        ("`cargo test` passes", "cargo test"),
        ("npx tsc --noEmit passes", "npx tsc --noEmit"),
        ("npm run build exits 0.", "npm run build"),
        ("CI=1 ./bin/check --all", "CI=1 ./bin/check --all"),
        ("cd app && npm test", "cd app && npm test"),
        ("make a\nmake b", "set -e\nmake a\nmake b"),
        ("Run `cargo build` successfully.", "cargo build"),
        ("npm test exits with code 0 and all tests pass", "npm test"),
        ("npx vitest run a.test.ts passes; npx tsc is clean", "npx vitest run a.test.ts"),
        ("grep -q 'it passes' a.txt", "grep -q 'it passes' a.txt"),
        ("npm run test:coverage generates a report", None),
        ("Run `just test`; expect pass.", "just test"),
        ("Run `just test`; expect failure until then", None),
        ("Run `pnpm lint` \u2013 expect zero errors; push a violation and see CI fail.", "pnpm lint"),
        ("Run `npm test` and confirm that `npm run lint` passes", "npm run lint"),
        ("curl tests pass for all endpoints", None),
        ("All tests pass", None),
        ("Open `src/app.ts` and verify that it is right", None),
        ("curl localhost:3000 returns 200", None),
        ("Test that `npm test` fails", None),
        ("Unit tests for the service.", None),
        ("N/A", None),
        ("Unit/integration tests covering it", None),
        ("CI/CD green", None),
        ("pytest can collect tests with it", None),
        ("`ruff check .` passes", "ruff check ."),
        ("Run `npm run lint` to confirm zero ESLint violations", "npm run lint"),
        ("Test: `tests/test_a.py`", None),
        ("git log -1 | grep feat", None),
        ("docker compose up", None),
        ("npm start", None),
        ("npm run start:ci", "npm run start:ci"),
        ("scripts/check --all", "scripts/check --all"),
        ("MISSING: Wave 0 must create tests/test_a.py first", None),
        ("", None),
    ],
)
def test_a_text_that_is_a_command_or_says_which_one_passes(text: str, check: str | None) -> None:
    assert commands.whole(text) == check


def test_a_field_of_ours_in_a_plan_of_another_tool_gives_its_check() -> None:
    text = "- [ ] T001 Make it\n  - check: pytest -q\n  - priority: P0\n- [ ] T001 Make it again\n"
    plan = read(text, "spec-kit")
    assert [(task.key, task.check) for task in plan.tasks] == [("T001", "pytest -q"), ("T001(2)", None)]


@pytest.mark.parametrize(
    "text",
    [
        "# Design\n\nWe could use a `<task>` or Task 1 of it.\n\n- [ ] Decide\n",
        '```xml\n<task type="auto"><name>A</name></task>\n```\n',
        "- [ ] T5 is a model\n",
        "```\n### Task 1: A\n- [ ] T001 A\n- [ ] 1.1 A\n```\n",
        "> ### Task 1: A\n",
        "<!--\n- [ ] T001 A\n-->\n",
        '{"tasks": [{"title": "A", "depends_on": []}]}',
        '[{"title": "A"}]',
        '{"tasks": [1, null]}',
        '[{"number": 1, "title": "A"}]',
        "[" * 100_000,
        "",
    ],
)
def test_what_is_no_plan_of_another_tool(text: str) -> None:
    assert plans.recognised(text) is None


def test_the_ends_of_lines_do_not_count() -> None:
    for text in (SPEC_KIT, GSD):
        for end in ("\r\n", "\r"):
            assert plans.recognised(text.replace("\n", end)) == plans.recognised(text)


PIECES = st.sampled_from(
    (
        *(
            "- [ ] T001 a",
            "- [x] 1.1 b",
            "### Task 1: c",
            '<task type="auto">',
            "<name>d",
            "</task>",
            "```",
            "<!--",
        ),
        *(
            "-->",
            "  ",
            "\t",
            "\n",
            "\n\n",
            "> ",
            "## Phase 1: e",
            "[P]",
            "(depends on T001)",
            "`make` passes",
        ),
        *(
            "## Dependencies",
            "- **Phase 1**: depends on Phase 1",
            "---",
            "wave: 1",
            "depends_on: [1]",
            "é",
            "\0",
        ),
    )
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_can_be_read_by_all(text: str) -> None:
    """The lines of a task are lines of the text, and each box is one."""
    lines = Document(text).lines
    for form in plans.FORMATS:
        plan = form.read(Document(text))
        for task in plan.tasks if plan else ():
            assert task.title.strip()
            assert 1 <= task.lines[0] <= max(task.lines[1], task.lines[0]) <= len(lines)
            assert all("[" in lines[number - 1] for number in task.boxes)


# -- task Master and issues of GitHub: plans that are JSON


def test_task_master_has_tags_subtasks_as_steps_and_dependencies() -> None:
    steps = [
        {"id": 1, "title": "Draw", "status": "done", "dependencies": [5], "acceptanceCriteria": "OK."},
        {"id": 2, "title": "Paint", "status": "pending"},
    ]
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
    assert "2.1 Draw (after 5, done)\nOK.\n\n2.2 Paint" in two.description
    assert "2.2 Paint (" not in two.description
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
        ("Also:\nlater\n#8 requires #3", ()),
    ],
)
def test_what_an_issue_waits_for(body: str, after: tuple[str, ...]) -> None:
    issues = [{"number": number, "title": "A", "body": "", "state": "OPEN"} for number in (3, 4)]
    issues.append({"number": 7, "title": "B", "body": body, "state": "OPEN"})
    assert read(json.dumps(issues), "github").tasks[2].after == after
