"""Run the checks of completed tasks again: on a clean checkout of a commit, or where nobody ran them.

The shell of an agent ends a command after two to ten minutes. So between two checks the command ends and is
typed again, until the check of every completed task has run on the commit; what was found is recorded. The
checkout stays there between two slices: its set-up may take as long as a slice.

A task that an external edit has completed is checked where it stands: completed if it passes, else pending.
No attempt is counted, and nothing is committed or rolled back: nobody knows whose work it would be.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from harness_lib.attempts import check, recheck, worker_worktrees
from harness_lib.checks import Checked, check_of
from harness_lib.core import held_out, lifecycle, quoting, rechecked, trust
from harness_lib.core.context import Context, Say
from harness_lib.errors import ConfigError, EnvSetupError, HarnessError, HeldError, RefusedError, UsageError
from harness_lib.rules import arrows, rechecks, selection, transitions
from harness_lib.state.api import Tx
from harness_lib.system import flock, fs
from harness_lib.system.git import history, worktrees
from harness_lib.task import Session, StopReason, Task
from harness_lib.text import Strings, safe_name

SLICE_SECONDS = 90.0
AGAIN_SECONDS = 2.0
FINAL = "final check of"
# Beside the checkout: the commit that it was made for, and whether its set-up has ended.
MADE, READY = "made", "ready"
ENDS = 2
# What a sandbox says of a directory that it closes: a mount that is read-only, Landlock, or macOS.
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


class Slice(NamedTuple):
    """The result of one slice: the commit, the results, and how many tasks are still to be checked on it."""

    commit: str
    found: tuple[recheck.Found, ...]
    left: int


def run(ctx: Context, seconds: float | None) -> Slice:
    """Check the completed tasks on HEAD; start no further check after this many `seconds`.

    Raises RefusedError (no commit, untrusted commands), HeldError (another one is running), EnvSetupError
    (`harness-init.sh` fails in the checkout).
    """
    commit = _head(ctx)
    deadline = None if seconds is None else ctx.clock.monotonic() + seconds
    tasks = recheck.due(ctx, commit)
    found: tuple[recheck.Found, ...] = ()
    if tasks:
        with _checkout(ctx, commit) as clean:
            found = tuple(
                recheck.run(
                    clean,
                    commit,
                    tasks,
                    (ctx.git,),
                    goes_on=lambda: deadline is None or ctx.clock.monotonic() < deadline,
                )
            )
    return Slice(commit, found, len(recheck.unknown(ctx, commit)))


def _head(ctx: Context) -> str:
    """Return the commit of HEAD. Raises RefusedError if there is none."""
    commit = ctx.git.head()
    if commit is None:
        raise RefusedError("Nothing is committed here yet.", "Commit what there is, or type: harness claim")
    return commit


def in_range(ctx: Context, span: str) -> tuple[str, list[Task]]:
    """Return the last commit of `span`, A..B, and the completed tasks whose commits are in it.

    Raises UsageError (no such range).
    """
    first, dots, last = span.partition("..")
    ends = [ctx.git.commit_called(name or "HEAD") for name in (first, last) if not name.startswith("-")]
    # Without the first it is a variable that is not set: a job in CI would pass, and have checked nothing.
    if not (first and dots) or last.startswith(".") or len(ends) != ENDS or None in ends:
        raise UsageError(f"{span!r} is not a range of commits.", "Name two commits: --range main..HEAD")
    start, end = map(str, ends)
    made = set(ctx.git.lines("rev-list", end, f"^{start}"))
    done = filter(rechecks.can_be_rechecked, ctx.ask().search("completed"))
    return end, [task for task in done if ctx.git.commit_called(task.completed_commit or "") in made]


@contextmanager
def at_end_of(ctx: Context, commit: str) -> Iterator[Context]:
    """Yield a clean checkout of `commit`, the end of a range, and remove it afterwards.

    Raises what `run` does.
    """
    with _place(ctx) as place:
        # Beside the checkout that a final check may have left for its next slice.
        with recheck.clean_checkout(ctx, place.worktree(1), commit) as clean:
            yield clean
        if not (place.path / MADE).exists():
            worker_worktrees.drop_checks(ctx, place)


def beside(ctx: Context, commit: str) -> AbstractContextManager[Context]:
    """Yield a clean checkout of `commit` beside the work tree of the attempt, outside the project."""
    if worker_worktrees.is_ours(ctx, ctx.git):
        return recheck.clean_checkout(ctx, ctx.git.top.with_name(f"{ctx.git.top.name}-judged"), commit)
    return at_end_of(ctx, commit)


def run_held_out(
    ctx: Context, task: Task, commit: str, *, suffix: str = "", holder: Task | None = None
) -> Checked:
    """Return the result of the held-out check of `task` on a clean checkout of `commit`.

    `holder` is the claimed task, if it is another one.
    Raises ConfigError (not on this machine), EnvSetupError (it cannot run here), LeaseLostError.
    """
    held_out.load(ctx, task)
    name = f"-{task.attempts + 1}{suffix}"
    with beside(ctx, commit) as clean:
        return check.while_held(ctx, holder or task, lambda watch: recheck.run_in(clean, task, name, watch))


def settle(ctx: Context) -> StopReason | None:
    """End this worker's session after its final check; return why nothing is left to do.

    It stays open while a completed task is red. None: the session has no final check to end.
    """
    with ctx.transaction() as tx:
        session = ctx.own_session(tx)
        reason = tx.no_work()
        if not session or not session.final_check or reason not in lifecycle.ALL_TAKEN:
            return None
        session = session._replace(final_check=False)
        tx.replace_session(session)
        reason = lifecycle.end(tx, ctx, session, reason)
        lifecycle.disable_hooks_when_finished(tx, ctx)
        return reason


@contextmanager
def _checkout(ctx: Context, commit: str) -> Iterator[Context]:
    """Yield a clean checkout of `commit` after its set-up, reusing that of the last slice.

    It is removed when no task is left to be checked on the commit.
    """
    trust.require(ctx, ctx.ask())
    with _place(ctx) as place:
        path, made, ready = place.worktree(0), place.path / MADE, place.path / READY
        git = worktrees.at(ctx.git, path) if made.is_file() and made.read_text() == commit else None
        if not git:
            ready.unlink(missing_ok=True)
            worktrees.remove(ctx.git, path)
            git = worker_worktrees.checkout_clean(ctx, path, commit).git
            fs.write(made, commit.encode(), durable=False)
        view = ctx.at(git)
        if not ready.exists():
            worker_worktrees.set_up(view)
            fs.write(ready, b"", durable=False)
        yield view
        if not recheck.unknown(ctx, commit):
            worker_worktrees.drop_checks(ctx, place)


@contextmanager
def _place(ctx: Context) -> Iterator[worker_worktrees.Place]:
    """Yield the directory of this worker's checks, locked against others.

    In a sandbox that closes the home, it is a temporary one, which is removed.
    """
    with ExitStack() as stack:
        try:
            place = worker_worktrees.directory_of(
                ctx, f"{worker_worktrees.CHECKS}{safe_name(ctx.owner.worker)}"
            )
            is_free = stack.enter_context(flock.attempt(place.lock))
        except OSError as error:
            parent = Path(tempfile.gettempdir()).resolve()
            if error.errno not in CLOSED or parent.is_relative_to(ctx.git.top):
                raise
            place, is_free = stack.enter_context(_temporary(ctx, parent)), True
        if not is_free:
            raise HeldError(
                "The final check goes on already.", f"Wait until it ends, then type: {rechecked.COMMAND}"
            )
        yield place


@contextmanager
def _temporary(ctx: Context, parent: Path) -> Iterator[worker_worktrees.Place]:
    place = worker_worktrees.Place(Path(tempfile.mkdtemp(prefix="harness-checks-", dir=parent)))
    try:
        yield place
    finally:
        if place.path.exists():
            worker_worktrees.drop_checks(ctx, place)


class Alone(NamedTuple):
    """A turn to check the branch for all: `goes_on` keeps it, and tells whether to go on.

    `waited`: another machine had it before. `has` False: the caller's `goes_on` ended the wait for it.
    """

    has: bool
    waited: bool
    goes_on: Callable[[], bool]


@contextmanager
def alone(ctx: Context, goes_on: Callable[[], bool], say: Say) -> Iterator[Alone]:
    """Yield once no other machine makes the final check of the branch, or `goes_on` returns False.

    Nothing is pushed in this turn, so it needs no mark in the remote.
    """
    import random  # noqa: PLC0415 (only machines wait so)

    shared, what, holder = ctx.shared, f"{FINAL} {ctx.merging.branch}", new_holder(ctx)
    assert shared is not None, "BUG: a list of one machine has no turns."
    seconds, clock = min(check.KEPT_SECONDS, ctx.lease_seconds), ctx.clock
    has = waited = False
    kept = clock.monotonic()

    def take() -> bool:
        # While the database is away, nobody else takes it either.
        with suppress(HarnessError):
            return shared.take_turn(what, holder, seconds) is not None
        return False

    def keeps() -> bool:
        nonlocal kept
        if clock.monotonic() - kept > seconds / check.RENEWALS_PER_LEASE:
            kept = clock.monotonic()
            take()
        return goes_on()

    try:
        while not (has := take()) and goes_on():
            if not waited:
                say("another machine makes the final check; this one waits for it")
            waited = True
            clock.sleep(AGAIN_SECONDS * (0.5 + random.random()))  # noqa: S311
        kept = clock.monotonic()
        yield Alone(has, waited, keeps)
    finally:
        with suppress(HarnessError):
            shared.leave_turn(what, holder)


def new_holder(ctx: Context) -> str:
    """Return a name for a holder of a turn, which begins with its machine."""
    return f"{ctx.machine} {ctx.owner.worker} {os.urandom(4).hex()}"


LOCK = "proving.lock"


def prove(ctx: Context, *, waits: bool = False) -> Strings:
    """Run the check of every unverified task in the work tree of `ctx`; return the results in words.

    One worker at a time does this for all of them: the others go on, or wait their turn with `waits`. What is
    not trusted here is left to other machines.
    Raises RefusedError if the list's commands have not been trusted; then nothing is run or recorded.
    """
    tasks = trust.known(ctx, ctx.ask().provable())
    if not tasks:
        return ()
    lock = ctx.root.private / LOCK
    with flock.alone(lock, make=True) if waits else flock.attempt(lock, make=True) as is_free:
        return () if is_free is False else tuple(_prove(ctx, tasks))


def _prove(ctx: Context, tasks: Sequence[Task]) -> list[str]:
    lines: list[str] = []
    for known in tasks:
        questions = ctx.ask()
        task = questions.task(known.id)
        if not task or task not in questions.provable():
            # Another worker has verified it meanwhile.
            continue
        with lifecycle.halting_on_error(ctx, task.id):
            trust.require(ctx, questions)
        passed, why = _check(ctx, task)
        commit = ctx.git.head()
        if not passed and questions.concurrent and ctx.target is None:
            passed, why, commit = _check_elsewhere(ctx, task) or (False, why, commit)
        with ctx.transaction() as tx:
            lines += _record(tx, ctx.session, task, commit, why, passed=passed)
    return lines


def _check(ctx: Context, task: Task) -> tuple[bool, str]:
    """Return whether the check passes, and its message."""
    asked = check_of(task)
    if not asked.is_given:
        return False, "it has no check"
    ctx.busy(f"checking {task.id} …")
    try:
        checked = check.run_check(ctx, task, log_name="unproven")
        if checked.passed and task.validation.hidden:
            checked = _held_out(ctx, task)
    except (ConfigError, EnvSetupError) as error:
        return False, error.message.rstrip(".")
    if checked.passed:
        return (
            True,
            f"its check passes: {quoting.one_line(asked.text or '')}",
        )
    # It becomes part of a sentence.
    return False, checked.failure().rstrip(".")


def _check_elsewhere(ctx: Context, task: Task) -> tuple[bool, str, str] | None:
    """Check `task` on the commit of another branch that names it; return that it passes, why, and the commit.

    Workers of the legacy protocol work on branches of their own, and record no commit.
    None if there is no such commit, or the check does not pass there.
    """
    base = ctx.git.commit_called(task.started_at_commit)
    others = history.commits(ctx.git, "--branches", "^HEAD", f"^{base}") if base else ()
    commit = next((each.oid for each in others if each.names(task.id)), None)
    if commit is None or not check_of(task).is_given:
        return None
    with beside(ctx, commit) as clean:
        passed, why = _check(clean, task)
    return (True, f"{why} at {commit[:12]}, which is on another branch", commit) if passed else None


def _held_out(ctx: Context, task: Task) -> Checked:
    """Run the held-out check of `task` on the content of the work tree."""
    git, commit = ctx.git, ctx.git.head()
    message = f"harness: to prove {task.id}\n"
    content = git.commit(ctx.capture(), [commit] if commit else [], message)
    with beside(ctx, content) as clean:
        return recheck.run_in(clean, task, "-unproven")


def _record(tx: Tx, session: Session, task: Task, commit: str | None, why: str, *, passed: bool) -> list[str]:
    current = tx.task(task.id)
    if not current or not arrows.may("confirm", current) or current.validation != task.validation:
        # Another worker was faster, or the task was edited again: the next session checks it.
        return []
    tx.replace(
        transitions.confirm(current, now=tx.now, commit=commit) if passed else transitions.doubt(current)
    )
    outcome = "completed" if passed else "pending again"
    text = f"{selection.UNPROVEN}; {quoting.one_line(why)}; {outcome}"
    tx.log("WARN", text, session.number, task.id)
    return [f"{task.id}: {text}"]
