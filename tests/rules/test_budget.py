"""Limits: when one is reached, in which words, and what is no limit at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.errors import UsageError
from harness_lib.rules import run_state
from harness_lib.rules.run_state import Budget, Spent

ALL = Budget(
    max_cost=5.0, max_tokens=1000, max_hours=2.0, max_tasks=3, task_cost=1.0, task_tokens=100, task_hours=0.5
)


@pytest.mark.parametrize(
    ("spent", "run", "task"),
    [
        (Spent(), None, None),
        (Spent(cost=0.99, tokens=99, seconds=1799, attempts=2), None, None),
        (Spent(cost=1.0), None, "cost: $1.00 of $1.00"),
        (Spent(tokens=100), None, "tokens: 100 of 100"),
        (Spent(seconds=1800), None, "hours: 0.50 of 0.50"),
        (Spent(cost=5.5), "cost: $5.50 of $5.00", "cost: $5.50 of $1.00"),
        (Spent(tokens=2000), "tokens: 2,000 of 1,000", "tokens: 2,000 of 100"),
        (Spent(seconds=7200), "hours: 2.00 of 2.00", "hours: 2.00 of 0.50"),
        (Spent(attempts=3), "attempts: 3 of 3", None),
    ],
)
def test_which_limit_is_reached(spent: Spent, run: str | None, task: str | None) -> None:
    assert run_state.over(ALL, spent) == run
    assert run_state.task_over(ALL, spent) == task


def test_what_was_spent_is_told_beside_each_limit() -> None:
    half = Budget(max_cost=5.0, max_tasks=3, task_tokens=1000)
    assert run_state.usage(half, Spent(1.5, 12000, 1800.0, 2)) == (
        "cost: $1.50 of $5.00",
        "tokens: 12,000 (no limit)",
        "hours: 0.50 (no limit)",
        "attempts: 2 of 3",
    )
    assert run_state.usage(ALL, Spent(tokens=7, seconds=900.0))[1:3] == (
        "tokens: 7 of 1,000",
        "hours: 0.25 of 2.00",
    )
    assert run_state.task_limits(half) == "tokens 1,000"
    assert run_state.task_limits(ALL) == "cost $1.00, tokens 100, hours 0.50"
    assert run_state.task_limits(Budget()) == "no limit"


def test_what_an_attempt_may_still_cost_is_never_nothing() -> None:
    assert run_state.cost_left(ALL, Spent()) == 1.0
    assert run_state.cost_left(ALL, Spent(cost=0.75)) == 0.25
    assert run_state.cost_left(ALL, Spent(cost=7)) == run_state.LEAST_COST
    assert run_state.cost_left(Budget(), Spent()) is None


amounts = st.floats(0, 1e6)
counts = st.integers(0, 10**9)
budgets = st.builds(Budget, amounts, counts, amounts, counts, amounts, counts, amounts)
spents = st.builds(Spent, amounts, counts, amounts, counts)


@given(budgets, spents, spents)
def test_more_never_frees_from_a_limit_and_zero_is_none(limits: Budget, spent: Spent, more: Spent) -> None:
    both = Spent._make(one + other for one, other in zip(spent, more, strict=True))

    assert run_state.over(limits, spent) is None or run_state.over(limits, both) is not None
    assert run_state.task_over(limits, spent) is None or run_state.task_over(limits, both) is not None
    assert run_state.over(Budget(), both) is run_state.task_over(Budget(), both) is None
    assert run_state.read_budget(run_state.write_budget(limits)) == limits


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_cots", 1), ("max_cost", "1"), *(("max_cost", each) for each in (True, -1, float("nan")))],
)
def test_what_is_no_budget_is_refused_with_its_name_and_where_to_look(name: str, value: object) -> None:
    with pytest.raises(UsageError) as refused:
        run_state.read_budget({name: value})

    assert refused.value.message == f"{name} is no limit, or {value!r} no amount of it."
    assert refused.value.hint == "See: harness budget --help"
    with pytest.raises(UsageError, match="inf"):
        run_state.read_budget({"max_tokens": float("inf")})


def test_what_is_no_object_is_refused_in_so_many_words() -> None:
    with pytest.raises(UsageError, match=r"^A budget is an object of limits\.$") as refused:
        run_state.read_budget([])
    assert refused.value.hint == "See: harness budget --help"


def test_a_change_names_some_limits_and_leaves_the_others() -> None:
    changed = run_state.changed(ALL, {"max_cost": 7.5, "max_tokens": 0})

    assert changed == ALL._replace(max_cost=7.5, max_tokens=0)
    with pytest.raises(UsageError, match="max_cots"):
        run_state.changed(ALL, {"max_cots": 1})
