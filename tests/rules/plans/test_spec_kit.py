"""The tasks of spec-kit: what comes after what, and the marks of a title."""

from __future__ import annotations

import pytest

from tests.rules.plans.reading import SPEC_KIT, read, waits

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
