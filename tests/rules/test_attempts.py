"""An attempt from its claim to its end: leases, gates, intents, and what becomes of one that was cut off."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import product

import pytest

from harness_lib import timestamps
from harness_lib.errors import UsageError
from harness_lib.rules import attempts, recovery
from harness_lib.rules.attempts import Ending
from harness_lib.rules.recovery import Facts
from harness_lib.task import STATUSES, Attempt, Checkpoint, Gate, Intent, Interruption, Task
from tests.rules.lists import NOW, STAMP, ago

BEGAN = datetime(2025, 7, 1, 10, tzinfo=timezone.utc)
LATER = BEGAN + timedelta(minutes=5)
CLAIMED = Task("a", status="in_progress", fence=1, claimed_at=timestamps.render(BEGAN))


def test_what_each_agent_of_an_attempt_has_used_is_added_up_to_the_millionth_of_a_dollar() -> None:
    task = attempts.spend(attempts.spend(CLAIMED, 0.1, 1000), 0.20000049, 200)

    done = attempts.ended(task, LATER, "completed")

    assert done.attempt_log == (
        Attempt(1, 1, "completed", timestamps.render(BEGAN), timestamps.render(LATER), 0.3, 1200),
    )
    assert attempts.seconds(done.attempt_log[0]) == 300


def test_each_claim_is_an_attempt_of_its_own_and_leaves_those_before_it_alone() -> None:
    task = attempts.ended(attempts.spend(CLAIMED, 1, 1)._replace(attempts=1), LATER, "failed")

    for _ in range(3):
        task = attempts.spend(task._replace(fence=2), 0, 2)

    assert [(each.number, each.outcome, each.tokens) for each in task.attempt_log] == [
        (1, "failed", 1),
        (2, None, 6),
    ]


def test_the_number_of_an_attempt_follows_those_that_were_counted() -> None:
    done = attempts.ended(CLAIMED._replace(attempts=2), LATER, "completed")
    failed = attempts.ended(CLAIMED._replace(attempts=2), LATER, "failed")

    assert (done.attempt_log[0].number, failed.attempt_log[0].number) == (3, 2)


def test_one_that_the_legacy_protocol_has_ended_is_not_gone_on_with() -> None:
    left = attempts.spend(CLAIMED, 1, 1)
    assert len(attempts.ended(left._replace(fence=2), LATER, "completed").attempt_log) == 2


def test_a_claim_that_is_handed_back_is_kept_only_where_it_has_cost_something() -> None:
    assert attempts.ended(CLAIMED, LATER, "pending") == CLAIMED
    assert attempts.ended(attempts.spend(CLAIMED, 0, 7), LATER, "pending").attempt_log[0].tokens == 7


def test_only_the_last_ones_are_kept() -> None:
    task = CLAIMED
    for fence in range(1, 30):
        task = attempts.ended(task._replace(fence=fence, attempts=fence), LATER, "failed")
    assert [each.number for each in task.attempt_log] == list(range(20, 30))


def test_those_of_a_run_are_those_that_have_ended_since_it_began() -> None:
    task = attempts.ended(CLAIMED._replace(attempts=1), LATER, "failed")
    assert len(attempts.since(task, LATER)) == 1
    assert attempts.since(task, LATER + timedelta(seconds=1)) == ()


@pytest.mark.parametrize(
    ("began", "ended"),
    [(None, LATER), (BEGAN, None), (BEGAN, BEGAN), (LATER, BEGAN)],
    ids=["no beginning", "no end", "at once", "a clock that was set back"],
)
def test_an_attempt_of_no_known_length_took_no_time(began: datetime | None, ended: datetime | None) -> None:
    first, last = (None if moment is None else timestamps.render(moment) for moment in (began, ended))

    assert attempts.seconds(Attempt(1, 1, "failed", first, last)) == 0.0


# -- how long a claim stands when its worker is silent, and whose it is


MINE = Task("a", status="in_progress", claimed_by="w", fence=2)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, 1800), ("  ", 1800), ("1", 1), (" 900\n", 900), ("31536000", 31536000)],
)
def test_seconds(value: str | None, seconds: int) -> None:
    assert recovery.seconds(value) == seconds


@pytest.mark.parametrize("value", ["0", "-5", "+5", "1.5", "1_000", "abc", "٣", "31536001", "9" * 5000])
def test_a_lease_that_is_no_positive_number_of_seconds_is_refused_with_the_variable_named(value: str) -> None:
    with pytest.raises(UsageError) as caught:
        recovery.seconds(value)

    not_one = "not a whole number of seconds from 1 to 31536000."
    assert caught.value.message == f"HARNESS_LEASE_SECONDS is {value[:40]!r}: {not_one}"
    assert caught.value.hint == "Unset it for 1800, or set it to a number such as 900."


@pytest.mark.parametrize(
    ("lease", "expired"),
    [
        pytest.param(None, False, id="no lease is never stale"),
        pytest.param(ago(1), True, id="past"),
        pytest.param(STAMP, True, id="this very second"),
        pytest.param("2025-07-01T10:00:01Z", False, id="a second left"),
        pytest.param("2025-07-01T11:59:59+02:00", True, id="another zone"),
    ],
)
def test_expired(lease: str | None, expired: bool) -> None:
    assert recovery.expired(MINE._replace(lease_expires_at=lease), NOW) is expired


def test_a_lease_just_taken_stands_for_exactly_its_length() -> None:
    assert recovery.end(NOW, 60) == "2025-07-01T10:01:00Z"
    assert recovery.end(NOW, None) is None
    assert recovery.end(NOW, recovery.LONGEST_SECONDS) == "2026-07-01T10:00:00Z"


def test_a_claim_is_mine_while_it_names_me() -> None:
    assert recovery.is_mine(MINE, "w")
    assert not recovery.is_mine(MINE, "w2")
    assert not recovery.is_mine(MINE._replace(status="pending"), "w")
    assert not recovery.is_mine(MINE._replace(claimed_by=None), "w")
    # A worker without a name holds nothing.
    assert not recovery.is_mine(MINE._replace(claimed_by=""), "")


def test_a_claim_is_the_same_while_neither_fence_nor_holder_has_changed() -> None:
    """Who follows the legacy protocol takes a task over without raising the fence."""
    assert recovery.is_same(MINE._replace(lease_expires_at=STAMP), MINE)
    assert not recovery.is_same(MINE._replace(fence=3), MINE)
    assert not recovery.is_same(MINE._replace(claimed_by="legacy"), MINE)
    assert not recovery.is_same(MINE._replace(status="failed"), MINE)
    assert not recovery.is_same(None, MINE)


def test_a_slot_works_in_the_session_that_it_is_named_after() -> None:
    assert recovery.works_for(recovery.worker_name("run-1", 2), "run-1")
    assert recovery.works_for("run-1", "run-1")
    assert not recovery.works_for("run-11", "run-1")
    assert not recovery.works_for("run-1", recovery.worker_name("run-1", 2))
    assert not recovery.works_for(None, "run-1")


# -- what an attempt must leave as it was at the claim


GATE = Gate("the hash of make test", "app")


@pytest.mark.parametrize(
    ("command", "cwd", "names"),
    [
        pytest.param("make test", "app", (), id="nothing"),
        pytest.param("true", "app", ("validation.command",), id="command"),
        pytest.param(None, "app", ("validation.command",), id="command gone"),
        pytest.param("make test", None, ("validation.cwd",), id="directory"),
        pytest.param("true", None, ("validation.command", "validation.cwd"), id="everything"),
    ],
)
def test_changed(command: str | None, cwd: str | None, names: tuple[str, ...]) -> None:
    assert attempts.changed(GATE, f"the hash of {command}", cwd) == names


# -- what may stand in a list as under way: what we write of a batch does, what nobody writes does not


BASE, ONTO, COMMIT = "1" * 40, "2" * 40, "3" * 40
MAIN = "refs/heads/main"
HERE, THERE = Gate(branch=MAIN), Gate(target=MAIN)
AT = "2026-01-01T00:00:00Z"


def _task(gate: Gate | None, intent: Intent | None) -> Task:
    return Task("t", status="in_progress", started_at_commit=BASE, gate=gate, intent=intent)


def _moving(gate: Gate, **fields: str | None) -> Task:
    return _task(gate, Intent("commit", AT, **{"commit": COMMIT, **fields}))  # type: ignore[arg-type]


def _rolling_back(gate: Gate | None = None, **fields: str | None) -> Task:
    return _task(gate, Intent("rollback", AT, head=ONTO, **fields))  # type: ignore[arg-type]


NO_PLACE = "intent does not say which commit goes where"
NO_BRANCH = "intent.ref is not the branch that the work is for"
NO_HEADS = "gate names a branch that is not below refs/heads/"
NO_RESCUE = "intent.rescue is not below refs/harness/rescue/"


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (_task(None, None), None),
        (_moving(HERE, base=BASE, head=ONTO), None),
        # Work that is moved with others names what it goes on top of and no head.
        (_moving(THERE, base=ONTO, ref=MAIN), None),
        (_moving(THERE, base=ONTO, ref=recovery.waiting(MAIN)), None),
        # In a list that machines share, a chat puts it on top of what others have proposed.
        (_moving(HERE, base=ONTO, head=BASE)._replace(machine="one"), None),
        (_rolling_back(base=BASE, rescue=f"{recovery.RESCUES}t/1"), None),
        # To what others have put on top, and in a list where the claim recorded no gate.
        (_rolling_back(base="4" * 64), None),
        (_rolling_back(Gate(branch=MAIN, target=MAIN), base=BASE), None),
        (_moving(THERE, base=ONTO, ref="refs/heads/other"), NO_BRANCH),
        (_moving(Gate(), base=BASE, head=ONTO, ref=MAIN), NO_BRANCH),
        (_rolling_back(base=BASE, ref=MAIN), NO_BRANCH),
        (_moving(THERE, base=BASE), NO_PLACE),
        (_moving(HERE, base=BASE), NO_PLACE),
        (_moving(HERE, base=BASE, head=ONTO, commit=None), NO_PLACE),
        (_moving(HERE, base=ONTO, head=BASE), "intent.base is not where the attempt began"),
        (_moving(HERE, base="main", head=ONTO), "intent.base is no full object id"),
        (_moving(HERE, base=BASE, head=f"{ONTO}\n"), "intent.head is no full object id"),
        (_moving(HERE, base=BASE, head=ONTO, commit="-x"), "intent.commit is no full object id"),
        (_rolling_back(base=BASE, rescue="refs/heads/main"), NO_RESCUE),
        (_moving(Gate(branch="main"), base=BASE, head=ONTO), NO_HEADS),
        (_rolling_back(Gate(target="-x"), base=BASE), NO_HEADS),
    ],
)
def test_what_no_write_of_ours_leaves_is_named_and_what_one_leaves_is_no_problem(
    task: Task, problem: str | None
) -> None:
    assert recovery.problem(task) == problem


def test_work_waits_on_a_branch_of_ours_that_is_named_after_its_target() -> None:
    assert recovery.waiting("refs/heads/main") == "refs/heads/harness/main"


# -- what to do with an interrupted attempt: the protocol's matrix, and every combination of facts


ANY = (False, True)
EVERY = [Facts(*combination) for combination in product(ANY, repeat=5)]


def _facts(letters: str, *, base_exists: bool = True) -> Facts:
    """Return the facts whose first letter stands in `letters`."""
    return Facts("u" in letters, "t" in letters, "c" in letters, "r" in letters, base_exists)


@pytest.mark.parametrize(
    ("letters", "action", "reason"),
    [
        pytest.param("", "fail", "No progress detected", id="nothing"),
        pytest.param("r", "fail", "No progress detected", id="nothing, and no checkpoint to reflect"),
        pytest.param("cr", "resume", "files reflect checkpoint progress", id="checkpoints that hold"),
        pytest.param(
            "c", "fail", "files do not reflect the checkpoints: work was lost", id="checkpoints, work lost"
        ),
        pytest.param("t", "validate", "task commits found", id="commits"),
        pytest.param("tc", "validate", "task commits found", id="commits and checkpoints"),
        pytest.param("u", "validate", "uncommitted changes found", id="changes"),
        pytest.param("uc", "validate", "uncommitted changes found", id="changes and checkpoints"),
        pytest.param("ut", "validate", "uncommitted changes and task commits found", id="both"),
    ],
)
def test_the_five_rows_of_the_seed(letters: str, action: str, reason: str) -> None:
    """Without its base a failed attempt is the last; it keeps none from going on."""
    plan = recovery.plan(_facts(letters))
    without = recovery.plan(_facts(letters, base_exists=False))

    assert (plan.action, plan.reason, plan.ending) == (action, reason, Ending.FAILED)
    assert plan.category == ("SESSION_TIMEOUT" if action == "fail" else None)
    lost = plan._replace(reason=f"{reason}; base commit is gone", ending=Ending.FAILED_FOR_GOOD)
    assert without == (lost if action == "fail" else plan)


# As the log of the protocol has them.
WORDS = {
    *("mark failed", "resume from last step", "run validation"),
    *("run validation with uncommitted changes", "run validation with everything"),
}


def test_every_combination_of_facts_has_a_plan_and_work_that_stands_is_validated() -> None:
    for facts in EVERY:
        plan = recovery.plan(facts)
        assert plan.words in WORDS
        assert (plan.action == "validate") == (facts.uncommitted or facts.task_commits)


STOOD, OTHER = "7" * 40, "8" * 40


def _stood(times: int, *, tree: str = STOOD, checkpoints: int = 1) -> Task:
    """Return a task that was interrupted so often in a row with this tree and as many checkpoints."""
    points = (Checkpoint(1, 2),)
    return Task("a", checkpoints=points, interrupted=Interruption(tree, checkpoints, times))


@pytest.mark.parametrize(
    ("before", "times"),
    [
        pytest.param(Task("a", checkpoints=(Checkpoint(1, 2),)), 1, id="the first"),
        pytest.param(_stood(1), 2, id="where it stood before"),
        pytest.param(_stood(2), 3, id="where it stood twice before"),
        pytest.param(_stood(2, tree=OTHER), 1, id="the tree has changed"),
        pytest.param(_stood(2, checkpoints=0), 1, id="a checkpoint more"),
    ],
)
def test_only_interruptions_without_any_progress_are_counted_in_a_row(before: Task, times: int) -> None:
    after = recovery.interrupted(before, STOOD)

    assert after == Interruption(STOOD, 1, times)
    assert recovery.stands_still(after) == (times == 3)


ME = "w1"


@pytest.mark.parametrize(
    ("concurrent", "claimed_by", "lease", "live", "recovers"),
    [
        pytest.param(False, "w2", None, False, True, id="exclusive: whosever it was"),
        pytest.param(False, None, None, False, True, id="exclusive: made by the legacy protocol"),
        pytest.param(False, ME, None, True, False, id="exclusive: its owner lives"),
        pytest.param(False, "w2", ago(9), True, False, id="exclusive: age does not decide"),
        pytest.param(True, ME, ago(-9), False, True, id="concurrent: my own"),
        pytest.param(True, ME, ago(-9), True, False, id="concurrent: I am still at it"),
        pytest.param(True, "w2", ago(-9), False, False, id="concurrent: another's"),
        pytest.param(True, "w2", ago(9), False, True, id="concurrent: another's, lease ended"),
        pytest.param(True, "w2", ago(9), True, True, id="concurrent: hangs"),
        pytest.param(True, "w2", None, False, False, id="concurrent: another's without a lease"),
        pytest.param(True, None, None, False, False, id="concurrent: nobody's is not mine"),
    ],
)
def test_recoverable(
    concurrent: bool, claimed_by: str | None, lease: str | None, live: bool, recovers: bool
) -> None:
    """Only what is in progress is recovered."""
    for status in STATUSES:
        task = Task("a", status=status, claimed_by=claimed_by, lease_expires_at=lease)
        recoverable = recovery.recoverable(
            task, concurrent=concurrent, worker=ME, now=NOW, live_owner_holds=live
        )
        assert recoverable is (recovers and status == "in_progress")


# -- whose notes a task is told, and in which order


EARLY, LATE = "2025-07-01T10:00:00Z", "2025-07-02T10:00:00Z"


def _done(name: str, at: str | None, *said: str) -> Task:
    return Task(name, status="completed", completed_at=at, notes=said)


def test_first_its_own_then_of_what_it_needs_then_of_what_was_done_last() -> None:
    tasks = [
        _done("never", None, "x"),
        _done("early", EARLY, "x"),
        _done("late", LATE, "x"),
        _done("needed-early", EARLY, "x"),
        _done("needed-late", LATE, "x"),
        Task("mine", depends_on=("needed-early", "needed-late"), notes=("x",)),
    ]

    order = [task.id for task in attempts.concerning(iter(tasks), "mine")]

    assert order == ["mine", "needed-late", "needed-early", "late", "early", "never"]


def test_who_has_none_and_who_is_not_done_tells_nothing() -> None:
    tasks = [_done("silent", LATE), Task("open", notes=("x",)), _done("done", EARLY, "x"), Task("mine")]

    assert attempts.concerning(tasks, "mine") == [tasks[2]]
    assert attempts.concerning(tasks, "nobody") == [tasks[2]]
