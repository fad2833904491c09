"""`harness run`: the words of an unattended run, and of its budget."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import agents
from harness_lib.cli import run_screen
from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import Verb
from harness_lib.ops import budget, run
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.ops.run_options import Options
from harness_lib.rules import budget as amounts

MINUTE = 60.0
LIMITS = (
    ("--max-cost", "USD", float, "end the run when agents have cost this much"),
    ("--max-tokens", "N", int, "end the run when agents have used this many tokens"),
    ("--max-hours", "H", float, "end the run after this long"),
    ("--max-tasks", "N", int, "end the run after this many finished attempts"),
    ("--task-cost", "USD", float, "end an attempt that costs this much"),
    ("--task-tokens", "N", int, "end an attempt that uses this many tokens"),
    ("--task-hours", "H", float, "end an attempt that takes this long"),
)


def limits(parser: ArgumentParser) -> None:
    """Add the limits of a run and of a task; 0 is no limit."""
    for flag, metavar, kind, words in LIMITS:
        parser.add_argument(flag, metavar=metavar, type=kind, help=f"{words} (0: no limit)")


def limits_of(args: Namespace) -> dict[str, float]:
    """Return the limits that were typed."""
    names = [flag.removeprefix("--").replace("-", "_") for flag, *_ in LIMITS]
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-j", "--jobs", metavar="N", type=int, default=1, help="workers at once (default 1)")
    parser.add_argument(
        "--agent", choices=tuple(agents.ADAPTERS), help="default: the first that is installed"
    )
    parser.add_argument(
        "--agent-command",
        metavar="CMD",
        help="any other agent: a shell command, run in each task's work tree",
    )
    parser.add_argument("--model", help="the agent's model")
    parser.add_argument("--agent-arg", metavar="ARG", action="append", default=[], help="passed to the agent")
    parser.add_argument("--target", metavar="BRANCH", help="merge into this branch (default: the one here)")
    limits(parser)
    parser.add_argument(
        "--silence", metavar="MIN", type=float, default=15.0, help="end an agent that is silent so long"
    )
    parser.add_argument("--longest", metavar="MIN", type=float, default=240.0, help="end an agent after this")
    parser.add_argument(
        "--notify",
        metavar="CMD",
        help="a shell command for when a person is needed or all is over: HARNESS_EVENT is done, stopped, "
        "failed, stuck or limit, HARNESS_MESSAGE says more",
    )
    parser.add_argument("--no-final-check", action="store_true", help="do not run every check at the end")


def _run(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    options = Options(
        workers=args.jobs,
        agent=args.agent,
        agent_command=args.agent_command,
        model=args.model,
        extra=tuple(args.agent_arg),
        target=args.target,
        budget=amounts.read(limits_of(args)),
        silence=args.silence * MINUTE,
        longest=args.longest * MINUTE,
        final_check=not args.no_final_check,
    )
    with run_screen.watching_run(ctx, screen) as watch:
        return run.run(ctx, options, watch, notify=args.notify)


def _budget(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return budget.run(ctx, limits_of(args))


VERBS = (
    Verb(
        "run",
        "work unattended: start agents and go on until all is done (inside an agent: the same as start)",
        "harness run -j 2 --max-hours 8",
        _run,
        _arguments,
    ),
    Verb(
        "budget",
        "what a run may use up and has; changes its limits while it goes on",
        "harness budget --max-cost 20",
        _budget,
        limits,
    ),
)
