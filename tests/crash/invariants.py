"""What must be true after any death and its recovery; each function is one promise."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

from harness_lib.state import codec, schema
from harness_lib.system.processes import process
from harness_lib.task import State, Task
from tests.crash import contents
from tests.crash.world import TASK, World
from tests.verbs.project import LINE

YOUNG_SECONDS = 3600
TRACE = "touched-by-check.txt"
RESCUE = "refs/harness/rescue/"
BEFORE = "refs/harness/before/"


def state_of(world: World) -> State:
    """Return the list, which is JSON and keeps the contract by schema and by codec."""
    document: Any = json.loads(world.path("harness-tasks.json").read_bytes())
    problems = schema.problems(document)
    assert not problems, f"the list breaks its schema: {problems}"
    return codec.decode(document)


def the_task(world: World) -> Task:
    task = state_of(world).find(TASK)
    assert task is not None, f"{TASK} is gone from the list"
    return task


# -- always -------------------------------------------------------------------------------------------------


def nothing_is_under_way(world: World) -> None:
    """No intent is left, and what is in progress belongs to a session that is open."""
    state = state_of(world)
    workers = {session.worker for session in state.sessions or ()}
    for task in state.tasks:
        assert task.intent is None, f"{task.id}: an intent is left: {task.intent}"
        if task.status == "in_progress":
            assert task.claimed_by in workers, f"{task.id} is in progress for nobody"


def harness_files_survived(world: World) -> None:
    """List, backup and log stand, and git sees none of them."""
    for name in ("harness-tasks.json", "harness-tasks.json.bak", "harness-progress.txt"):
        assert world.path(name).is_file(), f"{name} is gone"
    seen = world.git("status", "--porcelain", "--untracked-files=all")
    assert "harness" not in seen, f"git sees files of ours: {seen}"


def persons_things_are_untouched(world: World) -> None:
    """Stash, tags, other branches, configuration and HEAD are what they were."""
    facts = world.facts()
    changed = {key: (was, facts[key]) for key, was in world.lasting.items() if facts[key] != was}
    assert not changed, f"not ours to change: {changed}"
    stash = world.git("show", "stash@{0}:README.md")
    assert stash == "set aside\n", f"the stash holds {stash!r}"


def log_is_whole(world: World, *, torn: bool) -> None:
    """Every line of the log keeps the grammar, but for one if a death in the write has `torn` it."""
    text = world.path("harness-progress.txt").read_text()
    assert torn or text.endswith("\n"), f"the log ends in {text[-80:]!r}"
    broken = [line for line in text.splitlines() if not LINE.match(line)]
    assert len(broken) <= torn, f"lines that are none: {broken}"


def no_git_lock_is_left(world: World) -> None:
    """Git can work here."""
    git_dir = world.place.git_dir
    locks = [
        *git_dir.glob("*.lock"),
        *(git_dir / "refs").rglob("*.lock"),
        *git_dir.glob("worktrees/*/*.lock"),
    ]
    locks = [lock for lock in locks if not lock.name.startswith("harness-")]
    assert not locks, f"git locks are left: {locks}"


def nothing_old_is_left(world: World) -> None:
    """No old temporary file, no lock directory put aside, no copy of untracked files that no task needs."""
    git_dir, private = world.place.git_dir, world.path(".harness")
    leftovers = [*world.project.glob(".*.tmp"), *private.rglob(".*.tmp"), *git_dir.glob(".*.tmp")]
    leftovers += git_dir.glob("worktrees/*/.*.tmp")
    limit = time.time() - YOUNG_SECONDS
    old = [path for path in leftovers if path.lstat().st_mtime < limit]
    assert not old, f"temporary files of the dead are left: {old}"
    needed = {task.gate.before for task in state_of(world).tasks if task.gate}
    kept = world.git("for-each-ref", "--format=%(objectname)", BEFORE).split()
    assert set(kept) <= needed, f"copies of untracked files are kept for nobody: {kept}"
    aside = [path for path in world.seed_locks() if path != world.place.seed_lock]
    assert not aside, f"lock directories that were put aside are left: {aside}"


def hooks_are_on_in_a_session(world: World) -> None:
    """Nobody works without the enable flag, or the hooks would let go of the agent."""
    assert not state_of(world).sessions or world.path(".harness-active").exists(), (
        "the enable flag is missing"
    )


def no_bug_was_reported(world: World) -> None:
    """Recovery never ends in a traceback."""
    reports = list(world.path(".harness").glob("bug-*.txt"))
    assert not reports, reports[0].read_text()


def lock_directory_names_the_living(world: World) -> None:
    """No dead process has the legacy lock directory; in a shared list the next change removes it."""
    if not world.is_shared and world.place.seed_lock.exists():
        pid = int((world.place.seed_lock / "pid").read_text(encoding="ascii"))
        assert process.alive(pid), f"the lock directory stands for {pid}, who is dead"


ALWAYS: tuple[Callable[[World], None], ...] = (
    nothing_is_under_way,
    harness_files_survived,
    persons_things_are_untouched,
    hooks_are_on_in_a_session,
    no_bug_was_reported,
    lock_directory_names_the_living,
)
AFTER_A_START = (no_git_lock_is_left, nothing_old_is_left)


def check_always(world: World, *, torn: bool, started: bool) -> None:
    """Keep what holds whoever survives; `started`: a session has been opened since."""
    for promise in (*ALWAYS, *(AFTER_A_START if started else ())):
        promise(world)
    log_is_whole(world, torn=torn)


# -- completed ----------------------------------------------------------------------------------------------


def completed(world: World, *, attempts: int = 0) -> None:
    """Find the work committed, once, where the check passes; only `attempts` earlier ones are counted."""
    task = the_task(world)
    assert task.status == "completed", f"{TASK} is {task.status}: {task.error_log}"
    assert task.attempts == attempts, f"{task.attempts} attempts counted, not {attempts}"
    assert len(task.error_log) == attempts, task.error_log
    assert task.completed_at, "it is completed at no time"
    commit = task.completed_commit
    assert commit, "it is completed by no commit"
    assert commit == world.git("rev-parse", f"refs/heads/{world.branch}").strip(), "the branch is elsewhere"
    made = world.git("rev-list", f"{world.base}..{commit}").split()
    assert set(world.own_commits) < set(made), "the attempt's own commits are gone"
    assert len(made) == len(world.own_commits) + 1, f"committed more than once: {made}"
    _commit_holds_the_work(world, commit)
    _work_tree_is_as_committed(world)
    _check_passes_at(world, commit)


def _commit_holds_the_work(world: World, commit: str) -> None:
    held = blobs(world, commit)
    # Died before it was recorded that the check had passed: nobody can tell its traces from the work.
    checked = held.pop(TRACE)
    assert checked in {contents.TRACKED[TRACE] + b"checked\n" * times for times in (0, 1)}, checked
    for name, content in {**contents.TRACKED, **contents.MADE}.items():
        if name != TRACE:
            assert held.pop(name, None) == content, f"{name!r} is not committed as the attempt left it"
    assert not held, f"committed, but not the attempt's: {sorted(held)}"


def only_those_of_before_are_changes(world: World) -> None:
    """Git sees the user's untracked files there, and no other difference."""
    status = world.git("status", "--porcelain", "-z", "--untracked-files=all").split("\0")
    assert sorted(filter(None, status)) == sorted(f"?? {name}" for name in contents.BEFORE), status


def _work_tree_is_as_committed(world: World) -> None:
    only_those_of_before_are_changes(world)
    holds(world, {**contents.BEFORE, **contents.CHANGED_BEFORE, **contents.CHANGED_IGNORED})


def _check_passes_at(world: World, commit: str) -> None:
    checkout = world.project.parent / "checked-out"
    checkout.mkdir(exist_ok=True)
    index = {"GIT_INDEX_FILE": str(world.project.parent / "checked-out-index")}
    world.git("read-tree", commit, env=index)
    world.git("checkout-index", "--all", "--force", f"--prefix={checkout}/", env=index)
    assert subprocess.run(["sh", "-c", contents.PASSES], cwd=checkout, check=False).returncode == 0


# -- interrupted ----


def goes_on(world: World) -> None:
    """Find the attempt going on with all of its work in place; no attempt is counted."""
    task = the_task(world)
    assert task.status == "in_progress", f"{TASK} is {task.status}: {task.error_log}"
    assert (task.attempts, task.error_log) == (0, ()), task
    assert task.interruptions <= 2, task.interruptions
    assert world.git("rev-list", f"{world.base}..HEAD").split() == world.own_commits
    made = {**contents.MADE, **contents.CHANGED_BEFORE}
    # A finish that died while its check ran has left the traces of that.
    assert world.path(TRACE).read_bytes() in {contents.TRACKED[TRACE] + b"checked\n" * n for n in (0, 1)}
    holds(world, {name: content for name, content in made.items() if content is not None})
    gone = [name for name, content in made.items() if content is None and world.path(name).exists()]
    assert not gone, f"deleted by the attempt, and here again: {gone}"


# -- rolled back --------------------------------------------------------------------------------------------


def rolled_back(world: World, *, status: str = "failed", attempts: int = 1) -> None:
    """All is as it was before the attempt, `attempts` are counted, and a rescue ref has what was made."""
    task = the_task(world)
    assert task.status == status, f"{TASK} is {task.status}, not {status}"
    assert task.attempts == attempts, f"{task.attempts} attempts counted, not {attempts}"
    assert len(task.error_log) == attempts, task.error_log
    assert task.claimed_by is None, f"{task.claimed_by} still has it"
    tree_is_as_before(world)
    everything_is_rescued(world)


def tree_is_as_before(world: World) -> None:
    """HEAD, branch, index and files are those of the claim; ignored files were left alone."""
    for ref in ("HEAD", f"refs/heads/{world.branch}"):
        assert world.git("rev-parse", ref).strip() == world.base, f"{ref} is not at the base"
    only_those_of_before_are_changes(world)
    holds(world, {**contents.TRACKED, **contents.BEFORE, **contents.CHANGED_IGNORED})
    assert not world.path("src/run.sh").stat().st_mode & 0o111, "an executable bit is left"
    assert not world.path("new dir").exists(), "a directory that the attempt made is left"


def everything_is_rescued(world: World) -> None:
    """Every byte that the attempt made can be reached from a rescue ref, and so can its own commits."""
    refs = world.git("for-each-ref", "--format=%(objectname)", RESCUE).split()
    assert refs, "nothing was rescued"
    reachable = set(world.git("rev-list", *refs).split())
    assert set(world.own_commits) <= reachable, "the attempt's own commits are not rescued"
    are_rescued(world, {**contents.MADE, **contents.CHANGED_BEFORE})


def are_rescued(world: World, files: Mapping[str, bytes | None]) -> None:
    """Find a rescue ref with each of `files`, and one without each that was deleted (None)."""
    refs = world.git("for-each-ref", "--format=%(objectname)", RESCUE).split()
    held = [blobs(world, commit) for commit in refs]
    for name, content in files.items():
        assert any(tree.get(name) == content for tree in held), f"{name!r} is not rescued"


def blobs(world: World, commit: str) -> dict[str, bytes]:
    """Return path → content of everything in `commit`."""
    listing = world.git("ls-tree", "-r", "-z", commit).split("\0")[:-1]
    rows = [(record.partition("\t")[2], record.split()[2]) for record in listing]
    ask = "".join(f"{oid}\n" for _, oid in rows).encode()
    command = ["git", "cat-file", "--batch"]
    output = subprocess.run(command, cwd=world.project, input=ask, capture_output=True, check=True).stdout
    contents = {}
    for name, _ in rows:
        line, _, output = output.partition(b"\n")
        size = int(line.split()[2])
        contents[name], output = output[:size], output[size + 1 :]
    return contents


def holds(world: World, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = world.path(name)
        assert path.is_file(), f"{name!r} is gone"
        assert path.read_bytes() == content, f"{name!r} holds {path.read_bytes()!r}, not {content!r}"


# -- the end of all -----------------------------------------------------------------------------------------


def all_done(world: World) -> None:
    """Every task is completed, no session is open, the enable flag and the lock directory are gone."""
    state = state_of(world)
    assert [task.status for task in state.tasks] == ["completed"] * len(state.tasks), state.tasks
    assert not state.sessions, f"sessions are open: {state.sessions}"
    assert not world.path(".harness-active").exists(), "the enable flag is left"
    assert not world.place.seed_lock.exists(), "the lock directory is left"
    scratch = [*world.place.git_dir.rglob("harness-scratch-*")]
    assert not scratch, f"scratch directories of the dead are left: {scratch}"
    for name in (*contents.BEFORE, *contents.IGNORED):
        assert world.path(name).is_file(), f"{name!r} was lost"
