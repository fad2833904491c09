"""`harness claim`: claim the next task, atomically."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.attempts import claim, dialogue, open_session, reconcile, requeue
from harness_lib.core import ownership, sessions, stops, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import Exit, RemoteAwayError
from harness_lib.rules.selection import UNPROVEN
from harness_lib.state.api import Questions
from harness_lib.task import Session, Task
from harness_lib.terminal import options
from harness_lib.text import some

SUMMARY = "take the next task and print its brief"
EXAMPLE = "harness claim"
HELP_ORDER = 120


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="claim this task instead of the next one")
    parser.add_argument(
        "--dry-run", action="store_true", help="show which task would be claimed and why; claim nothing"
    )
    parser.add_argument(
        "--wait",
        metavar="SEC",
        type=options.amount,
        default=0.0,
        help="wait up to SEC seconds while others hold the remaining tasks",
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    """Claim the task that was typed, or the next one in the protocol's order, and print its brief."""
    if args.dry_run:
        return _dry_run(ctx, args.id)
    deadline = ctx.clock.monotonic() + args.wait
    while True:
        reply = _claim(ctx, args.id)
        if reply.stop != "waiting" or reply.exit is not Exit.STOP or ctx.clock.monotonic() >= deadline:
            return reply
        ctx.busy("waiting for other workers …")
        ctx.clock.sleep(min(1.0, max(0.0, deadline - ctx.clock.monotonic())))


def _claim(ctx: Context, task_id: str | None) -> Reply:
    opened = open_session.Opened(None)
    waits = False
    while True:
        # Asked each time, as the user may have ended the session meanwhile.
        opened = _session(ctx, opened, waits=waits)
        session = opened.session
        if not session:
            return stops.reply(ctx.ask(), opened.stop, opened.recovered)
        ctx.session = session
        taken = claim.take(ctx, task_id)
        if taken.must_check:
            return stops.final_check(ctx.ask(), session, opened.recovered)
        if _is_interrupted(ctx, taken):
            report = reconcile.reclaim_interrupted(ctx, fresh=False)
            opened = opened._replace(
                recovered=(*opened.recovered, *report.recovered),
                warnings=(*opened.warnings, *report.warnings),
            )
            if report.recovered and not report.stop:
                continue
            taken = taken._replace(stop=report.stop or taken.stop)
        if taken.stop:
            said = (*opened.recovered, *filter(None, [taken.told]))
            if taken.untrusted:
                return stops.untrusted(ctx.ask(), taken.untrusted, said)
            return stops.reply(ctx.ask(), taken.stop, said)
        if taken.task:
            return _reply(ctx, session, taken, taken.task, opened)
        # Another worker was faster, or is checking a task that this one depends on.
        waits = True


def _is_interrupted(ctx: Context, taken: claim.Taken) -> bool:
    """Return whether something is to be recovered first.

    That is the end of an attempt of the caller, in which a command was killed, or a task whose lease ran out
    after this session was opened.
    """
    if taken.task:
        return taken.task.intent is not None
    return taken.stop == "waiting" and bool(ctx.ask().expired())


def _session(ctx: Context, before: open_session.Opened, *, waits: bool) -> open_session.Opened:
    """Return this worker's open session; open one as `harness start` does if there is none.

    The reply includes the messages of `before`.
    """
    questions = ctx.store.ask_to_change()
    sessions.refuse_other(questions, ctx)
    session = ctx.own_session(questions)
    is_open = session is not None and open_session.is_open(session, questions, ctx)
    is_unclaimed = open_session.has_unclaimed(questions)
    # A database then uses its connection for what follows.
    del questions
    if not session or not is_open:
        opened = open_session.open_session(ctx)
    elif is_unclaimed:
        opened = open_session.go_on(ctx)
    else:
        return open_session.prove(ctx, before._replace(session=session), waits=waits)
    recovered, warnings = (*before.recovered, *opened.recovered), (*before.warnings, *opened.warnings)
    return opened._replace(recovered=recovered, warnings=warnings)


def _reply(
    ctx: Context, session: Session, taken: claim.Taken, task: Task, opened: open_session.Opened
) -> Reply:
    questions = ctx.ask()
    brief = dialogue.brief(task, ctx, questions)
    if not taken.resumed and task.handback:
        brief = "\n".join(filter(None, (brief, _put_back(ctx, task))))
    found = ownership.elsewhere(ctx, task) if taken.resumed else None
    if found:
        brief = f"{brief}\n{found.message}\n{found.hint}: {found.command}"
    lines = [*opened.recovered, ("you hold this one already:\n" if taken.resumed else "") + brief]
    doubts = [doubt] if (doubt := trust.doubt(ctx, questions, task)) else []
    if not taken.resumed and (passes := _passes_already(questions, task)):
        doubts.append(passes)
    return Reply(
        "\n".join(lines),
        session=session.number,
        task=task,
        next=found.command if found else ownership.finish_command(ctx, task, session, questions),
        warnings=(*opened.warnings, *doubts),
        extra={"resumed": taken.resumed, "recovered": list(opened.recovered), "brief": brief},
    )


def _put_back(ctx: Context, task: Task) -> str:
    """Put the work that `task` was requeued with into the work tree; return a sentence for the brief."""
    try:
        return requeue.apply(ctx, task)
    except RemoteAwayError as error:
        return f"that work could not be fetched. {error.message}"


def _passes_already(questions: Questions, task: Task) -> str:
    """Return a note if the check of `task` is known to pass already. Does not run it."""
    known = questions.passed(task)
    if not known:
        return ""
    return (
        f"The check of {task.id} passes before any work: it has passed on this commit for {known.id}. "
        f"If there is nothing to do: {typed.harness('finish', task.id, '--already-done')}"
    )


def _dry_run(ctx: Context, task_id: str | None) -> Reply:
    """Say which task would be claimed, and why. Writes nothing."""
    questions = ctx.ask()
    held = ctx.held(questions)
    unproven = [] if held else trust.known(ctx, questions.provable())
    if unproven:
        names = some([task.id for task in unproven])
        return Reply(f"would first run the checks of {names}: {UNPROVEN}", next="harness claim")
    found = claim.Here(held) if held else claim.choose(ctx, questions, task_id)
    task = found.task
    if task is None:
        said = tuple(filter(None, [found.words(ctx)]))
        if found.untrusted and not questions.in_progress():
            return stops.untrusted(questions, found.untrusted, said)
        stop = questions.no_work() or ("waiting" if found.leaves_some else None)
        return stops.reply(questions, stop, said)
    reason = "you hold it already" if held else "; ".join(questions.why(task.id).reasons)
    untrusted = trust.waiting(ctx, questions)
    return Reply(
        f"would take {task.id}: {reason}\n{dialogue.brief(task, questions=questions)}",
        task=task,
        next=sessions.unless_held(questions, ctx, typed.harness("claim", *([task.id] if task_id else []))),
        warnings=tuple(filter(None, [trust.told(ctx, untrusted)])),
        extra={"untrusted": list(untrusted)},
    )
