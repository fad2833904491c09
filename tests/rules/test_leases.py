"""How long a claim stands when its worker is silent, and whose it is."""

from __future__ import annotations

import pytest

from harness_lib.errors import UsageError
from harness_lib.rules import recovery
from harness_lib.task import Task
from tests.rules.lists import NOW, STAMP, ago

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
    assert recovery.expires(NOW, 60) == "2025-07-01T10:01:00Z"
    assert recovery.end(NOW, None) is None
    assert recovery.expires(NOW, recovery.LONGEST_SECONDS) == "2026-07-01T10:00:00Z"


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
