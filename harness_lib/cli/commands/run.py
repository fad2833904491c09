"""`harness run`: start agents, and go on until all is done; inside an agent: the same as `start`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import agents
from harness_lib.cli import amounts, limit_options, run_screen
from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.rules import budget, rechecks
from harness_lib.runs.options import Options
from harness_lib.verbs import run

SUMMARY = "work unattended: start agents and go on until all is done (inside an agent: the same as start)"
EXAMPLE = "harness run -j 2 --max-hours 8"
HELP_ORDER = 140

MINUTE = 60.0
JSON = """with --json each line is an object: first one with the key `event` for each event, then the reply.
The reply's `tasks` are all tasks that the run has worked on, each with
  id, outcome     completed, failed, or pending (handed back)
  commit          of the finished work, or null
  cost_usd, tokens, seconds
  warnings        what a person should look at in the finished work"""


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.epilog = f"{parser.epilog}\n\n{JSON}"
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
    limit_options.add(parser)
    parser.add_argument(
        "--silence",
        metavar="MIN",
        type=amounts.more_than_nothing,
        default=15.0,
        help="end an agent that is silent so long (default %(default)g)",
    )
    parser.add_argument(
        "--longest",
        metavar="MIN",
        type=amounts.more_than_nothing,
        default=240.0,
        help="end an agent after this (default %(default)g)",
    )
    parser.add_argument(
        "--max-file",
        metavar="MB",
        type=amounts.amount,
        default=100.0,
        help="ask a person before a larger file is committed (default 100; 0: never)",
    )
    parser.add_argument(
        "--notify",
        metavar="CMD",
        help="a shell command for when a person is needed or all is over: HARNESS_EVENT is done, stopped, "
        "failed, stuck or limit, HARNESS_MESSAGE says more",
    )
    green = parser.add_mutually_exclusive_group()
    green.add_argument(
        "--skip-green",
        action="store_true",
        help="complete a task without an agent where its check passes before any work",
    )
    green.add_argument(
        "--no-precheck",
        dest="precheck",
        action="store_false",
        help="run no check before an agent works; what passed already is then not named",
    )
    final = parser.add_mutually_exclusive_group()
    final.add_argument(
        "--final-check",
        choices=rechecks.SCOPES,
        help="which checks of completed tasks run again on a clean checkout at the end: all, those whose "
        f"files have changed since, or none (default: all; of more than {rechecks.MOST} tasks: changed)",
    )
    final.add_argument(
        "--no-final-check",
        dest="final_check",
        action="store_const",
        const="none",
        help="the same as --final-check none",
    )


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    """Answer `harness run`."""
    options = Options(
        workers=args.jobs,
        agent=args.agent,
        agent_command=args.agent_command,
        model=args.model,
        extra=tuple(args.agent_arg),
        target=args.target,
        budget=budget.read(limit_options.typed(args)),
        silence=args.silence * MINUTE,
        longest=args.longest * MINUTE,
        final_check=args.final_check,
        max_file=args.max_file,
        precheck=args.precheck,
        skip_green=args.skip_green,
    )
    with run_screen.watching_run(ctx, screen) as watch:
        return run.run(ctx, options, watch, notify=args.notify)
