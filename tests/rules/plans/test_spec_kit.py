"""The tasks of spec-kit and GSD: what comes after what, and what their authors meant by marks or elements."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness_lib.rules.plans import commands
from tests.rules.plans.reading import GSD, SPEC_KIT, read, waits

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
        ("- US2 (Phase 4): needs T004-T005", "T005"),
        ("- **Phase 4**: depends on Phase 2: the model", "T005"),
        ("- **Phase 4**: the second story", "T009"),
        ("- US2 (Phase 4): needs T010", "T009"),
        ("- **Phase 3**: depends on Phase 4", "T009"),
        ("- **Phases 3-4**: Depend on Phase 2 + can run side by side", "T005"),
    ],
)
def test_a_sentence_of_spec_kit_about_order_counts_where_it_can_be_right(said: str, before_t010: str) -> None:
    """One about nothing that is known, or that would close a ring of phases, was misread."""
    plan = read(f"{SPEC_KIT}\n## Dependencies & Execution Order\n\n{said}\n", "spec-kit")
    assert waits(plan)["T010"] == before_t010


def test_an_unmarked_task_that_names_others_lets_the_rest_go_on() -> None:
    """What comes later still waits for all that came before it, and T003 does not wait for T002."""
    text = "## Phase 1: One\n- [ ] T001 A\n- [ ] T002 B\n- [ ] T003 C (depends on T001)\n- [ ] T004 D\n"
    first = {"T001": "", "T002": "T001", "T003": "T001", "T004": "T002 T003"}
    assert waits(read(text, "spec-kit")) == first
    unknown = read(f"{text}- [ ] T005 E (depends on T099)\n", "spec-kit")
    assert waits(unknown) == {**first, "T005": "T099"}


def test_tasks_of_spec_kit_may_be_headings() -> None:
    """The mark of a heading says whether it is done, or what it comes after."""
    text = (
        "# Tasks\n\nSmall steps.\n\n## Phase 1: Setup\n\n### T001 [P] [x] Make the folders\n\nBoth.\n\n"
        "- [ ] src\n\n### T002 [P] Make the types\n\n## Phase 2: Core\n\n### T003 [G] [D: T001] Write it\n\n"
        "Verify that `npm test` passes.\n"
    )
    plan = read(text, "spec-kit")
    assert [(task.key, task.title, task.done, task.check) for task in plan.tasks] == [
        ("T001", "Make the folders", True, None),
        ("T002", "Make the types", False, None),
        ("T003", "Write it", False, "npm test"),
    ]
    assert waits(plan) == {"T001": "", "T002": "", "T003": "T001 T002"}
    assert plan.header == "# Tasks\n\nSmall steps."
    assert "- [ ] src" in plan.tasks[0].description


@pytest.mark.parametrize(
    ("item", "title", "check"),
    [
        ("\U0001f9ea [P] [US1] Write it", "Write it", None),
        ("\u2699\ufe0f Set it up", "Set it up", None),
        ("Run `npm run lint`", "Run `npm run lint`", "npm run lint"),
        ("`cargo test --all`", "`cargo test --all`", "cargo test --all"),
        ("Run `npm install`", "Run `npm install`", None),
        ("Run `npm run test:watch`", "Run `npm run test:watch`", None),
    ],
)
def test_the_title_of_spec_kit(item: str, title: str, check: str | None) -> None:
    (task,) = read(f"- [ ] T001 {item}\n", "spec-kit").tasks
    assert (task.title, task.check) == (title, check)


# -- the plans of GSD: elements in Markdown, and what their author meant by them


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


def test_spec_kit_without_phases_goes_by_headings_of_the_second_level() -> None:
    one = "# Tasks\n\n## One\n\n- [ ] T001 [P] A\n\n### Inside\n\n- [ ] T002 [P] B\n"
    two = "## Two\n\n- [ ] T003 C\n\n## T004 D\n\n- [ ] T005 E\n"
    after = {"T001": "", "T002": "", "T003": "T001 T002", "T005": "T003"}
    assert waits(read(f"{one}\n{two}", "spec-kit")) == after


def test_code_of_gsd_is_hidden_to_its_last_line_unless_a_task_ends_in_it() -> None:
    """What stands before the tasks is the header."""
    first = 'Say it.\n\n<task type="auto"><name>A</name>\n```sh\nx\n'
    plan = read(f'{first}<task type="auto"><name>B</name>\n```\n</task>\n', "gsd")
    assert (plan.header, [task.title for task in plan.tasks]) == ("Say it.", ["A"])
    assert read(f"{first}</task>\n```\n", "gsd").tasks[0].lines == (3, 6)


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
