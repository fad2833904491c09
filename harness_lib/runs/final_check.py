"""Run every check once more when the list is done; what is broken then becomes a new task.

A later task may break what an earlier one had finished: its own check does not look there.
What another worker has finished on a branch of its own is not broken, only not here. And what is broken still
after its repair cannot be repaired by an agent: mostly it needs a file that git does not keep.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from harness_lib import sha256
from harness_lib.attempts import check, target_branch, worktree_slots
from harness_lib.checks import check_of
from harness_lib.checks.checked import Checked
from harness_lib.core import add_tasks, quoting, sessions
from harness_lib.core.context import Context
from harness_lib.runs import open_session
from harness_lib.state.api import Questions
from harness_lib.system.files import atomic
from harness_lib.system.git import worktrees
from harness_lib.task import Task
from harness_lib.text import some

# Workers count from 1.
NUMBER = 0
TITLE = "Repair what a later task broke: "
# Below `.harness/`: which commit has passed which checks.
PASSED = "final.json"
NAMED = 5

Key = tuple[str | None, str | None]


@dataclass(frozen=True)
class Passed:
    """What came of it: the commit that was looked at, and what is broken though it was repaired before.

    `goes_on`: new tasks are to be done. `tip` is None if a person has ended it before its end.
    """

    tip: str | None = None
    goes_on: bool = False
    broken: tuple[Task, ...] = ()

    def message(self) -> str:
        """Return what is to be said of what is broken."""
        names = some([task.id for task in self.broken], NAMED)
        return (
            f"On the final tree the checks of {names} fail, and their repair did not help: it passed "
            "only in its agent's work tree. Does a check need a file that git ignores?"
        )


def is_due(ctx: Context) -> bool:
    """Return whether there is a finished task whose check has not passed on the target as it is now."""
    assert ctx.target is not None
    questions = ctx.store.ask()
    if not any(map(_has_check, questions.search("completed"))):
        return False
    try:
        known = json.loads((ctx.root.private / PASSED).read_bytes())
    except (FileNotFoundError, ValueError):
        return True
    return bool(known != _passed(questions, target_branch.tip(ctx.git, ctx.target)))


def run(
    ctx: Context, place: worktree_slots.Place, tell: Callable[[str], None], may_go_on: Callable[[], bool]
) -> Passed:
    """Run every check of a completed task on the target.

    `may_go_on` is asked between two checks: a person may not want to wait for all of them.
    Raises EnvSetupError if `harness-init.sh` fails in a fresh work tree.
    """
    assert ctx.target is not None
    questions = ctx.store.ask()
    failures = _Failures()
    path = place.slot(NUMBER)
    worktrees.remove(ctx.git, path)
    tip = target_branch.tip(ctx.git, ctx.target)
    try:
        fresh_ctx = ctx.at(worktree_slots.checkout_clean(ctx, path, tip)[0])
        worktree_slots.set_up(fresh_ctx)
        for task in filter(_has_check, questions.search("completed")):
            if not may_go_on():
                return Passed()
            checked = check.run_check(fresh_ctx, task, log_name="final")
            if not checked.passed:
                failures.note(ctx, task, checked, tip, tell)
    finally:
        # What checks leave behind is nobody's work.
        worktrees.remove(ctx.git, path)
    fresh = [each for key, each in failures.broken.items() if not _is_repaired(questions, key)]
    for task, checked in fresh:
        _repair(ctx, task, checked)
    if fresh:
        return Passed(tip, goes_on=_session_is_open(ctx))
    if not failures.broken and not failures.elsewhere:
        passed = json.dumps(_passed(questions, tip))
        atomic.write(ctx.root.private / PASSED, passed.encode(), durable=False, make=True)
    return Passed(tip, broken=tuple(task for task, _ in failures.broken.values()))


@dataclass
class _Failures:
    """What is broken: of those with the same check the first, as one repair is enough for all of them."""

    broken: dict[Key, tuple[Task, Checked]] = field(default_factory=dict)
    elsewhere: bool = False

    def note(self, ctx: Context, task: Task, checked: Checked, tip: str, tell: Callable[[str], None]) -> None:
        # A commit that this repository does not have proves nothing: a clone can name any.
        if _stands_elsewhere(ctx, task, tip):
            self.elsewhere = True
            commit, branch = (task.completed_commit or "")[:12], target_branch.short(ctx.target or "")
            tell(
                f"{task.id} was finished elsewhere: its commit {commit} is not on {branch}, "
                "where its check fails"
            )
            return
        self.broken.setdefault(_key(task), (task, checked))
        tell(f"{task.id} is broken on the final tree: {checked.message}")


def _stands_elsewhere(ctx: Context, task: Task, tip: str) -> bool:
    commit = task.completed_commit
    return commit is not None and ctx.git.exists(commit) and not ctx.git.is_ancestor(commit, tip)


def _has_check(task: Task) -> bool:
    return task.is_done and check_of(task).is_given


def _key(task: Task) -> Key:
    asked = check_of(task)
    return asked.text, asked.cwd


def _is_repaired(questions: Questions, key: Key) -> bool:
    """Return whether a repair of this very check was the last that was done, but for other repairs."""
    done = [task for task in questions.search("completed") if task.is_done]
    repaired = [_when(task) for task in done if task.repairs and _key(task) == key]
    others = [_when(task) for task in done if not task.repairs]
    return bool(repaired) and max(repaired) >= max(others, default="")


def _when(task: Task) -> str:
    return task.completed_at or ""


def _passed(questions: Questions, tip: str) -> dict[str, str]:
    checks = [[task.id, *_key(task)] for task in filter(_has_check, questions.search("completed"))]
    return {"tip": tip, "checks": sha256.digest(json.dumps(checks).encode())}


def _repair(ctx: Context, task: Task, checked: Checked) -> None:
    """Add the task to put right what `task` had finished, with the check that has caught it."""
    repair = Task(
        "",
        task.title if task.repairs else f"{TITLE}{task.title}",
        description=(
            f"The check of {task.id} passed when it was finished (commit {task.completed_commit}) and fails "
            f"now that the list is done: {quoting.one_line(checked.failure(), quoting.FAILURE_LENGTH)}. "
            "Make it pass again without undoing what other tasks have done since."
        ),
        priority="P0",
        depends_on=(task.id,),
        validation=task.validation._replace(red_first=False),
        repairs=task.id,
    )
    add_tasks.add(ctx, repair)


def _session_is_open(ctx: Context) -> bool:
    """Return whether this run has a session; the last one ended when the list was done."""
    if sessions.mine(ctx.store.ask(), ctx) is not None:
        return True
    return open_session.open_session(ctx).session is not None
