"""What is true whenever a worker has died while merging: its work is there once, or waits, or is rescued."""

from __future__ import annotations

from harness_lib.system.git import worktrees
from tests.crash import contents, invariants
from tests.crash.merging import BESIDE, OWN, RUN, TARGET, WAITING, Merging
from tests.crash.merging_scenarios import Scenario
from tests.crash.world import TASK

SUBJECT = "[task-001] The first"
RESOLVED = b"# Project\nedited\nedited by another\n"


def it_ended_well(scenario: Scenario, world: Merging, *, at_the_end: bool) -> None:
    task = invariants.the_task(world)
    _checkout_is_as_committed(world)
    if task.status == "completed":
        alone = scenario.conflicts and not scenario.beside
        assert at_the_end or not alone, "completed, though it conflicts"
        waits = scenario.waits or (not at_the_end and WAITING in _heads(world))
        _it_is_there_once(scenario, world, WAITING if waits else TARGET)
    else:
        assert not at_the_end, f"{TASK} is {task.status}: {task.error_log}"
        assert task.status in {"pending", "failed"}, task
        assert task.attempts == (task.status == "failed"), task
        assert OWN not in subjects_of(world, TARGET), "not completed, but merged"
        _it_is_rescued(world)
    if scenario.beside:
        _beside_has_arrived(world, at_the_end=at_the_end)
    if at_the_end:
        assert [each.path for each in worktrees.listed(world.context(RUN).git)] == [world.project]
        assert not world.worktree().parent.exists(), "a place of a dead run is left"
        assert not [ref for ref in _heads(world) if ref == WAITING] or scenario.waits


def _heads(world: Merging) -> list[str]:
    return world.git("for-each-ref", "--format=%(refname)", "refs/heads").split()


def subjects_of(world: Merging, ref: str) -> list[str]:
    return world.git("log", "--format=%s", ref).splitlines()


def _it_is_there_once(scenario: Scenario, world: Merging, ref: str) -> None:
    """Find the work on the branch, by one commit of ours and what the agent itself has committed."""
    subjects = subjects_of(world, ref)
    assert subjects.count(SUBJECT) == 1, subjects
    task = invariants.the_task(world)
    assert task.completed_commit
    merged = world.git("rev-list", ref).split()
    assert task.completed_commit in merged, "it is completed by a commit that is not on the branch"
    held = invariants.blobs(world, ref)
    readmes: set[bytes | None] = {RESOLVED} if scenario.conflicts else {contents.MADE["README.md"]}
    if scenario.beside:
        readmes.add(contents.MADE["README.md"])
    assert held["README.md"] in readmes, held["README.md"]
    for name, content in {**contents.MADE, **scenario.others, "README.md": held["README.md"]}.items():
        assert held.get(name) == content, f"{name!r} holds {held.get(name)!r} on {ref}"
    if not scenario.conflicts:
        assert subjects.count(OWN) == 1, subjects


def _beside_has_arrived(world: Merging, *, at_the_end: bool) -> None:
    """Find the work of both on one branch; who clashed with the other goes back, for nothing."""
    ours = WAITING if WAITING in _heads(world) else TARGET
    assert not world.git("rev-list", f"{ours}..{TARGET}"), f"{TARGET} and {ours} have parted"
    both = [invariants.the_task(world), invariants.state_of(world).find(BESIDE)]
    done = [task for task in both if task and task.status == "completed"]
    assert len(done) == 2 or (done and not at_the_end), both
    for task in done:
        assert task.completed_commit in world.git("rev-list", ours).split(), f"{task.id} is not there"


def _checkout_is_as_committed(world: Merging) -> None:
    """Find in the user's checkout what its branch has, and their own files as they were."""
    status = world.git("status", "--porcelain", "-z", "--untracked-files=all").split("\0")
    assert sorted(filter(None, status)) == sorted(f"?? {name}" for name in contents.BEFORE), status
    invariants.holds(world, {**contents.BEFORE, **contents.IGNORED})
    assert not world.git("diff", "HEAD", "--stat")


def _it_is_rescued(world: Merging) -> None:
    refs = world.git("for-each-ref", "--format=%(objectname)", invariants.RESCUE).split()
    held = [invariants.blobs(world, commit) for commit in refs]
    for name, content in contents.MADE.items():
        assert any(tree.get(name) == content for tree in held), f"{name!r} is not rescued"
