"""Run the checks of completed tasks again when a run ends; each broken one becomes a new task.

A later task may break what an earlier one had finished: its own check does not look there.
What passes only in place is not reproducible, and what was finished on another branch is only not here:
neither is broken. What is still broken after its repair is left to the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from harness_lib.attempts import (
    claim,
    committed,
    merge_queue,
    open_session,
    recheck,
    target_branch,
    worker_worktrees,
)
from harness_lib.core import add_tasks, quoting, rechecked
from harness_lib.core.context import Context, Say
from harness_lib.errors import HeldError
from harness_lib.rules import rechecks
from harness_lib.state.api import Questions
from harness_lib.system.git import history, trees
from harness_lib.task import Task
from harness_lib.text import counted, some

# Workers count from 1.
NUMBER = 0
TITLE = "Repair what a later task broke: "


class Passed(NamedTuple):
    """The result of a final check; `goes_on`: it has added tasks.

    `tip` is the commit that was looked at, None where the check of a task did not run on it, or failed.
    `left` says which checks did not run.
    """

    tip: str | None = None
    goes_on: bool = False
    left: str = ""


def is_due(ctx: Context) -> bool:
    """Return whether the check of a completed task has not passed on the target's present commit."""
    return bool(recheck.due(ctx, _tip(ctx)))


def run(
    ctx: Context,
    place: worker_worktrees.Place,
    scope: rechecks.Scope | None,
    tell: Say,
    goes_on: recheck.GoesOn,
    *,
    repairs: bool = True,
) -> Passed:
    """Run the checks of `scope` on a clean checkout of the target, and add tasks for the broken ones.

    `goes_on` is asked all the time: the user may not want to wait for all of them.
    If machines share the list, one of them does it for all.
    Raises EnvSetupError if `harness-init.sh` fails in a fresh work tree.
    """
    if ctx.merging.mode != "turns":
        alone = committed.Alone(has=True, waited=False, goes_on=goes_on)
        return _check(ctx, place, scope, tell, alone, repairs=repairs)
    with committed.alone(ctx, goes_on, tell) as mine:
        with suppress(HeldError):
            merge_queue.refresh(ctx)
        if not mine.has:
            return Passed(left="another machine makes the final check")
        if mine.waited and _has_work(ctx):
            # The other machine has added repairs.
            return Passed(goes_on=_session_is_open(ctx))
        return _check(ctx, place, scope, tell, mine, repairs=repairs)


def _has_work(ctx: Context) -> bool:
    questions = ctx.ask()
    return claim.next_task(ctx, questions).task is not None or bool(questions.in_progress())


def _check(
    ctx: Context,
    place: worker_worktrees.Place,
    scope: rechecks.Scope | None,
    tell: Say,
    mine: committed.Alone,
    *,
    repairs: bool,
) -> Passed:
    """Run the checks; those that failed on this content run again, unless another machine just ran them."""
    tip, goes_on = _tip(ctx), mine.goes_on
    due = recheck.unknown(ctx, tip) if mine.waited else recheck.due(ctx, tip)
    tasks = _within(ctx, scope, due, tip)
    left = "; ".join(filter(None, (_left_out(len(due) - len(tasks)), _untrusted(ctx, tip))))
    found: list[recheck.Found] = []
    if tasks:
        tell(f"{_which(ctx, tasks)} once more on the final tree{left and f'; {left}'}")
        in_place = [*worker_worktrees.idle(ctx, place, tip), ctx.main]
        with recheck.clean_checkout(ctx, place.worktree(NUMBER), tip) as clean:
            for each in recheck.run(clean, tip, tasks, in_place, goes_on=goes_on, during=goes_on):
                found.append(each)
                if not each.recheck.passed or rechecks.is_flaky(each.task):
                    tell(_said(ctx, each))
    if not goes_on():
        count = len(tasks) - len(found)
        left = f"it ended before {counted(count, 'task')}: {rechecked.COMMAND}" if count else ""
        return Passed(left=left)
    if repairs and _repair(ctx):
        return Passed(goes_on=_session_is_open(ctx))
    is_whole = not left and not rechecks.red(ctx.ask().search("completed"))
    return Passed(tip if is_whole else None, left=left)


def _tip(ctx: Context) -> str:
    assert ctx.target is not None, "BUG: a run without a target."
    return target_branch.tip(ctx.git, ctx.target)


def _within(ctx: Context, scope: rechecks.Scope | None, due: Sequence[Task], tip: str) -> Sequence[Task]:
    done = ctx.ask().search("completed")
    if scope == "all" or (scope is None and len(done) <= rechecks.MOST) or not due:
        return due
    commits = [rechecks.Commit(oid, files) for oid, files in history.with_files(ctx.git, tip)]
    return rechecks.of(due, done, rechecks.History(commits, trees.entries(ctx.git, tip)))


def _which(ctx: Context, tasks: Sequence[Task]) -> str:
    every = filter(rechecks.can_be_rechecked, ctx.ask().search("completed"))
    if len(tasks) == sum(1 for _ in every):
        return "every check runs"
    return "1 check runs" if len(tasks) == 1 else f"{len(tasks)} checks run"


def _left_out(count: int) -> str:
    if not count:
        return ""
    return (
        f"{counted(count, 'task')} left out, as no file that their checks go by has changed "
        "(harness run --final-check all takes them, too)"
    )


def _untrusted(ctx: Context, tip: str) -> str:
    names = [task.id for task in recheck.untrusted(ctx, tip)]
    if not names:
        return ""
    return f"the checks of {some(names)} are not trusted on this machine (harness trust)"


def _said(ctx: Context, found: recheck.Found) -> str:
    """Return the message about a failed check."""
    task = found.task
    if found.recheck.passed:
        return f"{task.id} is flaky: its check failed on the final tree and passed when it ran once more"
    if found.recheck.excuse == "elsewhere":
        commit, branch = (task.completed_commit or "")[:12], target_branch.short(ctx.target or "")
        return (
            f"{task.id} was finished elsewhere: its commit {commit} is not on {branch}, where its check fails"
        )
    if found.recheck.excuse == "not_reproducible":
        return f"{task.id} is not reproducible: its check passes in place but fails on a clean checkout"
    if found.recheck.excuse == "held_out":
        return found.gist
    return f"{task.id} is broken on the final tree: {found.gist}"


def _repair(ctx: Context) -> bool:
    """Add a repair for each red task that was not repaired just now; return whether there was one."""
    questions = ctx.ask()
    red: dict[tuple[rechecks.Key, str], Task] = {}
    for task in rechecks.red(questions.search("completed")):
        red.setdefault(rechecks.whole_key(task), task)
    fresh = [task for key, task in red.items() if not _is_repaired(questions, key)]
    for task in fresh:
        why = task.recheck.tail.partition("\n")[0] if task.recheck else ""
        gist = quoting.one_line(why)
        repair = Task(
            "",
            f"{TITLE}{task.title}",
            description=(
                f"The check of {task.id} passed when it was finished (commit {task.completed_commit}) and "
                f"fails on a clean checkout of what is committed now: {gist}. "
                "Make it pass again without undoing what other tasks have done since."
            ),
            priority="P0",
            depends_on=(task.id,),
            validation=task.validation._replace(red_first=False),
            repairs=task.id,
        )
        add_tasks.add(ctx, repair)
    return bool(fresh)


def _is_repaired(questions: Questions, key: tuple[rechecks.Key, str]) -> bool:
    """Return whether the last completed task, repairs of other checks aside, was a repair of this check.

    A repair that has failed, or is not completed yet, exists already.
    """
    repairs = [task for task in questions.search() if task.repairs and rechecks.whole_key(task) == key]
    if not all(task.is_done for task in repairs):
        return True
    others = [task for task in questions.search("completed") if task.is_done and not task.repairs]
    last = max((task.completed_at or "" for task in repairs), default="")
    return bool(repairs) and last >= max((task.completed_at or "" for task in others), default="")


def _session_is_open(ctx: Context) -> bool:
    """Return whether this run has a session; the last one may have ended with the list."""
    if ctx.own_session(ctx.ask()):
        return True
    return open_session.open_session(ctx).session is not None
