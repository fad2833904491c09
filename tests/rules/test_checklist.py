"""Markdown check lists: what is a task, what belongs to it, and what is passed over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.rules import checklist
from harness_lib.rules.checklist import Item, Problem

LINES = st.sampled_from(
    ["- [ ] one", "* [x] two", "  - check: `a`", "  - after: one", "    text", "```", "# h", "", "  - [ ]"]
)


def items_of(text: str) -> list[Item]:
    """Return the items of a document in which nothing is wrong."""
    items, problems = checklist.parse(text)
    assert problems == []
    return items


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        pytest.param("- [ ] a\n* [x] B\n+ [X] C\n1. [ ] d\n2) [ ] e\n", "a B C d e", id="every bullet"),
        pytest.param(
            "# [ ] a\ntext - [ ] b\n- plain\n```\n- [ ] c\n```\n~~~\n- [ ] d\n~~~\n- [ ] e\n",
            "e",
            id="legacy, headings, plain bullets and code are passed over",
        ),
        pytest.param("```\n~~~\n- [ ] c\n~~~\n```\n- [ ] e\n", "e", id="a fence ends with its own mark"),
        pytest.param("- [ ] a\n  - [ ] b\n", "a b", id="a nested item is a task of its own"),
    ],
)
def test_which_lines_are_tasks_and_which_are_done(text: str, titles: str) -> None:
    """Here those that are done have a capital letter."""
    items = items_of(text)

    assert [item.title for item in items] == titles.split()
    assert [item.done for item in items] == [title.isupper() for title in titles.split()]


def test_what_is_indented_below_belongs_to_the_task_until_something_is_not() -> None:
    (item,) = items_of("- [ ] a\n\n  - check: x\n\nlegacy\n  - priority: P0\n")
    assert (item.first("check"), item.first("priority")) == ("x", None)

    # Two blanks are below an item with a number, too.
    numbered = items_of("1. [ ] a\n  - check: `true`\n10. [ ] b\n  - check: `false`\n")
    assert [item.first("check") for item in numbered] == ["true", "false"]


@pytest.mark.parametrize("space", [" ", "-", "_"])
def test_a_name_is_spelled_as_in_legacy_as_an_option_and_as_in_json(space: str) -> None:
    names = [name.replace(" ", space) for name in checklist.KEYS if name != "description"]
    for name in names:
        (item,) = items_of(f"- [ ] a\n  - {name}: x\n")
        assert "description" not in item.fields, name


@pytest.mark.parametrize("name", ["after", "depends on", "depends", "needs", "requires", "Depends"])
def test_the_order_may_be_said_in_every_word_that_people_use(name: str) -> None:
    assert items_of(f"- [ ] a\n- [ ] b\n  - {name}: a\n")[1].first("after") == "a"


def test_a_command_may_stand_in_backticks_and_may_have_some_of_its_own() -> None:
    (item,) = items_of("- [ ] a\n  - check: `make test`\n  - cleanup: `a` && `b`\n")
    assert (item.first("check"), item.first("cleanup")) == ("make test", "`a` && `b`")


@pytest.mark.parametrize(
    ("below", "described", "unknown"),
    [
        (
            "  - Note: be careful\n  https://a.example\n",
            ["- Note: be careful", "https://a.example"],
            ["Note"],
        ),
        (" some words\n", ["some words"], []),
        ("  - chekc: x\n  check: y\n", ["- chekc: x", "check: y"], ["chekc", "check"]),
        ("  ```\n  key: value\n  ```\n", ["```", "key: value", "```"], []),
        # Up to three words may be a misspelt field.
        ("  - one two three: x\n  - one two three four: y\n", None, ["one two three"]),
    ],
)
def test_all_else_is_description(below: str, described: list[str] | None, unknown: list[str]) -> None:
    (item,) = items_of(f"- [ ] a\n{below}")

    said = item.fields["description"]
    assert described in (None, [text for _, text in said])
    assert [line for line, _ in said] == list(range(2, 2 + len(said)))
    assert item.unknown == list(enumerate(unknown, 2))


def test_what_is_wrong_is_a_problem_with_its_line() -> None:
    _, problems = checklist.parse(
        "- [ ] a\n  - check: x\n  - validate: y\n  - cwd:\n  - after: b\n  - after: c\n- [ ]\n"
    )
    assert problems == [
        Problem(3, "check is given twice (before in line 2)"),
        Problem(4, "cwd is empty"),
        Problem(7, "a task needs a title"),
    ]


def test_a_field_is_blamed_where_it_stands_and_a_missing_one_where_its_task_does() -> None:
    (item,) = items_of("# h\n- [ ] a\n  - check: x\n")

    assert (item.line_of("check"), item.line_of("cwd")) == (3, 2)


def test_an_item_without_a_check_groups_what_is_below_it_and_what_it_says_holds_there() -> None:
    items = items_of(
        "- [ ] a\n  - after: z\n  - priority: P0\n  - [ ] b\n    - priority: P1\n    - check: x\n"
        "    - after: y\n  - timeout: 5\n  some words\n  - [ ] c\n    - [ ] d\n"
    )

    groups = [("a", True), ("b", False), ("c", True), ("d", False)]
    assert [(item.title, item.is_group) for item in items] == groups
    b, d = items[1], items[3]
    assert (b.first("priority"), b.first("check"), b.first("timeout")) == ("P1", "x", "5")
    assert [value for _, value in b.fields["after"]] == ["z", "y"]
    assert (d.first("priority"), d.first("after"), d.first("check")) == ("P0", "z", None)
    assert [text for _, text in d.fields["description"]] == ["Part of: c", "Part of: a", "some words"]
    assert [each.title for each in d.ancestors()] == ["c", "a"]


def test_one_space_makes_no_child_and_a_heading_ends_a_group() -> None:
    items = items_of("- [ ] a\n - [ ] b\n# h\n  - [ ] c\n")
    assert [item.parent for item in items] == [None, None, None]


@given(st.lists(LINES, max_size=9).map("\n".join) | st.text(max_size=30))
def test_any_text_is_read_and_every_line_number_lies_in_it(text: str) -> None:
    items, problems = checklist.parse(text)

    last = len(text.splitlines())
    lines = [item.line for item in items]
    assert all(1 <= line <= last for line in (*lines, *(problem.line for problem in problems)))
    assert lines == sorted(lines)
