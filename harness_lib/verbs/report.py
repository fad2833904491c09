"""`harness report`: what the last runs did, in at most 24 lines: what needs the user comes first."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from datetime import datetime, timedelta

from harness_lib import timestamps, typed
from harness_lib.core.context import Context, Reply
from harness_lib.errors import UsageError
from harness_lib.runs import report_facts, report_text
from harness_lib.system.processes import environment

SUMMARY = "show what the last runs did: what needs you, what is done, what it cost, what comes next"
EXAMPLE = "harness report"
HELP_ORDER = 205
UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"([0-9]{1,5})([mhd])")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="everything, in as many lines as it takes")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="runs since then: 8h, 2d, 2026-11-23, 2026-11-23T22:00 (default: since the list was complete)",
    )
    parser.add_argument("--html", metavar="FILE", help="write one page to look at in a browser")
    parser.add_argument("--format", choices=("text", "markdown"), default="text", help="(default: text)")


def answer(ctx: Context, args: Namespace) -> Reply:
    since = None if args.since is None else moment(args.since, ctx.clock.now()).timestamp()
    if args.html:
        from harness_lib.terminal import report_page  # noqa: PLC0415 (few ask for a page)

        facts = report_page.write(ctx, ctx.cwd / args.html, since)
        return Reply(f"The page is {args.html}.", extra={"report": report_facts.document(facts)})
    facts = report_facts.gather(ctx, since)
    if args.format == "markdown":
        lines = report_text.markdown(facts)
    else:
        lines = report_text.lines(facts, width=environment.columns(report_text.WIDTH), whole=args.all)
    return Reply("\n".join(lines), extra={"report": report_facts.document(facts)})


def moment(text: str, now: datetime) -> datetime:
    """Return the moment that `text` names: so long before `now`, or a date and time of the local zone."""
    if match := _SPAN.fullmatch(text):
        return now - timedelta(**{UNITS[match[2]]: int(match[1])})
    try:
        naive = datetime.fromisoformat(text)
        return naive.astimezone() if not naive.tzinfo else naive
    except ValueError:
        pass
    try:
        return timestamps.parse(text)
    except ValueError as error:
        raise UsageError(
            f"--since {text!r} is not a point in time.",
            f"For example: {typed.harness('report', '--since', '8h')}, or --since 2026-11-23",
        ) from error
