"""`harness run`: inside an agent the same as `start`, so that an agent that types it starts no second one.

In a shell, or with an agent named, it is the supervisor.
"""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

from harness_lib import timestamps, typed
from harness_lib.attempts import open_session, target_branch
from harness_lib.core import project, quoting, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import HarnessError
from harness_lib.rules import events, rechecks, run_state
from harness_lib.rules.events import Claimed, Ended, Event, Gone, Notice, Queued, Stepped, Stuck, Unstarted
from harness_lib.runs import confinement, overview, settings, unattended
from harness_lib.runs.options import Options
from harness_lib.runs.scheduler import Watch
from harness_lib.terminal import options
from harness_lib.terminal.render import Screen
from harness_lib.text import counted, span

SUMMARY = "work unattended: start agents, and go on until every task is done (inside an agent: same as start)"
EXAMPLE = "harness run -j 2 --max-hours 8"
HELP_ORDER = 40
MINUTE = 60.0
ENDED = {"pending": "goes back"}
TICK = Notice("tick")
# Another run, as a hint names it; further options may follow.
_RUN = re.compile(r"\bharness run\b(?! --help)")
JSON = """with --json each line is an object: first one with the key `event` for each event, then the reply.
The reply's `tasks` are all tasks that the run has worked on, each with
  id, outcome     completed, failed, or pending (handed back)
  commit          of the finished work, or null
  cost_usd, tokens, seconds
  warnings        what the user should look at in the finished work"""

# What --help says of each setting.
_SETTINGS = {
    "jobs": "workers at once (default 1)",
    "agent": "default: the first that is installed",
    "agent-command": "any other agent: a shell command, run in each task's work tree",
    "model": "the agent's model",
    **options.LIMITS,
    "silence": "end an agent that is silent so long (default 15)",
    "longest": "end an agent after this (default 240)",
    "max-file": "ask the user before a larger file is committed (default 100; 0: never)",
    "notify": "a shell command, run when the user is needed or the run ends: HARNESS_EVENT is done, stopped, "
    "failed, stuck or limit, HARNESS_MESSAGE says more",
    "protect": "files that no task may change, from the top of the project; may be repeated",
    "sandbox": "confine agents and checks to their work trees: auto where this machine can, require, or with "
    "the engine named; default auto, on macOS off",
    "allow-write": "a path that may be written although agents and checks are in a sandbox",
    "allow-env": "a credential, such as GH_TOKEN, that agents and checks get although they are in a sandbox",
    "network": "the network of checks in a sandbox: open (default), loopback only, or none",
    "merge": "where finished work goes: to the branch (local, the default), and its remote (push); to a "
    "pull request; or no further than the branch harness/<branch> (branch)",
    "merge-command": "opens a pull request (default: gh or glab, as installed)",
    "final-check": "which checks of completed tasks run again on a clean checkout at the end: all, those "
    f"whose files have changed since, or none (default: all; of more than {rechecks.MOST} tasks: changed)",
}


def arguments(parser: ArgumentParser) -> None:
    parser.epilog = f"{parser.epilog}\n\n{JSON}"
    green = parser.add_mutually_exclusive_group()
    final = parser.add_mutually_exclusive_group()
    for name, words in _SETTINGS.items():
        also = ("-j",) if name == "jobs" else ()
        options.add_setting(final if name == "final-check" else parser, name, words, *also)
    final.add_argument(
        "--no-final-check",
        dest="final_check",
        action="store_const",
        const="none",
        help="the same as --final-check none",
    )
    # Between two groups, as Python before 3.13 writes the usage of two in a row wrongly.
    parser.add_argument("--agent-arg", metavar="ARG", action="append", default=[], help="passed to the agent")
    green.add_argument(
        "--skip-green",
        action="store_true",
        help="complete a task without an agent where its check passes before any work",
    )
    green.add_argument(
        "--no-precheck",
        dest="precheck",
        action="store_false",
        help="start agents without running the checks first; checks that pass already are then not named",
    )
    parser.add_argument(
        "--review", action="store_true", help="finished work waits until you accept or return it"
    )
    parser.add_argument("--html", metavar="FILE", help="keep a page about the run up to date, for a browser")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, start nothing")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Open a session for the calling agent, or run agents until nothing is left to do."""
    screen: Screen = args.screen
    given = {name: getattr(args, name.replace("-", "_")) for name in settings.KEYS}
    if args.agent is None and args.agent_command is None and not args.dry_run and ctx.agent:
        return open_session.reply(ctx)
    found = settings.effective(ctx, given)
    value = {name: setting.value for name, setting in found.items()}
    chosen = Options(
        workers=value["jobs"],
        agent=value["agent"],
        agent_command=value["agent-command"],
        model=value["model"],
        extra=tuple(args.agent_arg),
        budget=run_state.read_budget(
            {name: value[name.replace("_", "-")] for name in run_state.Budget._fields}
        ),
        silence=value["silence"] * MINUTE,
        longest=value["longest"] * MINUTE,
        final_check=value["final-check"],
        max_file=value["max-file"],
        precheck=args.precheck,
        skip_green=args.skip_green,
        sandbox=confinement.Asked(
            value["sandbox"], tuple(value["allow-write"]), tuple(value["allow-env"]), value["network"]
        ),
        review=args.review,
        protect=tuple(value["protect"]),
        merge=value["merge"],
        merge_command=value["merge-command"],
        notify=value["notify"],
    )
    if args.dry_run:
        return _dry_run(ctx, chosen)
    with _naming(again := _again(args)), watching(ctx, screen) as watch:
        if args.html:
            ended = _with_page(ctx, ctx.cwd / args.html, chosen, watch)
        else:
            ended = unattended.run(ctx, chosen, watch)
    return ended._replace(next=again) if ended.next == "harness run" else ended


def _with_page(ctx: Context, page: Path, chosen: Options, watch: Watch) -> Reply:
    """Run agents, and keep the `page` about the run up to date."""
    from harness_lib.terminal import report_page  # noqa: PLC0415 (few ask for a page)

    # What is wrong with the file is said before anything begins.
    report_page.write(ctx, page, live=True)
    try:
        return unattended.run(ctx, chosen, report_page.renewing(ctx, page, watch))
    finally:
        with suppress(HarnessError):
            report_page.write(ctx, page)


@contextmanager
def _naming(again: str) -> Iterator[None]:
    """Let the hint of an error name `again` in the place of `harness run`."""
    try:
        yield
    except HarnessError as error:
        error.hint = error.hint and _RUN.sub(lambda _: again, error.hint)
        raise


def _again(args: Namespace) -> str:
    """Return the command of another run with the options that were typed.

    Without them it would merge, spend or reach what this run was told not to.
    """
    words = []
    for name in (*settings.KEYS, "agent-arg", "html"):
        value = getattr(args, name.replace("-", "_"))
        for each in value if isinstance(value, list) else () if value is None else (value,):
            text = str(each).removesuffix(".0") if isinstance(each, float) else str(each)
            words += [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]
    flags = {"--review": args.review, "--skip-green": args.skip_green, "--no-precheck": not args.precheck}
    words += [flag for flag, is_typed in flags.items() if is_typed]
    return typed.harness("run", *words)


def _dry_run(ctx: Context, chosen: Options) -> Reply:
    """Return what a run would start with; raises the errors that would stop it before it begins."""
    run_ctx, chosen = unattended.prepare(ctx, chosen)
    assert run_ctx.target is not None
    questions = run_ctx.ask()
    ready = trust.known(ctx, questions.claimable())
    limits = ", ".join(run_state.usage(chosen.budget, run_state.Spent()))
    lines = [
        f"agent: {chosen.agent or chosen.agent_command}; workers: {chosen.workers}",
        f"merges into: {target_branch.short(run_ctx.target)}{_then(run_ctx)}",
        f"limits: {limits}",
        *(confinement.said(run_ctx.env) if chosen.sandbox.mode != "off" else ["sandbox: off"]),
        f"tasks: {overview.headline(questions.counts())}",
        *(f"would begin with {overview.one_line(task)}" for task in ready[: chosen.workers]),
    ]
    return Reply(
        "\n".join(lines),
        # The options that were typed are part of what begins it.
        next=None if ready else "harness show",
        warnings=(
            *questions.warnings,
            *project.without_check(questions.search("pending")),
            *project.in_common(ctx, questions.search()),
        ),
        extra={"dry_run": True, "ready": [task.id for task in ready]},
    )


def _then(ctx: Context) -> str:
    """Return what happens to merged work."""
    merging = ctx.merging
    name = target_branch.short(merging.branch)
    match merging.mode:
        case "turns":
            pushed = target_branch.short(merging.onto) or name
            then = f"; a pull request proposes it for {name} ({merging.command})" if merging.command else ""
            return f", and pushes it to {merging.remote}/{pushed} in turn with other machines{then}"
        case "push":
            return f", and pushes it to {merging.remote}/{name}"
        case "pull-request":
            return f", which a pull request proposes for {merging.remote}/{name} ({merging.command})"
        case "local" | "branch":
            return ""


# -- what is shown while it goes on


@contextmanager
def watching(ctx: Context, screen: Screen) -> Iterator[Watch]:
    """Yield what is to be called with each event of the run that goes on meanwhile."""
    if screen.is_redrawn:
        from harness_lib.terminal import drawing  # noqa: PLC0415 (a pipe does not pay for rich)

        with drawing.watching_run(ctx, screen.out, sentences) as watch:
            yield watch
        return

    def show(event: Event, _state: run_state.RunState) -> None:
        # A full disk or a reader that is gone ends no run: its record and `harness status` have it all.
        with suppress(OSError):
            if not screen.json:
                for text in sentences(event):
                    screen.data(f"{timestamps.render(_moment(event.at))} {text}")
            elif event.news != TICK:
                screen.data(json.dumps(events.write(event)))

    yield show


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, timezone.utc)


def sentences(event: Event) -> Iterator[str]:
    """Yield the lines that the user reads of `event`; of what is of no interest to them there are none."""
    who = f"[{event.worker}] " if event.worker else ""
    texts = [_sentence(event)]
    if isinstance(event.news, Ended):
        label = "look at" if event.news.status == "completed" else "warning"
        texts += [f"{label}: {text}" for text in event.news.warnings]
    for text in filter(None, texts):
        yield who + quoting.one_line(text, 500)


def _sentence(event: Event) -> str | None:
    news = event.news
    if isinstance(news, Claimed):
        return f"{news.task} attempt {news.attempt}: {news.title}"
    if isinstance(news, Queued):
        return f"{news.task} has passed its check and waits to be merged"
    if isinstance(news, Ended):
        how = ENDED.get(news.status, news.status) + _committed(news)
        return f"{news.task} {how}{news.message and f': {news.message}'}"
    if isinstance(news, Stepped) and news.message:
        return f"{_step(news, event.at)}: {news.message}"
    if isinstance(news, Gone):
        is_death = news.code and not isinstance(news, Unstarted)
        return f"the worker has died: {news.message}" if is_death else None
    return news.message or None if isinstance(news, (Notice, Stuck)) else None


def _committed(news: Ended) -> str:
    if news.status != "completed" or not news.commit or not news.files:
        return ""
    return f" (commit {news.commit[:12]}, {counted(news.files, 'file')})"


def _step(news: Stepped, at: float) -> str:
    step = overview.STEPS.get(news.step, news.step)
    if news.until is None:
        return step
    wait = span(news.until - at)
    return f"{step}, goes on at {timestamps.render(_moment(news.until))} (in {wait})"
