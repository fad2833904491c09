"""What an earlier harness has written of a check fits that check still: gates, trust, proofs."""

from __future__ import annotations

import hashlib

import pytest

from harness_lib.checks import ShellCheck, check_of, held_out
from harness_lib.core import trust
from harness_lib.state import codec
from harness_lib.state.api import TaskCommands
from harness_lib.task import HeldOut, OnFailure, State, Task, Validation

CHECKS = (
    Validation("make test", cwd="app"),
    Validation("make test"),
    Validation(None, cwd="app"),
    Validation(),
    Validation(""),
)
TASKS = [
    Task(
        f"task-00{number}",
        "t",
        status="completed",
        validation=check,
        completed_commit="c" * 40,
        on_failure=OnFailure(cleanup="rm -f x" if number == 1 else None),
    )
    for number, check in enumerate(CHECKS, 1)
]
# Each written by the harness of before there was more than one way to ask for a check.
GATES = (
    "sha256:ffd07911d6f9a60f0c9be7f90de5c3f53ab5bb4f16f4c14b740f444cfa182359",
    "sha256:7ac431333efc3a52e33765e3e0b2d4d942c781ed8c8af64cf8c8e86d282f6e48",
    "sha256:0e9261c30b7c52ca544ae9b933d6e8edbe73981e104646de1871f66ca3f3a8a7",
    "sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
)
PROOFS = (
    "sha256:9d74fa7389964d0c91919c9a91f24f7302cc476e5c6ccb3af1785101bbd1d37b",
    "sha256:895ceafe12a57e97fbd9c03cc70540343ae7be0e586461092679be21362d8491",
    "sha256:f5185641fd01947340668b0e7e04706463fa4038e95e6442409dae62c5b2e9de",
    "sha256:b53cadfec1a1663d4d54cc61bffba36bc41d581b441d7de0684e6f829755e75e",
    "sha256:8a249c5286147c1cd32303fbcc8cdcedda2f42c762891b85901d2a59b9db7af9",
)
TRUSTED = "63bf46de6c9a146f7b82d28c73109e009251877b925c3719e01099fc90e4a946"


@pytest.mark.parametrize(("task", "recorded"), list(zip(TASKS, GATES, strict=True)))
def test_a_gate_on_disk_fits_the_check_that_it_was_made_of(task: Task, recorded: str) -> None:
    assert check_of(task).fingerprint() == recorded


@pytest.mark.parametrize(("task", "recorded"), list(zip(TASKS, PROOFS, strict=True)))
def test_a_proof_on_disk_fits_its_task(task: Task, recorded: str) -> None:
    state = State(tasks=(task._replace(proof=recorded),), proofs=True)

    assert not any(task.unproven for task in codec.examined(state).tasks)


def test_a_note_of_trust_on_disk_covers_the_commands_that_it_was_made_for() -> None:
    commands = [row for task in TASKS for row in TaskCommands.of(task)]

    assert trust.Runs(commands, None).fingerprint == TRUSTED


def test_a_hash_is_of_every_part_of_a_check_and_understood_by_every_later_version() -> None:
    """Command and directory cannot be shifted into one another; any text will do that JSON can carry."""
    parts = {(command, cwd) for command in ("a", "b", "ab", None, "\udc80 é") for cwd in ("a", "b", None)}

    assert len({_hash(*each) for each in parts}) == len(parts)
    for command, cwd in parts:
        data = f"{command or ''}\0{cwd or ''}".encode("utf-8", "surrogatepass")
        assert _hash(command, cwd) == "sha256:" + hashlib.sha256(data).hexdigest()


def test_who_may_read_of_a_held_out_check_is_a_part_of_it() -> None:
    digest = "0" * 64
    tasks = [
        Task("a", validation=Validation("", hidden=HeldOut(digest), hidden_names=n)) for n in (False, True)
    ]

    assert [held_out(task) for task in tasks] == [digest, f"{digest} with names"]
    assert not check_of(Task("a", validation=Validation(" \n"))).is_given, "and blanks alone are no check"


def _hash(command: str | None, cwd: str | None) -> str:
    return ShellCheck("task-001", command, cwd, 60).fingerprint()
