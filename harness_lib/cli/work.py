"""The verbs of working on a list: what an agent types."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import Verb
from harness_lib.ops import beat, checkpoint, claim, fail, finish, note, recover, release, start, stop
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.task import CATEGORIES


def _claim_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="this task instead of the next in order")
    parser.add_argument("--dry-run", action="store_true", help="say which and why, take nothing")
    parser.add_argument(
        "--wait", metavar="SEC", type=float, default=0.0, help="wait while others hold what is left"
    )


def _checkpoint_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")
    parser.add_argument("step", metavar="M/N", help="step M of N is done")
    parser.add_argument("text", help="what was done")


def _note_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="the task that taught it")
    parser.add_argument("text", help="what later tasks should know: a decision, a trap")


def _fail_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")
    parser.add_argument("--category", choices=CATEGORIES, default="TASK_EXEC")
    parser.add_argument("--message", required=True, help="what went wrong, for the next attempt to read")


def _held(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the task (default: the one you hold)")


def _stop_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--session", metavar="N", type=int, help="end session N, whoever opened it")


def _start(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    return start.run(ctx)


def _claim(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return claim.run(ctx, args.id, dry_run=args.dry_run, wait=args.wait)


def _checkpoint(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return checkpoint.run(ctx, args.id, args.step, args.text)


def _note(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return note.run(ctx, args.id, args.text)


def _finish(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return finish.run(ctx, args.id)


def _fail(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return fail.run(ctx, args.id, args.category, args.message)


def _release(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return release.run(ctx, args.id)


def _recover(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    return recover.run(ctx)


def _beat(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    return beat.run(ctx)


def _stop(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return stop.run(ctx, args.session)


VERBS = (
    Verb(
        "start", "open a session: recover, check the environment, name the next task", "harness start", _start
    ),
    Verb("claim", "take the next task and print its brief", "harness claim", _claim, _claim_arguments),
    Verb(
        "checkpoint",
        "record how far the work has come",
        'harness checkpoint task-001 2/4 "routes created, tests pending"',
        _checkpoint,
        _checkpoint_arguments,
    ),
    Verb(
        "note",
        "leave a line for the tasks that come later",
        'harness note task-001 "the test server needs a port of its own"',
        _note,
        _note_arguments,
    ),
    Verb(
        "finish",
        "run the check: commit and complete, or roll back",
        "harness finish task-001",
        _finish,
        _held,
    ),
    Verb(
        "fail",
        "give up this attempt: roll back, keep the work in a rescue ref",
        'harness fail task-001 --category TASK_EXEC --message "the API has no such call"',
        _fail,
        _fail_arguments,
    ),
    Verb("release", "hand a claim back; no attempt is counted", "harness release task-001", _release, _held),
    Verb("recover", "recover what was interrupted", "harness recover", _recover),
    Verb(
        "beat",
        "a sign of life: renew the lease of what you hold (hooks do it for you)",
        "harness beat",
        _beat,
    ),
    Verb("stop", "end the session", "harness stop", _stop, _stop_arguments),
)
