"""Run the checks of completed tasks on a clean checkout of a commit, and record the results.

A check that fails there and passes in place, at the same commit, is not reproducible: it needs something that
git does not keep. That is recorded with the files in question and makes no task red. If git keeps other
content than the work tree has, because a filter converts it, the task is red all the same.
Tasks with the same check share one run. What is recorded of one commit is not run again for another one with
the same content.
Of a held-out check the agent learns only whether it passed: its files are in the checkout while it runs, and
its output and result go to the data directory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from harness_lib import timestamps, typed
from harness_lib.attempts import check, worker_worktrees
from harness_lib.checks import UNWATCHED, Checked, ShellCheck, Watch, Worktree
from harness_lib.core import held_out, lifecycle, project, quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import (
    ConfigError,
    EnvSetupError,
)
from harness_lib.rules import arrows, rechecks, runners, transitions
from harness_lib.system import fs
from harness_lib.system.git import snapshot, status, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import runner
from harness_lib.task import Recheck, Task
from harness_lib.text import safe_name

TAIL_LENGTH = 1500
TICK = 1.0
SHOWN = 400
HELD_OUT_FAILED = "A held-out check failed"
HELD_OUT_NOT_RUN = "A held-out check did not"
# A check that takes longer, in seconds, is not repeated to find out whether it is flaky.
SHORT_SECONDS = 120.0
FLAKY = "is flaky: its check failed and passed on the same content"

GoesOn = Callable[[], bool]


def _always() -> bool:
    return True


class Found(NamedTuple):
    """The result for one task: `task` as it is recorded now, and `gist`, one line about what is wrong."""

    task: Task
    recheck: Recheck
    gist: str = ""


def due(ctx: Context, commit: str) -> list[Task]:
    """Return the completed tasks whose checks are still to be run on the content of `commit`.

    If all of them have run on it, those that failed there. Only checks that are trusted here can run.
    """
    return rechecks.due(_runnable(ctx), _is_there(ctx.git, commit))


def unknown(ctx: Context, commit: str) -> list[Task]:
    """Return the completed tasks whose checks have not run on the content of `commit`."""
    return rechecks.unknown(_runnable(ctx), _is_there(ctx.git, commit))


def untrusted(ctx: Context, commit: str) -> list[Task]:
    """Return the completed tasks whose checks do not run on `commit`, as they are not trusted here."""
    done = ctx.ask().search("completed")
    here = {task.id for task in trust.known(ctx, done)}
    return [task for task in rechecks.unknown(done, _is_there(ctx.git, commit)) if task.id not in here]


def _runnable(ctx: Context) -> list[Task]:
    return trust.known(ctx, ctx.ask().search("completed"))


def _is_there(git: Git, commit: str) -> rechecks.IsThere:
    """Return a function that tells whether a commit has the content of `commit`."""
    known: dict[str, bool] = {commit: True}

    def is_there(other: str) -> bool:
        if other not in known:
            known[other] = git.exists(other) and git.tree_of(other) == git.tree_of(commit)
        return known[other]

    return is_there


@contextmanager
def clean_checkout(ctx: Context, path: Path, commit: str) -> Iterator[Context]:
    """Yield a clean checkout of `commit` at `path`, set up like a worker's, and remove it afterwards.

    Raises RefusedError (untrusted commands), EnvSetupError (`harness-init.sh` fails there).
    """
    trust.require(ctx, ctx.ask())
    worktrees.remove(ctx.git, path)
    try:
        view = ctx.at(worker_worktrees.checkout_clean(ctx, path, commit).git)
        worker_worktrees.set_up(view)
        yield view
    finally:
        # Files that checks leave behind are not work.
        worktrees.remove(ctx.git, path)


def run(
    clean: Context,
    commit: str,
    tasks: Sequence[Task],
    in_place: Sequence[Git] = (),
    *,
    goes_on: GoesOn = _always,
    during: GoesOn = _always,
) -> Iterator[Found]:
    """Run the checks of `tasks` in the clean checkout `clean` of `commit`; yield the recorded results.

    `in_place`: work trees in which a failed check is tried again, if they are at `commit`.
    `goes_on` is asked before each check, `during` each second while one runs: it is ended and not recorded.
    """
    known: dict[tuple[rechecks.Key, str], Recheck] = {}
    is_there, began = _is_there(clean.git, commit), snapshot.capture(clean.git)
    for task in clean.ask().search("completed"):
        if task.recheck and task.recheck.passed and is_there(task.recheck.commit):
            known.setdefault(rechecks.whole_key(task), task.recheck._replace(commit=commit))
    for task in tasks:
        if not goes_on():
            return
        key = rechecks.whole_key(task)
        if key not in known:
            found = _check(clean, commit, task, in_place, during, began)
            if not found:
                return
            known[key] = found
            put_back(clean.git, began)
        yield from _record(clean, task, _excused(clean.git, task, known[key]))


def put_back(git: Git, began: str) -> None:
    """Restore the clean checkout for the next check; files that git ignores stay."""
    is_as_committed = began == git.tree_of("HEAD") and not any(status.changes(git))
    if not is_as_committed and snapshot.capture(git) != began:
        git.run("read-tree", "--reset", "-u", began)
        git.run("clean", "-d", "--force", "--force", "--quiet")
        git.run("read-tree", "HEAD")


def is_worth_repeating(checked: Checked) -> bool:
    """Return whether a failed check, which has passed before, is short enough to run once more."""
    return checked.verdict == "TEST_FAIL" and not checked.held_out and checked.seconds < SHORT_SECONDS


def _check(
    clean: Context, commit: str, task: Task, in_place: Sequence[Git], during: GoesOn, began: str
) -> Recheck | None:
    """Return the result of the check of `task`; None if `during` has ended it."""
    checked, failure = _checked(clean, task, during), ""
    if not checked.passed and during():
        # Recorded before it runs again: the shell of an agent may end this command meanwhile.
        failed = Recheck(commit, passed=False, tail=_tail(checked))
        _keep(clean, task, _excused(clean.git, task, failed))
        checked, failure = _again(clean, task, during, checked, began), failed.tail
    if not checked.passed and not during():
        return None
    if checked.passed and task.validation.hidden:
        try:
            checked = run_in(clean, task, "-final", Watch(during, TICK))
        except (ConfigError, EnvSetupError) as error:
            # A held-out file may be on another machine: that proves nothing about the work.
            return Recheck(commit, passed=False, tail=error.message, excuse="held_out")
        if not checked.passed:
            return Recheck(commit, passed=False, tail=checked.message) if during() else None
    if checked.passed:
        return Recheck(commit, passed=True, tail=failure)
    failed = Recheck(commit, passed=False, tail=failure)
    explained = _explained(clean, task, failed, in_place, during)
    return explained if during() else None


def _again(clean: Context, task: Task, during: GoesOn, failed: Checked, began: str) -> Checked:
    """Return the check of `task`, which has `failed`; a short one runs once more on the tree `began`."""
    if rechecks.is_red(task) or not is_worth_repeating(failed):
        return failed
    put_back(clean.git, began)
    again = _checked(clean, task, during)
    return again if again.passed else failed


def _explained(
    clean: Context, task: Task, failed: Recheck, in_place: Sequence[Git], during: GoesOn
) -> Recheck:
    """Return `failed`, or an excuse for it if the check needs what git does not keep.

    It passes with that in place, or has never passed without: not in the commit either that `task` was
    completed with.
    """
    for git in in_place:
        if _stands_at(clean, git, failed.commit) and _checked(clean.at(git), task, during).passed:
            if converted := status.kept_otherwise(git, clean.git):
                names = quoting.named(converted)
                words = f"Git has committed other content than the check passes on in place: {names}."
                return failed._replace(tail=f"{words} {failed.tail}")
            files = status.differing(git, clean.git, clean.excluded_paths)
            missing = tuple(quoting.one_line(path, SHOWN) for path in files)
            return failed._replace(excuse="not_reproducible", missing=missing)
    if not during() or rechecks.is_red(task) or _passed_when_done(clean, failed.commit, task, during):
        return failed
    missing = task.recheck.missing if task.recheck else ()
    return failed._replace(excuse="not_reproducible", missing=missing)


def _passed_when_done(clean: Context, commit: str, task: Task, during: GoesOn) -> bool:
    """Return whether the check passes on a clean checkout of the commit of `task`; None if unknown."""
    git, own = clean.git, task.completed_commit
    if own is None or not git.exists(own) or not git.is_ancestor(own, commit):
        return True
    if git.tree_of(own) == git.tree_of(commit):
        return False
    try:
        with clean_checkout(clean, git.top.with_name(f"{git.top.name}-then"), own) as then:
            return _checked(then, task, during).passed
    except EnvSetupError:
        # `harness-init.sh` was run for the present commit, not for that one.
        return True


def _checked(ctx: Context, task: Task, during: GoesOn) -> Checked:
    ctx.busy(f"checking {task.id} …")
    # The shell of an agent may have killed the command that started it last time.
    runner.end_all(check.log_directory(ctx, task), logs="final")
    try:
        return check.run_check(ctx, task, log_name="final", watch=Watch(during, TICK))
    except ConfigError as error:
        # The directory of the check is not in this work tree.
        return Checked("TEST_FAIL", error.message, "", check.log_directory(ctx, task))


def _tail(checked: Checked) -> str:
    """Return a line that says why the check failed, and below it the end of its output."""
    rows = [quoting.printable(row) for row in checked.tail.splitlines() if row.strip()]
    first = quoting.one_line(checked.failure(), quoting.FAILURE_LENGTH - 100)
    return "\n".join([first, "\n".join(rows)[-(TAIL_LENGTH - len(first)) :]]).strip()


def _stands_at(clean: Context, git: Git, commit: str) -> bool:
    head = git.head()
    if head is None or git.tree_of(head) != git.tree_of(commit):
        return False
    return not status.changes(git, clean.excluded_paths).tracked


def _excused(git: Git, task: Task, found: Recheck) -> Recheck:
    """Return `found`, or an excuse for it if the work of `task` is not in the history of the commit.

    A commit that this repository does not have proves nothing: a clone can name any.
    """
    own = task.completed_commit
    if found.passed or own is None or not git.exists(own) or git.is_ancestor(own, found.commit):
        return found
    return found._replace(excuse="elsewhere", missing=())


def _record(ctx: Context, task: Task, found: Recheck) -> Iterator[Found]:
    """Record and log `found`, unless the task has changed meanwhile."""
    gist = found.tail.partition("\n")[0]
    checked = _keep(ctx, task, found, gist)
    if checked:
        yield Found(checked, found, gist)


def _named(task: Task) -> Task:
    """Return `task`; if its check passed only the second time, with that to look at."""
    line = f"{task.id} {FLAKY}"
    if not rechecks.is_flaky(task) or line in task.look_at:
        return task
    return task._replace(look_at=(*task.look_at, line))


def _keep(ctx: Context, task: Task, found: Recheck, gist: str | None = None) -> Task | None:
    """Record `found` and return the task; None if it has changed meanwhile. A `gist` is logged."""
    with ctx.transaction() as tx:
        # By the clock of the list: those of the machines that check may differ.
        found = found._replace(at=timestamps.render(tx.now))
        current = tx.task(task.id)
        if not current or not arrows.may("recheck", current):
            return None
        if (current.validation, current.completed_commit) != (task.validation, task.completed_commit):
            return None
        checked = _named(transitions.recheck(current, found))
        held = tx.holds_agents()
        tx.replace(checked)
        if gist is not None and not found.passed:
            text = quoting.one_line(f"{rechecks.words(checked)}: {gist}")
            tx.log("WARN", text, task=task.id)
        if tx.holds_agents() and not held:
            # The enable flag is gone because all was done; if work remained, somebody has paused the list.
            tx.on_commit(ctx.store.enable_hooks)
        lifecycle.disable_hooks_when_finished(tx, ctx)
    return checked


def run_in(clean: Context, task: Task, suffix: str, watch: Watch = UNWATCHED) -> Checked:
    """Run the held-out check of `task` in the clean checkout `clean`; `suffix` ends the name of its log.

    Raises ConfigError (not on this machine), EnvSetupError (it cannot run here).
    """
    material = held_out.load(clean, task)
    assert material is not None, f"BUG: {task.id} has no held-out check."
    assert task.validation.hidden is not None
    place = held_out.directory(clean, task.validation.hidden)
    log = place / f"{safe_name(task.id)}{suffix}.log"
    asked = task.validation
    clean.busy(f"running the held-out check of {task.id} …")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="run-", dir=place)))
        try:
            for number, file in enumerate(material.files):
                stack.enter_context(_placed(clean.git.top, file, scratch / str(number)))
        except (FileExistsError, NotADirectoryError) as error:
            checked = Checked("TEST_FAIL", f"Its files cannot be put in place: {error}.", "", log)
        else:
            shell = ShellCheck(task.id, _command(material, scratch), asked.cwd, asked.timeout_seconds)
            first = project.search_paths(clean)
            checked = shell.run(Worktree(clean.git.top, clean.env, log, clean.clock, watch, first))
    at = timestamps.render(clean.clock.now())
    held_out.tell(clean, task, f"{at}, {log.stem}: {checked.message}", checked.excerpt(), log)
    return _told(clean, task, checked)


def _command(material: held_out.Material, scratch: Path) -> str:
    if not material.script:
        return material.command
    script = scratch / material.script.path
    fs.write(script, material.script.content, durable=False, mode=0o700)
    return typed.word(script)


@contextmanager
def _placed(top: Path, file: held_out.Placed, aside: Path) -> Iterator[None]:
    """Put `file` into the checkout at `top`, and restore what was there, kept in `aside`, afterwards.

    Raises FileExistsError or NotADirectoryError if something else is in the way.
    """
    target = top / file.path
    if not target.parent.resolve().is_relative_to(top.resolve()):
        raise NotADirectoryError(f"{target.parent} leads out of the checkout")
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        target.rename(aside)
    try:
        fs.write(target, file.content, durable=False, mode=file.mode)
        yield
    finally:
        if target.is_dir() and not target.is_symlink():
            fs.remove_tree(target)
        target.unlink(missing_ok=True)
        if os.path.lexists(aside):
            aside.rename(target)


def _told(ctx: Context, task: Task, checked: Checked) -> Checked:
    """Return what the agent may know of `checked`: the result without its output."""
    if checked.verdict == "ENV_SETUP":
        show = typed.harness("show", task.id)
        raise EnvSetupError(
            f"The held-out check of {task.id} cannot run here.", f"The user sees why, in a terminal: {show}"
        )
    nowhere = check.log_directory(ctx, task)
    if checked.passed:
        return Checked("pass", checked.message, "", nowhere, seconds=checked.seconds)
    if checked.verdict == "TIMEOUT":
        message = f"{HELD_OUT_NOT_RUN} end within {task.validation.timeout_seconds} s."
        return Checked("TIMEOUT", message, "", nowhere, held_out=True)
    failed = runners.failures(runner.ends_of(checked.log)) if task.validation.hidden_names else []
    names = quoting.named([each.name for each in failed])
    message = f"{HELD_OUT_FAILED}: {names}." if names else f"{HELD_OUT_FAILED}."
    return Checked("TEST_FAIL", message, "", nowhere, held_out=True)
