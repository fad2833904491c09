"""`harness status`: show the state of the list. Reads without a lock."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from harness_lib import timestamps
from harness_lib.core import quoting, rechecked, sessions
from harness_lib.core.context import Context, Reply
from harness_lib.errors import ConfigError, EnvSetupError, StateUnreadableError, UsageError
from harness_lib.runs import overview, run_files
from harness_lib.state import reading
from harness_lib.terminal.render import Screen

SUMMARY = "show the state of the list"
EXAMPLE = "harness status"
HELP_ORDER = 50
LOOK_ANYWAY_SECONDS = 10.0
NAME_LENGTH = 80


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every task, however many there are")
    parser.add_argument(
        "--machines", action="store_true", help="what each machine works on, if several share the list"
    )
    parser.add_argument(
        "--watch", action="store_true", help="follow what happens until nothing is left to do"
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    screen: Screen = args.screen
    if args.machines:
        return machines(ctx)
    if args.watch:
        screen.refuse_json("--watch", "harness status --json")
        return _watch(ctx, screen)
    if not screen.is_terminal:
        return run(ctx, everything=args.all)
    from harness_lib.terminal import drawing  # noqa: PLC0415 (a pipe does not pay for rich)

    view = overview.gather(ctx, None)
    drawing.console(screen.out).print(drawing.view(view, ctx.clock.time()))
    return _reply(ctx, view)._replace(message="")


def machines(ctx: Context) -> Reply:
    """Return a line for each machine that has worked on the list, and who merges now. Raises UsageError."""
    shared = ctx.shared
    if not shared:
        raise UsageError("One machine works on this list: it is in a file.", "harness status")
    turns = [(branch, holder.partition(" ")[0]) for branch, holder in shared.turns()]
    questions = ctx.ask()
    tasks = [task for task in questions.search() if task.machine]
    names = sorted({task.machine or "" for task in tasks})
    lines = []
    for name in names:
        mine = [task for task in tasks if task.machine == name]
        at_work = [task for task in mine if task.status == "in_progress"]
        done = sum(task.status == "completed" for task in mine)
        lines.append(f"{quoting.one_line(name, NAME_LENGTH)}: {done} completed, {len(at_work)} in progress")
        lines += [f"  {task.id} {overview.holder(task, questions.now)}" for task in at_work]
    for what, name in turns:
        verb = "merges" if what.startswith("refs/") else "is at it"
        lines.append(f"{what}: {quoting.one_line(name, NAME_LENGTH)} {verb} now")
    return Reply(
        "\n".join(lines) or "No machine has claimed a task yet.",
        next="harness store status",
        extra={"machines": names, "turns": dict(turns)},
    )


def run(ctx: Context, *, everything: bool = False) -> Reply:
    """Return counts, a line per task, the end of the log, and the sessions.

    Unless `everything` is true, the interesting tasks come first and the rest is only counted.
    """
    return _reply(ctx, overview.gather(ctx, None if everything else overview.SHOWN))


def _reply(ctx: Context, view: overview.View) -> Reply:
    """Turn `view` into the reply of the verb."""
    now = ctx.clock.time()
    return Reply(
        "\n".join(line.text for line in overview.lines(view, now)),
        # An agent types it at once: it would ask the same again and again.
        next=None if view.next == sessions.STATUS else view.next,
        warnings=view.warnings,
        extra={
            "root": str(ctx.root.path),
            "counts": view.counts._asdict(),
            "tasks": [reading.written(task) for task in view.shown],
            "more": view.counts.total - len(view.shown),
            "log": list(view.log),
            "session_count": view.session_count,
            "last_session": view.last_session,
            "sessions": list(view.people),
            "halts": list(view.halts),
            "look_at": list(view.look_at),
            "unproven": list(view.unproven),
            "untrusted": list(view.untrusted),
            "rechecks": list(view.rechecks),
            "active": ctx.store.hooks_are_on(),
            "runs": [_run(seen, now) for seen in view.runs],
        },
    )


def _run(seen: run_files.Seen, now: float) -> dict[str, object]:
    return {
        "pid": seen.pid,
        "workers": [row._asdict() for row in seen.state.rows.values()],
        "spent": seen.state.spent(now)._asdict(),
    }


def _watch(ctx: Context, screen: Screen) -> Reply:
    """Follow the list: live on a terminal, a line per change in a pipe. Ctrl-C or a signal ends it."""
    try:
        last = _watch_live(ctx, screen) if screen.is_redrawn else _watch_lines(ctx, screen)
    except KeyboardInterrupt:
        return Reply("", next="harness status")
    return Reply("" if not last else "Nothing is left to do.", next="harness status")


def _watch_live(ctx: Context, screen: Screen) -> overview.View | None:
    from harness_lib.terminal import drawing  # noqa: PLC0415 (a pipe does not pay for rich)

    views = follow(ctx, drawing.height(screen.out))
    last = next(views)

    with drawing.live(
        screen.out, lambda: drawing.watched(last, ctx.clock.time()), per_second=1, transient=False
    ) as live:
        for view in views:
            last = view
            live.refresh()
    return last


def _watch_lines(ctx: Context, screen: Screen) -> overview.View | None:
    view, last = None, ""
    for view in follow(ctx, overview.SHOWN):
        if (line := in_a_line(view)) != last:
            screen.data(f"{timestamps.render(ctx.clock.now())} {line}")
        last = line
    return view


def in_a_line(view: overview.View) -> str:
    """Return what a pipe is told of `view`: what is wrong, or the counts and the red tasks."""
    if view.warnings:
        return f"warning: {view.warnings[0]}"
    red = (line for line in view.rechecks if line.startswith(rechecked.RED))
    return "; ".join([overview.headline(view.counts), *red])


def follow(ctx: Context, limit: int | None) -> Iterator[overview.View]:
    """Yield the list now and whenever it looks different, until nothing is left to do.

    `limit` as in `overview.gather`. While the list cannot be read (the user is editing it), yield the
    previous view with a warning.
    """
    seen = _all_stamps(ctx)
    view = overview.gather(ctx, limit)
    yield view
    while view.runs or not view.is_finished:
        seen = _wait_for_change(ctx, seen)
        try:
            current = overview.gather(ctx, limit)
        except (ConfigError, EnvSetupError, StateUnreadableError) as error:
            current = view._replace(warnings=(error.message,))
        if current != view:
            yield current
        view = current


def _wait_for_change(ctx: Context, before: list[object]) -> list[object]:
    """Wait until a file of the list changes, or for a while: leases end and owners die without a change."""
    until = ctx.clock.monotonic() + LOOK_ANYWAY_SECONDS
    while (seen := _all_stamps(ctx)) == before and ctx.clock.monotonic() < until:
        ctx.clock.sleep(0.5)
    return seen


def _all_stamps(ctx: Context) -> list[object]:
    """Return stamps that change with the list or the state of a run."""
    return [ctx.store.stamp(), *run_files.stamps(ctx.root)]
