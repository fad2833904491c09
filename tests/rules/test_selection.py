"""Which task comes next, why one does not, in which order they stand, and when a session stops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness_lib import timestamps
from harness_lib.errors import ConfigError, EnvSetupError, RefusedError, UsageError
from harness_lib.rules import attempts, graph, selection, stats
from harness_lib.rules.selection import is_permanent, validate_dependencies
from harness_lib.task import (
    CATEGORIES,
    HALT_KINDS,
    HaltKind,
    Intent,
    Recheck,
    State,
    StopReason,
    Task,
)
from tests.rules.lists import BLOCKED, NOW, STAMP, ago, state, states, waiting

FAILED = Task("a", status="failed", attempts=1)


def test_the_user_sees_first_what_is_at_work_then_what_is_halted_failed_next_and_done() -> None:
    tasks = [
        Task("done-10", status="completed"),
        Task("done-9", status="completed"),
        Task("waits-10", depends_on=("next-2",)),
        Task("waits-9", depends_on=("next-2",)),
        Task("next-1"),
        Task("next-2", priority="P0"),
        FAILED._replace(id="again"),
        Task("for-good", status="failed", attempts=3),
        Task("said", status="completed", unproven=True),
        Task("halted", halt="CONFIG: no check"),
        Task("works-2", status="in_progress", claimed_by="w"),
        Task("works-1", status="in_progress", claimed_by="w", halt="x", unproven=True),
    ]

    order = [task.id for task in selection.interesting(state(*tasks))]

    assert order == [
        *("works-1", "works-2", "halted", "said", "again", "for-good"),
        *("next-2", "next-1", "waits-9", "waits-10", "done-9", "done-10"),
    ]


def test_an_intent_that_the_legacy_protocol_let_stand_keeps_nobody_from_the_task() -> None:
    """It ended the attempt of a process of ours that had died, and knows no intents."""
    task = Task("a", intent=Intent("rollback", STAMP))

    assert selection.pick(state(task)) is task
    assert selection.why(state(task), "a", NOW).eligible


def _turn(task: Task) -> tuple[bool, str, float, int]:
    """Return when it is the turn of a drawn task, as the protocol says it."""
    retry = task.status == "failed"
    failed_at = timestamps.parse(task.failed_at).timestamp() if retry and task.failed_at else 0.0
    return retry, task.priority, failed_at, int(task.id[1:])


@given(states())
@example(state(*(Task(f"t{n}", status="failed", failed_at=ago(n)) for n in (1, 9))))
def test_all_that_may_be_claimed_comes_in_its_turn_whatever_the_order_of_the_list(before: State) -> None:
    completed = {task.id for task in before.tasks if task.status == "completed" and not task.unproven}
    may_be_claimed = [
        task
        for task in before.tasks
        if task.halt is None
        and (task.status == "pending" or (task.status == "failed" and not is_permanent(task)))
        and completed.issuperset(task.depends_on)
    ]

    ranked = selection.ranked(before)

    assert ranked == sorted(may_be_claimed, key=_turn)
    assert selection.pick(before) is (ranked[0] if ranked else None)
    assert selection.ranked(before._replace(tasks=before.tasks[::-1])) == ranked
    for task in before.tasks:
        why = selection.why(before, task.id, NOW)
        assert why.eligible == (task in ranked)
        assert why.reasons


@given(states(), states())
def test_what_came_first_before_a_change_is_no_reason_to_come_first_after_it(
    before: State, other: State
) -> None:
    for place in range(len(before.tasks)):
        for changed in other.tasks:
            selection.pick(before)
            tasks = list(before.tasks)
            tasks[place] = changed._replace(id=tasks[place].id, depends_on=tasks[place].depends_on)
            after = before._replace(tasks=tuple(tasks))

            assert selection.pick(after) is next(iter(selection.ranked(after)), None)


def test_after_a_change_of_a_task_in_progress_the_next_one_is_not_searched_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run of thousands of tasks makes such changes of each of them."""
    before = state(Task("a", status="in_progress"), Task("b"), Task("c"))
    assert selection.pick(before) is before.tasks[1]
    monkeypatch.setattr(selection, "eligible", lambda _state: pytest.fail("searched again"))

    after = before._replace(tasks=(before.tasks[0]._replace(look_at=("Look.",)), *before.tasks[1:]))

    assert selection.pick(after) is before.tasks[1]


LEASED = Task("a", status="in_progress", claimed_by="w1", claimed_at=STAMP)


# What is asked about is task a.
WHY: dict[str, tuple[Sequence[Task], Sequence[str]]] = {
    "next": ([Task("a")], ["next: pending, P1"]),
    "later": ([FAILED, Task("b")], ["number 2 of 2 to claim (retry, attempts 1/3, P1); next is b"]),
    "completed": ([Task("a", status="completed", completed_at=STAMP)], [f"completed at {STAMP}"]),
    "completed by the legacy protocol": ([Task("a", status="completed")], ["completed at an unknown time"]),
    "unproven": (
        [Task("a", status="completed", completed_at=STAMP, unproven=True)],
        [f"{selection.UNPROVEN}: harness start has its check run"],
    ),
    "dependencies": (
        [
            Task("a", depends_on=("b", "c", "d", "e", "e")),
            Task("b"),
            Task("c", status="failed", attempts=3),
            Task("e", status="completed", unproven=True),
        ],
        [
            "waits for b (pending)",
            "depends on c, which has failed for good",
            "depends on d, which is not in the list",
            "waits for e (unproven)",
        ],
    ),
    "claimed without a lease": ([LEASED], [f"in progress by w1 since {STAMP}"]),
    "leased": (
        [LEASED._replace(lease_expires_at="2025-07-01T10:00:01Z")],
        ["in progress by w1, leased until 2025-07-01T10:00:01Z"],
    ),
    "lease ended": (
        [LEASED._replace(lease_expires_at=STAMP)],
        [f"in progress by w1, whose lease ended at {STAMP}: harness recover takes it back"],
    ),
    "nobody's": ([Task("a", status="in_progress")], ["in progress, claimed by nobody"]),
    "rollback under way": (
        [LEASED._replace(intent=Intent("rollback", STAMP), halt="no sh")],
        [
            f"in progress by w1 since {STAMP}",
            f"a rollback is under way since {STAMP}",
            "halted until the user has acted: no sh",
        ],
    ),
    "waits to be merged": (
        [LEASED._replace(intent=Intent("merge", STAMP))],
        [f"in progress by w1 since {STAMP}", f"checked, waits to be merged since {STAMP}"],
    ),
    "failed for good": (
        [Task("a", status="failed", attempts=3, error_log=(BLOCKED,), halt="CONFIG")],
        [
            "halted until the user has acted: CONFIG",
            "attempts used up (3/3): harness retry a gives it new ones",
            f"failed for good: {BLOCKED}",
        ],
    ),
    "cycle": (waiting(a="b", b="a"), ["in a cycle: a -> b -> a", "waits for b (pending)"]),
}


@pytest.mark.parametrize(("tasks", "reasons"), WHY.values(), ids=WHY)
def test_why(tasks: Sequence[Task], reasons: Sequence[str]) -> None:
    assert list(selection.why(state(*tasks), "a", NOW).reasons) == reasons


def test_why_of_an_unknown_task_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="There is no task 'x' in this list") as caught:
        selection.why(state(), "x", NOW)

    assert caught.value.hint == "List the tasks: harness status"


def test_what_can_be_proven_is_what_somebody_else_has_completed() -> None:
    doubted = Task("a", status="completed", unproven=True)
    tasks = (doubted, Task("b", unproven=True), Task("c", status="completed"))

    assert selection.unproven(state(*tasks)) == [doubted]


# -- the rings among tasks, and the order of ids


IDS = st.text(alphabet="at-0129٣²", max_size=6)


def _reaches(edges: dict[str, list[str]], start: str) -> set[str]:
    reached: set[str] = set()
    stack = list(edges[start])
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            stack.extend(edges[node])
    return reached


@given(states())
def test_the_rings_are_of_the_tasks_that_reach_themselves_in_any_order(before: State) -> None:
    open_ones = {task.id: task for task in before.tasks if task.status != "completed"}
    edges = {
        name: [each for each in task.depends_on if each in open_ones] for name, task in open_ones.items()
    }

    members, rings = graph.cycle_members(before.tasks), graph.cycles(before.tasks)

    assert set(members) == {task_id for task_id in edges if task_id in _reaches(edges, task_id)}
    for task_id, text in members.items():
        ring = text.split(" -> ")
        assert task_id in ring
        assert ring[0] == ring[-1] == min(ring, key=graph.id_key)
        assert len(set(ring)) == len(ring) - 1
        assert all(after in edges[before] for before, after in pairwise(ring))
    knots = {
        frozenset(_reaches(edges, ring[0])) & {n for n in edges if ring[0] in _reaches(edges, n)}
        for ring in rings
    }
    assert len(knots) == len(rings)
    assert frozenset().union(*knots) == set(members)
    assert graph.cycles(reversed(before.tasks)) == rings


def test_cycles_are_named_in_the_order_of_numbers() -> None:
    rings = graph.cycles(Task(name, depends_on=(name,)) for name in ("t10", "t9"))
    assert [ring[0] for ring in rings] == ["t9", "t10"]


def test_a_ring_of_thousands_is_described_in_a_few_words() -> None:
    ring = tuple(Task(f"t{n}", depends_on=(f"t{(n + 1) % 5000}",)) for n in range(5000))

    members = graph.cycle_members(ring)

    assert len(members) == 5000
    assert members["t2500"].startswith("t0 -> t1 -> ")
    assert "(4991 more)" in members["t2500"]


def test_of_a_ring_at_least_two_are_left_out() -> None:
    letters = tuple("abcdefghijkl")

    assert graph.describe(letters[:11]) == " -> ".join(letters[:11])
    assert graph.describe(letters) == " -> ".join((*letters[:8], "(2 more)", *letters[-2:]))


def test_numbers_in_ids_count_as_numbers() -> None:
    ids = ["task-1000", "t10", "task-999", "t2", "task-001", "b", "t", "a10b2", "a10b1", "9"]

    assert sorted(ids, key=graph.id_key) == [
        "9", "a10b1", "a10b2", "b", "t", "t2", "t10", "task-001", "task-999", "task-1000",
    ]  # fmt: skip
    # A number that no int can hold.
    assert graph.id_key("9" * 5000) < graph.id_key("1" + "0" * 5000)


@example(["t1", "t01", "t001", "t", "t0"])
@given(st.lists(IDS, unique=True))
def test_the_order_of_ids_is_total(ids: list[str]) -> None:
    assert len({graph.id_key(task_id) for task_id in ids}) == len(ids)


# -- when a session has nothing left to do, or may do no more, and what only the user can free


DONE = Task("done", status="completed")
WORKED = Task("worked", status="in_progress", claimed_by="w2")
UNPROVEN = Task("unproven", status="completed", unproven=True)
GONE = Task("gone", status="failed", attempts=3)
RETRY = Task("retry", status="failed", attempts=1)
HALTED = Task("halted", halt="CONFIG")


@pytest.mark.parametrize(
    ("tasks", "stop", "remains"),
    [
        pytest.param((), "done", False, id="empty list"),
        pytest.param((DONE,), "done", False, id="all completed"),
        pytest.param((DONE, Task("a")), None, True, id="pending"),
        pytest.param((DONE, RETRY), None, True, id="retryable"),
        pytest.param((WORKED, Task("a")), None, True, id="others work, more is free"),
        pytest.param((DONE, GONE), "blocked", False, id="failed for good"),
        pytest.param((GONE, *waiting(a="gone")), "blocked", True, id="doomed, not yet recorded"),
        pytest.param(waiting(a="b", b="a"), "blocked", True, id="a ring, not yet recorded"),
        pytest.param((GONE, WORKED), "waiting", True, id="others hold the rest"),
        pytest.param((WORKED, *waiting(a="worked")), "waiting", True, id="waits for what others do"),
        pytest.param((DONE, UNPROVEN), None, True, id="unproven"),
        pytest.param((GONE, UNPROVEN), None, True, id="unproven beside what has failed for good"),
        pytest.param((DONE, HALTED), "waiting", True, id="halted"),
        pytest.param((HALTED, *waiting(a="halted")), "waiting", True, id="waits for a halted one"),
        pytest.param(
            (GONE._replace(halt="x"), DONE._replace(halt="x")), "blocked", False, id="halted, and over"
        ),
    ],
)
def test_no_work_and_work_remains(tasks: tuple[Task, ...], stop: StopReason | None, remains: bool) -> None:
    assert stats.no_work(state(*tasks)) == stop
    assert stats.work_remains(state(*tasks)) is remains


@given(states())
def test_a_session_stops_exactly_when_nothing_can_be_claimed_or_proven(before: State) -> None:
    """Once dependencies are validated, `blocked` means that all the rest has failed for good."""
    goes_on = selection.pick(before) is not None or bool(selection.unproven(before))
    assert (stats.no_work(before) is None) == goes_on

    validated, _found = validate_dependencies(before, NOW)
    if stats.no_work(validated) in ("blocked", "done"):
        assert not stats.work_remains(validated)
        assert all(task.is_done or is_permanent(task) for task in validated.tasks)


@pytest.mark.parametrize(("rest", "stop"), [((), "done"), ((GONE,), "blocked")])
def test_a_red_task_is_why_nothing_goes_on(rest: tuple[Task, ...], stop: StopReason) -> None:
    found = Recheck("a" * 40, passed=False)
    red = state(DONE._replace(recheck=found), *rest)
    excused = state(DONE._replace(recheck=found._replace(excuse="not_reproducible")), *rest)

    assert (stats.no_work(red), stats.no_work(excused)) == ("recheck_failed", stop)


@pytest.mark.parametrize("kind", [*HALT_KINDS, None])
def test_what_follows_from_a_halt_is_decided_by_its_kind_not_its_words(kind: HaltKind | None) -> None:
    task = Task("a", halt="the user must say what the check is", halt_kind=kind)
    assert attempts.is_for_user(task) is (
        kind in {"CHECK_CHANGED", "SECRET", "JUDGES", "REVIEW", "MERGE", "HUMAN", None}
    )
    assert not attempts.is_for_user(task._replace(halt=None))
    assert attempts.is_lifted_by_an_edit(kind) is (kind in {"CONFIG", "CHECK_CHANGED"})
    # Only where work was kept is there an answer to give.
    assert attempts.takes_an_answer(kind) is (kind in {"SECRET", "JUDGES", "REVIEW", "MERGE"})


def test_an_error_and_a_failure_say_what_must_be_seen_to() -> None:
    errors = (ConfigError("x"), EnvSetupError("x"), RefusedError("x"))
    assert [attempts.of_error(error) for error in errors] == ["CONFIG", "ENV_SETUP", "REFUSED"]
    for category in CATEGORIES:
        assert attempts.of_category(category) == ("CONFIG" if category == "CONFIG" else "ENV_SETUP")
