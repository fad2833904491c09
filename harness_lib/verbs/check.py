"""`harness check`: report problems of the list, and the commands that it would run.

Never writes and takes no lock, unless it is to repair or to restore the list.
Source: docs/design.md, "Reading is strict" and "Trust".
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.core import ownership, project, rechecked, rights, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, Exit, RefusedError
from harness_lib.state import codec
from harness_lib.state.api import Examined, Questions
from harness_lib.text import counted, first

SUMMARY = "validate the list, and show the commands that it runs"
EXAMPLE = "harness check"
HELP_ORDER = 420
CORRECT = (
    "Correct the named fields in the file, then look again; "
    "the user can put the last good list, if one is left, in its place: harness check --restore"
)
SHOWN = 15


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="show every problem and command in full")
    parser.add_argument(
        "--repair", action="store_true", help="restore a broken list, and repair what a crash left behind"
    )
    parser.add_argument(
        "--restore",
        action="store_true",
        help="for the user: replace an invalid list, or one that another program has written, "
        "by the last good one (a copy is kept)",
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    if args.restore:
        return put_back(ctx)
    return repair(ctx) if args.repair else run(ctx, everything=args.all)


def run(ctx: Context, *, everything: bool) -> Reply:
    """Return all problems, warnings, and the list's commands.

    Exit 1 if there is a problem, or a completed task whose last re-check failed.
    Long lists and commands are cut with a note; `everything` shows them in full.
    """
    examined = ctx.store.examine()
    questions = examined.questions
    doubts = list(project.doubts(ctx, questions)) if questions else []
    commands = trust.commands(ctx, questions) if questions else []
    trusted = questions is not None and _is_trusted(ctx, questions)
    red = rechecked.red(ctx, questions.search("completed")) if questions else []
    limit = None if everything else SHOWN
    lines = [
        *_bounded([str(problem) for problem in examined.problems], limit),
        *_bounded([f"warning: {doubt}" for doubt in doubts], limit),
        *(rechecked.lines(ctx, questions) if questions else []),
        *(trust.listing(commands, None if everything else "harness check --all") if commands else []),
        _verdict(ctx, examined, trusted=trusted),
    ]
    return Reply(
        "\n".join(lines),
        exit=Exit.CHECK_FAILED if examined.problems or red else Exit.DONE,
        next=typed.harness("retry", red[0].id) if red else _next(ctx, examined, trusted=trusted),
        warnings=tuple(questions.warnings) if questions else (),
        extra={
            "problems": [problem._asdict() for problem in examined.problems[:limit]],
            "doubts": doubts[:limit],
            "red": [task.id for task in red[:limit]],
            "commands": len(commands),
            "trusted": trusted,
        },
    )


def _bounded(lines: list[str], limit: int | None) -> list[str]:
    return lines if limit is None else first(lines, limit, " of these (harness check --all)")


def _verdict(ctx: Context, examined: Examined, *, trusted: bool) -> str:
    if examined.problems or not examined.questions:
        found = f"{counted(len(examined.problems), 'problem')} in {ctx.store.list_file}"
        # A lost list has its own command, and a readable list is not replaced.
        hint = codec.cure(examined.problems, CORRECT)
        return found if examined.is_lost or examined.questions else f"{found}\n{hint}"
    doubt = "" if trusted else f"; {_which(ctx, examined.questions)} have not been trusted on this machine"
    return f"{ctx.store.list_file} is valid ({counted(examined.questions.counts().total, 'task')}){doubt}"


def _which(ctx: Context, questions: Questions) -> str:
    try:
        is_rest_trusted = trust.is_trusted(ctx, questions)
    except EnvSetupError:
        is_rest_trusted = False
    return "some of its commands" if is_rest_trusted else "its commands"


def _next(ctx: Context, examined: Examined, *, trusted: bool) -> str | None:
    if examined.is_lost:
        return "harness check --repair"
    rings = examined.questions.cycles() if examined.questions else ()
    if rings:
        return typed.harness("show", rings[0][0])
    if codec.of_newer(examined.problems):
        return None
    if examined.problems:
        return "harness start" if examined.is_only_unproven and trusted else "harness check"
    if trusted:
        return "harness status"
    # Only the user may do this: an agent would be refused.
    return None if rights.acting_agent(ctx) else "harness trust"


def _is_trusted(ctx: Context, questions: Questions) -> bool:
    """Return whether the commands may run; without a repository, none may."""
    try:
        return trust.is_whole(ctx, questions)
    except EnvSetupError:
        return False


def repair(ctx: Context) -> Reply:
    """Restore a broken or missing list, end a torn log line, and clean up temporary and generated files."""
    ownership.refuse_supervised(ctx, "harness check --repair")
    done, warnings = ctx.store.repair()
    return Reply(
        "\n".join(done) or "Nothing needed repair.",
        next="harness check",
        warnings=tuple(warnings),
        extra={"repaired": done},
    )


def put_back(ctx: Context) -> Reply:
    """Replace a list that is invalid, or that another program has replaced, as the user has decided."""
    agent = rights.known_agent(ctx)
    if agent is not None:
        raise RefusedError(
            f"Only the user can decide that an edit of the list is given up; this is a session of {agent}.",
            "Tell the user what is wrong (harness check), and that this puts the last good list back:"
            " harness check --restore",
        )
    examined = ctx.store.examine()
    if not examined.problems and not (examined.questions and examined.questions.warnings):
        raise RefusedError(
            f"{ctx.store.list_file} is valid; nothing to restore.", "Look at it with: harness status"
        )
    done = ctx.store.restore()
    return Reply("\n".join(done), next="harness check", extra={"repaired": list(done)})
