"""The list that the agents of these tests work on, and the work that is in it."""

from __future__ import annotations

from tests.hosts.agents import Work
from tests.hosts.machine import Machine

# Task id -> what is typed at each attempt; the second task is done wrong at first.
WORK: Work = {
    "task-001": ["echo one > one"],
    "task-002": ["echo wrong > two", "cp one two"],
    "task-003": ["touch three"],
}


def three_tasks(machine: Machine) -> None:
    """Make a list in which each task waits for the one before."""
    machine.add("Make one", "--validate", "test -f one")
    machine.add("Make two", "--validate", "cmp one two", "--depends-on", "task-001")
    machine.add("Make three", "--validate", "test -f three", "--depends-on", "task-002")


def one_task(machine: Machine) -> None:
    """Make a list with the first of these tasks."""
    machine.add("Make one", "--validate", "test -f one")


def assert_all_done(machine: Machine) -> None:
    """Fail unless every task was completed by a commit of its own, the second one at its second attempt."""
    assert machine.statuses == ["completed"] * 3, machine.log
    assert "ERROR [task-002] [TEST_FAIL]" in machine.log
    assert machine.subjects[:3] == ["[task-003] Make three", "[task-002] Make two", "[task-001] Make one"]
    assert not machine.enable_flag.exists()
