"""`harness stop`: end a session at any time."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from harness_lib import timestamps
from harness_lib.attempts import interrupted
from harness_lib.core import lifecycle, ownership, rechecked, sessions, stops
from harness_lib.core.context import Context, Reply
from harness_lib.errors import HarnessError, HeldError, UsageError
from harness_lib.rules import arrows, recovery, stats, transitions
from harness_lib.state.api import Questions, Tx
from harness_lib.task import Checkpoint, Session, Task

SUMMARY = "end the session"
EXAMPLE = "harness stop"
HELP_ORDER = 190

SAID = "as it stood at harness stop"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--session", metavar="N", type=int, help="end session N, whoever opened it")


def answer(ctx: Context, args: Namespace) -> Reply:
    """End this worker's session, or the one that was typed. It is no error if this worker has none."""
    ending = _ending(ctx, args.session)
    trees, warnings = _trees(ctx, ending) if ending else ({}, ())
    with ctx.transaction() as tx:
        session = _session(tx, ctx, args.session)
        if not session:
            then = sessions.unless_held(tx, ctx, _then(tx, ctx))
            return Reply("No session of yours is open.", next=then)
        held = ctx.held(tx) if args.session is None else None
        _record(tx, ctx, session, trees)
        lifecycle.close(tx, session)
        lifecycle.disable_hooks_when_finished(tx, ctx)
        line = stats.render(tx.counts())
        then = _then(tx, ctx, session)
    lines = [f"session {session.number} has ended; {line}"]
    if held:
        # Without its tree the work could not be seen: its directory may be gone.
        how = " with its work in place; the next session goes on with it" if held.id in trees else ""
        lines.append(f"{held.id} stays in progress{how or '; the next session recovers it'}.")
    return Reply("\n".join(lines), session=session.number, task=held, next=then, warnings=warnings)


def _ending(ctx: Context, number: int | None) -> Session | None:
    """Return the session that is to end. Raises RefusedError if it is that of a namesake elsewhere."""
    questions = ctx.store.ask_to_change()
    if number is None:
        ownership.refuse_namesake(ctx, questions)
    return _session(questions, ctx, number)


def _then(questions: Questions, ctx: Context, ended: Session | None = None) -> str:
    """Return the next command after `ended`: `harness start` only if a session would have work."""
    stop = None if questions.in_progress() else questions.no_work()
    if ended and ended.final_check and stop in lifecycle.ALL_TAKEN:
        return rechecked.COMMAND
    if stop is not None:
        return stops.reply(questions, stop).next or sessions.STATUS
    return sessions.STATUS if sessions.are_used_up(questions, ctx) else sessions.START


def _session(questions: Questions, ctx: Context, number: int | None) -> Session | None:
    """Return the caller's session, or session `number`."""
    if number is None:
        return ctx.own_session(questions)
    opened = questions.sessions()
    session = next((s for s in opened if s.number == number), None)
    if not session:
        open_ones = ", ".join(str(s.number) for s in opened) or "none"
        raise UsageError(f"Session {number} is not open (open: {open_ones}).", "See: harness status")
    if sessions.is_live_run(session):
        # It would go on without a session.
        raise HeldError(
            f"Session {number} is of a harness run that goes on (pid {session.pid}).",
            f"The user can end it: {sessions.how_to_end(session)}",
        )
    return session


def _trees(ctx: Context, session: Session) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the tree of each task that `session` has in progress, by id, and the problems.

    A broken repository must not prevent the end of a session.
    """
    trees: dict[str, str] = {}
    warnings: list[str] = []
    for task in _in_progress(ctx.ask(), session):
        try:
            git = interrupted.work_tree(ctx, task)
            if git:
                trees[task.id] = ctx.at(git).capture()
        except (HarnessError, OSError) as error:
            warnings.append(f"{task.id} got no checkpoint: {error}")
    return trees, tuple(warnings)


def _in_progress(questions: Questions, session: Session) -> list[Task]:
    return [task for task in questions.in_progress() if recovery.works_for(task.claimed_by, session.worker)]


def _record(tx: Tx, ctx: Context, session: Session, trees: Mapping[str, str]) -> None:
    """Add a checkpoint to the tasks in progress: it tells recovery that nothing was lost."""
    lease = ctx.lease_seconds if tx.concurrent else None
    for task in _in_progress(tx, session):
        if task.id not in trees or not arrows.may("checkpoint", task):
            continue
        last = task.checkpoints[-1] if task.checkpoints else Checkpoint(0, 1)
        point = Checkpoint(last.step, last.total, SAID, timestamps.render(tx.now), trees[task.id])
        tx.replace(transitions.checkpoint(task, point, now=tx.now, lease_seconds=lease))
        message = f'step={last.step}/{last.total} "{SAID}"'
        tx.log("CHECKPOINT", message, session.number, task.id)
