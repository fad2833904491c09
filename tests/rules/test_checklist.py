"""Markdown check lists: what is a task, what belongs to it, and what is passed over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.rules import checklist

LINES = st.sampled_from(
    [
        "- [ ] one",
        "* [x] two",
        "  - check: `a`",
        "  - after: one",
        "    text",
        "```",
        "# h",
        "",
        "  - [ ]",
        "\t- b",
    ]
)


def _titles(text: str) -> list[str]:
    return [item.title for item in checklist.parse(text)[0]]


def test_items_of_every_bullet_are_tasks_and_checked_ones_are_done() -> None:
    items, problems = checklist.parse("- [ ] a\n* [x] b\n+ [X] c\n1. [ ] d\n2) [ ] e\n")
    assert [(item.title, item.done) for item in items] == [
        ("a", False),
        ("b", True),
        ("c", True),
        ("d", False),
        ("e", False),
    ]
    assert problems == []


def test_prose_headings_plain_bullets_and_code_are_passed_over() -> None:
    assert _titles("# [ ] a\ntext - [ ] b\n- plain\n```\n- [ ] c\n```\n~~~\n- [ ] d\n~~~\n- [ ] e\n") == ["e"]


def test_two_blanks_are_below_an_item_with_a_number_too() -> None:
    text = "1. [ ] a\n  - check: `true`\n10. [ ] b\n  - check: `false`\n"

    assert [item.first("check") for item in checklist.parse(text)[0]] == ["true", "false"]


def test_a_nested_item_is_a_task_of_its_own() -> None:
    assert _titles("- [ ] a\n  - [ ] b\n") == ["a", "b"]


def test_what_is_indented_below_belongs_to_the_task_until_something_is_not() -> None:
    items, _ = checklist.parse("- [ ] a\n\n  - check: x\n\nprose\n  - priority: P0\n")
    assert items[0].first("check") == "x"
    assert items[0].first("priority") is None


@pytest.mark.parametrize("space", [" ", "-", "_"])
def test_a_name_is_spelled_as_in_prose_as_an_option_and_as_in_json(space: str) -> None:
    names = [name.replace(" ", space) for name in checklist.KEYS if name != "description"]
    for name in names:
        items, _ = checklist.parse(f"- [ ] a\n  - {name}: x\n")
        assert "description" not in items[0].fields, name


def test_a_command_may_stand_in_backticks_and_may_have_some_of_its_own() -> None:
    items, _ = checklist.parse("- [ ] a\n  - check: `make test`\n  - cleanup: `a` && `b`\n")
    assert items[0].first("check") == "make test"
    assert items[0].first("cleanup") == "`a` && `b`"


def test_unknown_words_before_a_colon_are_description() -> None:
    items, _ = checklist.parse("- [ ] a\n  - Note: be careful\n  https://example.invalid\n")
    assert [text for _, text in items[0].fields["description"]] == [
        "- Note: be careful",
        "https://example.invalid",
    ]


def test_a_field_that_is_given_twice_or_empty_is_a_problem_with_its_line() -> None:
    _, problems = checklist.parse(
        "- [ ] a\n  - check: x\n  - validate: y\n  - cwd:\n  - after: b\n  - after: c\n"
    )
    assert [(problem.line, problem.message) for problem in problems] == [
        (3, "check is given twice (before in line 2)"),
        (4, "cwd is empty"),
    ]


@pytest.mark.parametrize("name", ["after", "depends on", "depends", "needs", "requires", "Depends"])
def test_the_order_may_be_said_in_every_word_that_people_use(name: str) -> None:
    items, _ = checklist.parse(f"- [ ] a\n- [ ] b\n  - {name}: a\n")
    assert items[1].first("after") == "a"


def test_what_looks_like_a_field_and_is_none_is_named_with_its_line() -> None:
    text = (
        "- [ ] a\n  - chekc: x\n  check: y\n  - Look at all of this first: z\n  see https://example.invalid\n"
        "  ```\n  key: value\n  ```\n"
    )
    items, _ = checklist.parse(text)
    assert items[0].unknown == [(2, "chekc"), (3, "check")]


def test_up_to_three_words_may_be_a_misspelt_field() -> None:
    items, _ = checklist.parse("- [ ] a\n  - one two three: x\n  - one two three four: y\n")

    assert items[0].unknown == [(2, "one two three")]


def test_an_item_without_a_title_is_a_problem_with_its_line() -> None:
    items, problems = checklist.parse("# h\n- [ ]\n")

    assert items[0].title == ""
    assert problems == [checklist.Problem(2, "a task needs a title")]


def test_one_blank_is_enough_for_a_description() -> None:
    items, _ = checklist.parse("- [ ] a\n some words\n")

    assert items[0].fields["description"] == [(2, "some words")]


def test_a_fence_ends_with_its_own_mark_only() -> None:
    assert _titles("```\n~~~\n- [ ] c\n~~~\n```\n- [ ] e\n") == ["e"]


def test_an_item_without_a_check_groups_what_is_below_it_and_what_it_says_holds_there() -> None:
    text = (
        "- [ ] a\n  - after: z\n  - priority: P0\n  - [ ] b\n    - priority: P1\n    - check: x\n"
        "  - timeout: 5\n  some words\n  - [ ] c\n    - [ ] d\n"
    )
    items, problems = checklist.parse(text)
    assert [(item.title, item.is_group) for item in items] == [
        ("a", True),
        ("b", False),
        ("c", True),
        ("d", False),
    ]
    b, d = items[1], items[3]
    assert (b.first("priority"), b.first("check"), b.first("timeout")) == ("P1", "x", "5")
    assert (d.first("priority"), d.first("after"), d.first("check")) == ("P0", "z", None)
    assert [text for _, text in d.fields["description"]] == ["Part of: c", "Part of: a", "some words"]
    assert [each.title for each in d.ancestors()] == ["c", "a"]
    assert problems == []


def test_what_a_group_waits_for_its_items_wait_for_beside_their_own() -> None:
    items, _ = checklist.parse("- [ ] a\n  - after: z\n  - [ ] b\n    - after: y\n")

    assert [value for _, value in items[1].fields["after"]] == ["z", "y"]


def test_a_field_is_blamed_where_it_stands_and_a_missing_one_where_its_task_does() -> None:
    items, _ = checklist.parse("# h\n- [ ] a\n  - check: x\n")

    assert (items[0].line_of("check"), items[0].line_of("cwd")) == (3, 2)


def test_one_space_makes_no_child_and_a_heading_ends_a_group() -> None:
    items, _ = checklist.parse("- [ ] a\n - [ ] b\n# h\n  - [ ] c\n")
    assert [item.parent for item in items] == [None, None, None]


@given(st.lists(LINES, max_size=12).map("\n".join) | st.text(max_size=200))
def test_any_text_is_read_and_every_line_number_lies_in_it(text: str) -> None:
    items, problems = checklist.parse(text)
    last = len(text.splitlines())
    lines = [item.line for item in items] + [problem.line for problem in problems]
    assert all(1 <= line <= last for line in lines)
    assert [item.line for item in items] == sorted(item.line for item in items)
