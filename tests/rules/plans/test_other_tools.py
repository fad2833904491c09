"""Plans of other tools: what their authors meant stands beside each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.rules import plans
from harness_lib.rules.plans import commands
from harness_lib.rules.plans.plan import Document, Plan

SPEC_KIT = """# Tasks: Photo albums

**Input**: Design documents from `/specs/001-albums/`

## Phase 1: Setup (Shared Infrastructure)

**Purpose**: A place to work in

- [X] T001 Create the project as plan.md says
- [ ] T002 [P] Configure the linter in pyproject.toml
- [ ] T003 [P] Configure the tests

## Phase 2: Foundational (Blocking Prerequisites)

- [ ] T004 Make the schema in src/db.py
- [ ] T005 [P] Make the session in src/auth.py (depends on T004)

## Phase 3: User Story 1 - Albums (Priority: P1)

**Goal**: Users make albums.

### Tests for User Story 1

- [ ] T006 [P] [US1] Test the contract in tests/test_albums.py

### Implementation for User Story 1

- [ ] T007 [P] [US1] Make the model
- [ ] T008 [US1] Make the service (depends on T006, T007);
      verify that `pytest -q tests/test_albums.py` passes
- [ ] T009 [US1] Make the page

## Phase 4: User Story 2 - Sharing (Priority: P2)

- [ ] T010 [US2] Make a link

## Phase 5: Polish & Cross-Cutting Concerns

- [ ] T011 [P] Write the documents
"""
STORIES_SIDE_BY_SIDE = """
## Dependencies & Execution Order

### Phase Dependencies

- **Setup (Phase 1)**: No dependencies - can start immediately
- **Foundational (Phase 2)**: Depends on Setup completion - BLOCKS all user stories
- **User Stories (Phase 3+)**: All depend on Foundational phase completion
  - User stories can then proceed in parallel
- **Polish (Final Phase)**: Depends on all desired user stories being complete

### User Story Dependencies

- **User Story 1 (P1)**: Can start after Foundational (Phase 2) - No dependencies on other stories
- **User Story 2 (P2)**: Can start after Foundational (Phase 2) - May integrate with US1
"""


def read(text: str, word: str) -> Plan:
    """Return the plan `text`, which must be recognised as one of the tool `word`."""
    found = plans.recognised(text)
    assert found is not None
    assert found[0].word == word
    return found[1]


def waits(plan: Plan) -> dict[str, str]:
    return {task.key: " ".join(task.after or ()) for task in plan.tasks}


def test_spec_kit_without_a_word_about_order_goes_phase_by_phase() -> None:
    plan = read(SPEC_KIT, "spec-kit")

    assert plan.tasks[4].title == "Make the session in src/auth.py"
    assert plan.tasks[7].check == "pytest -q tests/test_albums.py"
    assert "**Goal**: Users make albums." in plan.tasks[7].description
    assert [task.key for task in plan.tasks if task.done] == ["T001"]
    assert plan.header.endswith("from `/specs/001-albums/`")
    assert waits(plan) == {
        "T001": "",
        "T002": "T001",
        "T003": "T001",
        "T004": "T002 T003",
        "T005": "T004",
        "T006": "T005",
        "T007": "T005",
        "T008": "T006 T007",
        "T009": "T008",
        "T010": "T009",
        "T011": "T010",
    }


def test_spec_kit_lets_stories_run_side_by_side_where_it_says_so() -> None:
    after = waits(read(SPEC_KIT + STORIES_SIDE_BY_SIDE, "spec-kit"))

    assert (after["T006"], after["T007"], after["T010"]) == ("T005", "T005", "T005")
    assert after["T011"] == "T009 T010"


@pytest.mark.parametrize(
    ("said", "before_t010"),
    [
        ("- **User Story 2 (P2)**: Depends on US1 completion", "T009"),
        ("- **US2 (Phase 4)**: depends on Foundational. Can run beside Phase 3.", "T005"),
        ("- **Phase 4**: no dependencies", "T002 T003 T005"),
        ("- **Phase 4**: T010 after T004; T010 has no dependencies on others", "T009"),
        ("- **Phase 4**: depends on the weather", "T009"),
        ("- US2 (Phase 4): needs T004 only", "T005"),
        ("- US2 (Phase 4): needs T010", "T009"),
        ("- **Phase 2**: depends on Phase 4", "T009"),
        ("- **Phases 3-4**: Depend on Phase 2 + can run side by side", "T005"),
    ],
)
def test_a_sentence_of_spec_kit_about_order_counts_where_it_can_be_right(said: str, before_t010: str) -> None:
    """One about nothing that is known, or that would close a ring of phases, was misread."""
    plan = read(f"{SPEC_KIT}\n## Dependencies & Execution Order\n\n{said}\n", "spec-kit")
    assert waits(plan)["T010"] == before_t010


def test_a_phase_of_spec_kit_may_say_itself_what_it_depends_on() -> None:
    text = SPEC_KIT.replace(
        "## Phase 4: User Story 2 - Sharing (Priority: P2)\n",
        "## Phase 4: User Story 2 - Sharing\n\n**Depends on**: Phase 2 (the schema)\n",
    )
    assert waits(read(text, "spec-kit"))["T010"] == "T005"


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
    assert all(task.after is None for task in plan.tasks)


GSD = """---
phase: 03-features
plan: 02
wave: 2
depends_on: ["03-01"]   # the model
autonomous: false
---

<objective>
Build the page.
</objective>

<execution_context>
@~/somewhere/execute-plan.md
</execution_context>

<tasks>

<task type="auto">
  <name>Task 1: Build the layout</name>
  <action>Make a grid & use a < b.
```xml
<task type="auto"><name>code</name></task>
```
  </action>
  <verify>
    <automated>npm test -- page &amp;&amp; npm run build</automated>
  </verify>
  <done>It is drawn</done>
</task>

<!-- <task type="auto"><name>a comment</name></task> -->
<task type="auto" tdd="true">
  <name>Start it</name>
  <verify>npm run build succeeds</verify>
  <done>without an end

<task type="checkpoint:human-verify" gate="blocking">
  <what-built>The page at http://localhost:3000</what-built>
  <how-to-verify>Open it. Look at the grid.</how-to-verify>
</task>

</tasks>

<success_criteria>All of it works</success_criteria>
<output>Create SUMMARY.md</output>
"""


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
    ("item", "check", "is_human"),
    [
        ("Run `npm test`.", "npm test", False),
        ("Run `npm test` and fix any failure", "npm test", False),
        ("`openspec validate x --strict`", "openspec validate x --strict", False),
        ("Run `npm test` and see it fail", None, False),
        ("Run `npm run dev`", None, False),
        ("Test `tools/list` with a client", None, False),
        ("Verify `/api/health` returns 200", None, False),
        ("Verify `test` directory exists", None, False),
        ("(manual) Start it and look", None, True),
        ("Manual test: log in", None, True),
        ("Write the manual", None, False),
    ],
)
def test_items_of_openspec(item: str, check: str | None, *, is_human: bool) -> None:
    (task,) = read(f"## 1. One\n\n- [ ] 1.1 {item}\n", "openspec").tasks
    assert (task.check, task.human is not None) == (check, is_human)


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
    text = "- [ ] T001 Make it\n  - check: `pytest -q`\n  - priority: P0\n- [ ] T001 Make it again\n"
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
            assert 1 <= task.lines[0] <= max(task.lines[1], task.lines[0]) <= len(lines)
            assert all("[" in lines[number - 1] for number in task.boxes)
