"""What a failure means, for the task and for those that wait for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.rules import attempts, selection
from harness_lib.rules.attempts import Ending, category_of, entry
from harness_lib.rules.graph import cycle_members
from harness_lib.rules.selection import Finding, is_permanent, validate_dependencies
from harness_lib.task import CATEGORIES, STATUSES, Category, State, Task
from tests.rules.lists import BLOCKED, NOW, STAMP, state, states, waiting

GONE = Task("a", status="failed", attempts=3)


FAILED = Task("a", status="failed")
PERMANENT: dict[str, tuple[Task, bool]] = {
    "attempts left": (FAILED._replace(attempts=2), False),
    "attempts used up": (GONE, True),
    "more than there were": (FAILED._replace(attempts=9), True),
    "dependency": (FAILED._replace(error_log=(BLOCKED,)), True),
    "dependency, by the legacy protocol": (FAILED._replace(error_log=("10:00 ERROR [DEPENDENCY] x",)), True),
    "a check quotes it": (FAILED._replace(error_log=("[TEST_FAIL] said [DEPENDENCY]",)), False),
    **{status: (GONE._replace(status=status), False) for status in STATUSES if status != "failed"},
}


@pytest.mark.parametrize(("task", "permanent"), PERMANENT.values(), ids=PERMANENT)
def test_is_permanent(task: Task, permanent: bool) -> None:
    assert is_permanent(task) is permanent


def test_every_category_has_a_strategy_for_who_stops_and_what_an_attempt_costs() -> None:
    assert set(selection.STRATEGIES) == set(CATEGORIES)
    assert [c for c in CATEGORIES if selection.STRATEGIES[c].stop] == ["ENV_SETUP", "CONFIG"]
    assert [c for c in CATEGORIES if selection.STRATEGIES[c].ending is Ending.FAILED] == [
        "TASK_EXEC", "TEST_FAIL", "TIMEOUT", "SESSION_TIMEOUT",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "text"),
    [
        pytest.param("", "[TEST_FAIL]", id="empty"),
        pytest.param("one\n\n two\r\nthree\u2028four", "[TEST_FAIL] one | two | three | four", id="lines"),
        pytest.param("\x1b[31mred\x1b[0m\tblue\x00", "[TEST_FAIL] [31mred [0m blue", id="unprintable"),
    ],
)
def test_entry(message: str, text: str) -> None:
    assert entry("TEST_FAIL", message) == text


def test_a_text_is_cut_only_where_it_is_too_long_a_third_of_it_before_the_cut() -> None:
    fits = "a" * attempts.LIMIT
    assert attempts.line(fits) == fits
    assert attempts.line("a" * 300 + "b" * 300, 303) == "a" * 100 + " \u2026 " + "b" * 200

    long = entry("TIMEOUT", "begin " + "x" * 10_000_000 + " end")
    assert len(long) == attempts.LIMIT
    assert long.startswith("[TIMEOUT] begin xx")
    assert long.endswith("xx end")


@given(st.sampled_from(CATEGORIES), st.text())
def test_an_entry_is_one_bounded_line_and_tells_its_category(category: Category, message: str) -> None:
    text = entry(category, message)

    assert len(text) <= attempts.LIMIT
    assert len(text.splitlines()) == 1
    assert category_of(text) == category
    assert category_of("it broke [SOMEHOW]") is None


def test_cycles_are_marked_before_those_that_wait_for_them() -> None:
    before = state(*waiting(d="c", a="b", b="a", c="a", e=""))

    after, findings = validate_dependencies(before, NOW)

    assert findings == (
        Finding("a", "Circular dependency detected: a -> b -> a"),
        Finding("b", "Circular dependency detected: a -> b -> a"),
        Finding("c", "Blocked by failed a"),
        Finding("d", "Blocked by failed c"),
    )
    assert after.find("d") == Task(
        "d",
        status="failed",
        depends_on=("c",),
        error_log=("[DEPENDENCY] Blocked by failed c",),
        failed_at=STAMP,
    )
    assert after.tasks[4] is before.tasks[4]


@pytest.mark.parametrize(
    ("tasks", "found"),
    [
        pytest.param((GONE, *waiting(b="a", c="a", d="b c")), {"b": "a", "c": "a", "d": "b"}, id="a diamond"),
        pytest.param((GONE._replace(attempts=1), *waiting(b="a")), {}, id="attempts left"),
        pytest.param(
            (GONE, Task("b", status="in_progress", depends_on=("a",)), *waiting(c="b")), {}, id="worked on"
        ),
        pytest.param(
            (GONE, Task("b", status="failed", attempts=1, depends_on=("a",))), {"b": "a"}, id="a retry"
        ),
    ],
)
def test_a_task_is_blocked_once_by_the_first_such(tasks: tuple[Task, ...], found: dict[str, str]) -> None:
    before = state(*tasks)

    after, findings = validate_dependencies(before, NOW)

    assert findings == tuple(Finding(task, f"Blocked by failed {by}") for task, by in found.items())
    assert (after is before) == (not found)
    assert [task.attempts for task in after.tasks] == [task.attempts for task in tasks]


def test_a_chain_of_thousands_is_blocked_to_its_end() -> None:
    links = (Task(f"t{n}", depends_on=(f"t{n - 1}",)) for n in range(2999, 0, -1))

    after, findings = validate_dependencies(state(*links, GONE._replace(id="t0")), NOW)

    assert len(findings) == 2999
    assert all(is_permanent(task) for task in after.tasks)


@given(states())
def test_validation_reaches_the_fixed_point_and_touches_nothing_else(before: State) -> None:
    after, findings = validate_dependencies(before, NOW)

    assert validate_dependencies(after, NOW) == (after, ())
    members = cycle_members(before.tasks)
    by_id = {task.id: task for task in after.tasks}
    marked = {finding.task_id for finding in findings}
    for old, new in zip(before.tasks, after.tasks, strict=True):
        assert (old is not new) == (new.id in marked)
        if new.id in marked:
            assert is_permanent(new)
            assert old.status in ("pending", "failed")
            assert new.failed_at == STAMP
        elif new.status in ("pending", "failed") and not is_permanent(new):
            assert not any(is_permanent(by_id[other]) for other in new.depends_on)
            # Every member of a ring ends failed for good unless somebody works on it.
            assert new.id not in members


@pytest.mark.parametrize(
    ("tasks", "blocked"),
    [
        pytest.param((GONE, *waiting(b="a", c="b", d="")), ("b", "c"), id="along the chain"),
        pytest.param(
            (GONE, *waiting(b="a", c="a", d="b c", e="d")), ("b", "c", "d", "e"), id="a diamond, once each"
        ),
        # Members of a ring wait for one another: the walk ends, and nobody is blocked through themselves.
        pytest.param(waiting(a="c", b="a", c="b", d="b"), ("b", "c", "d"), id="a ring"),
        pytest.param(
            (GONE, Task("b", status="failed", attempts=3, depends_on=("a",), error_log=("[TEST_FAIL] no",))),
            (),
            id="failed for reasons of its own",
        ),
    ],
)
def test_who_was_blocked_through_a_task_is_found(tasks: tuple[Task, ...], blocked: tuple[str, ...]) -> None:
    after, _found = validate_dependencies(state(*tasks), NOW)

    assert selection.blocked_through(after, "a") == blocked
    assert selection.blocked_through(after, "nobody") == ()


def test_who_is_pending_again_is_not_blocked_whatever_its_log_says() -> None:
    before = state(GONE, Task("c", depends_on=("a",), error_log=(BLOCKED,)))

    assert selection.blocked_through(before, "a") == ()
