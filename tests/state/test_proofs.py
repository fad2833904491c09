"""Which completed tasks are believed, and what is made of the others."""

from __future__ import annotations

import pytest

from harness_lib.state import codec, reading
from harness_lib.task import Gate, Intent, State, Task, Validation

EMPTY = State(sessions=(), proofs=True)
DONE = Task("a", status="completed", completed_commit="c0ffee", fence=1, validation=Validation("true"))


def proven(task: Task) -> Task:
    """Return `task` as we write it."""
    return codec.sealed(EMPTY._replace(tasks=(task,)), EMPTY).tasks[0]


def read(task: Task, *, proofs_kept: bool = True) -> Task:
    """Return `task` as it is read from a file that somebody else may have written."""
    return codec.examined(State(sessions=(), proofs=proofs_kept, tasks=(task,))).tasks[0]


@pytest.mark.parametrize(
    "change",
    [{}, {"title": "Another"}, {"priority": "P0"}, {"notes": ("x",)}, {"validation": Validation("true", 5)}],
    ids=lambda change: next(iter(change), "none"),
)
def test_what_we_wrote_is_believed_and_all_but_the_check_may_change(change: dict[str, object]) -> None:
    written = proven(DONE)

    assert read(written) == written
    assert read(written._replace(**change)).is_done  # type: ignore[arg-type]
    # One that is tried again has no proof.
    assert proven(written._replace(status="pending")).proof is None


def test_ids_and_commands_may_hold_anything() -> None:
    odd = DONE._replace(id="ä", validation=Validation("printf '\U0001f600'"))
    document = reading.encode(EMPTY._replace(tasks=(proven(odd),)))

    assert codec.examined(codec.decode(document)).tasks[0].is_done


def test_a_list_without_proofs_is_believed_and_proven_with_our_next_change_and_then_no_task_again() -> None:
    """A change of one task among thousands must not cost what they all cost."""
    assert read(DONE, proofs_kept=False).is_done
    older = State(sessions=(), tasks=(DONE,))

    written = codec.sealed(older._replace(session_count=1), older)

    assert written.proofs
    assert read(written.tasks[0]).is_done
    assert codec.sealed(written._replace(session_count=2), written).tasks[0] is written.tasks[0]
    # A list of the legacy protocol gets none.
    legacy = State(tasks=(DONE,))
    assert codec.sealed(legacy, State()) is legacy


def test_a_proof_is_no_sign_that_somebody_else_may_have_been_here() -> None:
    done, forged = proven(DONE), Task("b", status="completed")
    state = codec.examined(State(proofs=True, tasks=(done, forged, Task("c"))))

    assert [task for task in state.tasks if task.unproven] == [forged._replace(unproven=True)]
    assert state.tasks[0] is done
    assert state.tasks[2] == Task("c")


def test_a_task_in_progress_that_is_marked_stays_so() -> None:
    marked = Task("a", status="in_progress", unproven=True)

    assert read(marked) is marked
    # One that is open again is as good as any.
    assert read(marked._replace(status="pending")) == Task("a")


@pytest.mark.parametrize(
    "change",
    [
        {"proof": None},
        {"id": "b"},
        {"fence": 2},
        {"completed_commit": "decade"},
        {"validation": Validation("false")},
        {"validation": Validation("true", cwd="sub")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_proof_fits_its_task_check_attempt_and_commit_alone(change: dict[str, object]) -> None:
    forged = read(proven(DONE)._replace(**change))  # type: ignore[arg-type]

    assert (forged.status, forged.unproven, forged.is_done) == ("completed", True, False)


def test_what_is_unproven_stays_so_when_we_write_and_until_it_is_right_again() -> None:
    forged = read(DONE._replace(proof="sha256:made up"))

    assert proven(forged) is forged
    assert read(forged).unproven
    assert read(proven(DONE)._replace(unproven=True)).is_done


def test_a_task_under_a_claim_of_ours_stays_in_progress() -> None:
    claimed = Task("a", status="in_progress", claimed_by="me", gate=Gate(), fence=2)

    kept = read(
        claimed._replace(status="completed", completed_at="2025-07-01T10:00:00Z", completed_commit="c")
    )

    assert kept == claimed._replace(unproven=True)
    assert read(kept) == kept
    assert read(claimed._replace(status="completed", proof="sha256:made up")) == kept
    # A claim of the legacy protocol has no gate.
    assert read(Task("a", status="completed", claimed_by="legacy")).status == "completed"


def test_an_attempt_that_is_being_rolled_back_is_over() -> None:
    begun = Task("a", status="in_progress", claimed_by="me", gate=Gate(), intent=Intent("rollback", "x"))

    assert read(begun._replace(status="completed")) == begun._replace(status="completed", unproven=True)
    begun = begun._replace(intent=Intent("merge", "x"))
    assert read(begun._replace(status="completed")) == begun._replace(unproven=True)
