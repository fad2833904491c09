"""Describe the results of re-checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from harness_lib import typed
from harness_lib.core import quoting, sessions, trust
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError
from harness_lib.rules import rechecks
from harness_lib.state.api import Questions
from harness_lib.system.git.repository import Git
from harness_lib.task import Task
from harness_lib.text import counted, first, some

SHOWN = 5
TITLE_LENGTH = 60
GIST_LENGTH = 200
COMMAND = "harness validate --all --committed"
# The beginning of the line of a task whose check fails now.
RED = "red: "


def red(ctx: Context, tasks: Iterable[Task]) -> list[Task]:
    """Return the red ones of `tasks`, without those that later commits may have repaired."""
    found = rechecks.red(tasks)
    try:
        return [task for task in found if not _is_past(ctx.main, task)] if found else []
    except EnvSetupError:
        return found


def lacking(git: Git, tasks: Iterable[Task]) -> list[Task]:
    """Return those of `tasks` that were completed on another branch, and that HEAD does not have."""
    return [
        task
        for task in filter(rechecks.was_completed_elsewhere, tasks)
        if task.completed_commit and not git.is_ancestor(task.completed_commit, "HEAD")
    ]


def next_command(ctx: Context, questions: Questions, repairs: str = COMMAND) -> str:
    """Return the next command for red tasks: retry the first, or check again if there are later commits.

    `repairs` is the command if each has a repair that can be claimed, or is in progress.
    """
    current = red(ctx, questions.search("completed"))
    repaired = {task.repairs for task in (*questions.claimable(), *questions.in_progress())}
    left = [task for task in current if task.id not in repaired]
    return typed.harness("retry", left[0].id) if left else repairs if current else COMMAND


def _is_past(git: Git, task: Task) -> bool:
    """Return whether HEAD is later than the commit that `task` was re-checked at, with other content."""
    found, head = task.recheck, git.head()
    if not found or head is None or not git.exists(found.commit):
        return False
    return git.tree_of(head) != git.tree_of(found.commit) and git.is_ancestor(found.commit, head)


def lines(ctx: Context, questions: Questions) -> list[str]:
    """Return the lines about re-checks for a user, those that need an action first."""
    done = questions.search("completed")
    current = red(ctx, done)
    rows = [f"{RED}{_red(task)}" for task in current]
    rows += [f"checked: {_past(task)}" for task in rechecks.red(done) if task not in current]
    others = [*_elsewhere(ctx, done), *_gone(ctx, done), *_not_reproducible(done), *_not_run(done)]
    return [*first(rows, SHOWN), *others, *unchecked(ctx, questions, done)]


def red_lines(questions: Questions) -> list[str]:
    """Return a line for each of the first red tasks, later commits or not."""
    found = rechecks.red(questions.search("completed"))
    return [f"  {row}" for row in first([_red(task) for task in found], SHOWN, " (harness status)")]


def describe(ctx: Context, task: Task) -> list[str]:
    """Return the lines about the re-check of the completed `task`, with the output of a failed check."""
    found = task.recheck
    if not rechecks.can_be_rechecked(task):
        return []
    if not found:
        return [f"not re-checked on a clean checkout; run: {COMMAND}"]
    if found.excuse == "not_reproducible":
        first = _not_reproducible([task])[0]
    elif rechecks.is_red(task):
        first = f"{RED}{_red(task)}" if red(ctx, [task]) else f"checked: {_past(task)}"
    else:
        first = f"re-check: {rechecks.words(task)}, {found.at or 'at an unknown time'}"
    return [first, *(f"  | {row}" for row in found.tail.splitlines())]


def _red(task: Task) -> str:
    return f"{_named(task)}: {_failed(task)}; then: {typed.harness('retry', task.id)}"


def _past(task: Task) -> str:
    return f"{_named(task)}: {_failed(task)}; there are later commits, so check again: {COMMAND}"


def _failed(task: Task) -> str:
    gist = task.recheck.tail.partition("\n")[0] if task.recheck else ""
    return f"{rechecks.words(task)}, on a clean checkout: {quoting.one_line(gist, GIST_LENGTH).rstrip('.')}"


def _named(task: Task) -> str:
    return f"{task.id} {quoting.one_line(task.title, TITLE_LENGTH)}".strip()


def _not_reproducible(done: Iterable[Task]) -> list[str]:
    found = [task for task in done if task.recheck and task.recheck.excuse == "not_reproducible"]
    if not found:
        return []
    needs = quoting.named(rechecks.needed(found))
    differ = f"only there are: {needs}" if needs else "no file that git ignores differs"
    line = (
        f"not reproducible: {some([task.id for task in found])}: the check passes where the work was "
        f"done and fails on a clean checkout of the same commit; {differ}. "
        "Let harness-init.sh make what is missing, or name it in .worktreeinclude"
    )
    return [line]


def elsewhere(git: Git, done: Iterable[Task], commit: str = "HEAD") -> list[str]:
    """Return the line about completed tasks whose check failed where their work is not, nor in `commit`."""
    found = [
        task
        for task in filter(rechecks.is_elsewhere, done)
        if not git.is_ancestor(task.completed_commit or "", commit)
    ]
    if not found:
        return []
    checked = found[0].recheck.commit[: rechecks.SHORT] if found[0].recheck else ""
    names = some([task.id for task in found])
    return [f"finished elsewhere: {names}: the check fails at {checked}, which does not have the work"]


def _checkout(ctx: Context) -> Git:
    """Return the work tree that one types in, if it is of the list's repository; else that of the list."""
    return ctx.git if ctx.git.common_dir == ctx.main.common_dir else ctx.main


def _elsewhere(ctx: Context, done: Iterable[Task]) -> list[str]:
    try:
        return [f"{line}: harness report" for line in elsewhere(_checkout(ctx), done)]
    except EnvSetupError:
        return []


def _gone(ctx: Context, done: Iterable[Task]) -> list[str]:
    """Return the line about checks that have passed last on a commit which HEAD does not have."""
    passed = [task.recheck for task in done if task.recheck and task.recheck.passed]
    last = max(passed, key=lambda found: found.at or "").commit if passed else ""
    try:
        is_known = not last or not ctx.main.exists(last) or _checkout(ctx).is_ancestor(last, "HEAD")
        # What waits for the branch of the user is said elsewhere.
        waiting = ("for-each-ref", "--count=1", "--contains", last, "refs/heads/harness/")
        if is_known or ctx.main.text(*waiting):
            return []
    except EnvSetupError:
        return []
    return [f"checked at {last[: rechecks.SHORT]}, which HEAD does not have. Check what is here: {COMMAND}"]


def _not_run(done: Iterable[Task]) -> list[str]:
    found = [task.id for task in done if task.recheck and task.recheck.excuse == "held_out"]
    if not found:
        return []
    return [f"held-out check not run: {some(found)}: it is not on this machine, or cannot run"]


def unchecked(ctx: Context, questions: Questions, done: Iterable[Task]) -> list[str]:
    """Return the line about tasks that were not re-checked, unless that is still to come in a session.

    Nor were those whose check failed where their work was not, if HEAD has it by now.
    """
    every = [task for task in done if rechecks.can_be_rechecked(task) and not task.recheck]
    every += _arrived(ctx, [task for task in done if rechecks.is_elsewhere(task)])
    # The checks of the others do not run here.
    never = trust.known(ctx, every)
    if not never or (questions.work_remains() and sessions.living(questions, ctx)):
        return []
    count = counted(len(never), "completed task")
    return [f"not re-checked: {count}. Run the checks on a clean checkout of what is committed: {COMMAND}"]


def _arrived(ctx: Context, tasks: Sequence[Task]) -> list[Task]:
    """Return those of `tasks` whose work HEAD has."""
    with suppress(EnvSetupError):
        return [task for task in tasks if _checkout(ctx).is_ancestor(task.completed_commit or "", "HEAD")]
    return []
