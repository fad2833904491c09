"""How long a claim stands when its worker is silent."""

from __future__ import annotations

import pytest

from harness_lib.errors import UsageError
from harness_lib.rules import leases
from harness_lib.task import Task
from tests.rules.lists import NOW, STAMP, ago


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, 1800), ("", 1800), ("  ", 1800), ("1", 1), (" 900\n", 900), ("31536000", 31536000)],
)
def test_seconds(value: str | None, seconds: int) -> None:
    assert leases.seconds(value) == seconds


@pytest.mark.parametrize("value", ["0", "-5", "+5", "1.5", "1_000", "abc", "٣", "31536001", "9" * 5000])
def test_a_lease_that_is_no_positive_number_of_seconds_is_refused_with_the_variable_named(value: str) -> None:
    with pytest.raises(UsageError, match="HARNESS_LEASE_SECONDS") as caught:
        leases.seconds(value)

    assert caught.value.hint
    assert len(caught.value.message) < 200


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
    assert leases.expired(Task("a", status="in_progress", lease_expires_at=lease), NOW) is expired


def test_a_lease_just_taken_stands_for_exactly_its_length() -> None:
    assert leases.expires(NOW, 60) == "2025-07-01T10:01:00Z"
    assert leases.end(NOW, None) is None
    assert leases.expires(NOW, leases.LONGEST_SECONDS) == "2026-07-01T10:00:00Z"


@pytest.mark.parametrize(
    ("task", "mine"),
    [
        pytest.param(Task("a", status="in_progress", claimed_by="w1"), True, id="mine"),
        pytest.param(Task("a", status="in_progress", claimed_by="w2"), False, id="another's"),
        pytest.param(Task("a", status="in_progress"), False, id="nobody's is not mine"),
        pytest.param(Task("a", claimed_by="w1"), False, id="not in progress"),
    ],
)
def test_is_mine(task: Task, mine: bool) -> None:
    assert leases.is_mine(task, "w1") is mine


def test_a_claim_is_the_same_while_neither_fence_nor_holder_has_changed() -> None:
    """Who follows the prose takes a task over without raising the fence."""
    mine = Task("a", status="in_progress", claimed_by="w", fence=2)

    assert leases.is_same(mine._replace(lease_expires_at=STAMP), mine)
    assert not leases.is_same(mine._replace(fence=3), mine)
    assert not leases.is_same(mine._replace(claimed_by="prose"), mine)
    assert not leases.is_same(mine._replace(status="failed"), mine)
    assert not leases.is_same(None, mine)


def test_a_worker_without_a_name_holds_nothing() -> None:
    assert not leases.is_mine(Task("a", status="in_progress", claimed_by=""), "")


def test_a_slot_works_in_the_session_that_it_is_named_after() -> None:
    assert leases.works_for(leases.slot("run-1", 2), "run-1")
    assert leases.works_for("run-1", "run-1")
    assert not leases.works_for("run-11", "run-1")
    assert not leases.works_for("run-1", leases.slot("run-1", 2))
    assert not leases.works_for(None, "run-1")
