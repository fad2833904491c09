"""Write a report as text of at most 24 lines, or as Markdown: decisions first, then what is done."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone

from harness_lib import typed
from harness_lib.core import quoting
from harness_lib.rules import attempts, run_records
from harness_lib.runs.report_decisions import Decision
from harness_lib.runs.report_facts import Facts, Merged, Work
from harness_lib.text import counted, cut, some, span

MOST_LINES = 24
WIDTH = 100
LEAST_WIDTH = 80
LABEL = 28
# Of so many branches a screen says what was merged there.
BRANCHES = 3
WRAPPED = 3
LEAST_ROOM = 12
SHORT = 12
# These have several commands, or one that is long.
ASK = ("halted", "denied")
ALL = typed.harness("report", "--all")
STATUS = "harness status"
HOW = {
    "interrupted": "stopped by you",
    "limit": "ended by a limit",
    "stuck": "ended, as it needed you",
    "max_sessions": "ended by the limit of sessions",
}
MILLION = 1_000_000
COLUMNS = ("time", "cost", "tries", "files")


def lines(facts: Facts, first: Sequence[str] = (), *, width: int = WIDTH, whole: bool = False) -> list[str]:
    """Return the report after the lines `first`; without `whole` it has at most MOST_LINES, these included.

    No line is longer than `width`, or 80 characters if that is less; with `whole` none is cut.
    """
    width, most = (10 * WIDTH, sys.maxsize) if whole else (max(width, LEAST_WIDTH), MOST_LINES)
    time, *rest = header(facts, None if whole else BRANCHES)
    if not whole:
        facts = facts._replace(decisions=tuple(_together(facts.decisions)))
    line = f"{time}  {money(facts)}"
    top = [line] if len(line) <= width else [*_wrapped(time, width), cut(money(facts), width)]
    head = [row for line in first for row in _wrapped(line, width)]
    head += [*top, *(row for line in rest for row in _wrapped(line, width))]
    waiting = [cut(f"  waiting for these: {some(facts.waiting)}", width)] if facts.waiting else []
    names = [*map(_label, facts.decisions), *map(_title, facts.done)]
    label = max(map(len, names), default=0)
    rows, done = list(_decisions(facts, width, label)), list(_done(facts.done, label))
    # Beside the head there are an empty line, two headings, what waits, and the last line.
    beside = bool(rows or done) + bool(rows) + bool(done) + len(waiting) + 1
    # Below each heading there is a line.
    head = head[: most - beside - bool(rows) - bool(done)]
    room = most - len(head) - beside
    shown = _fitting(rows, max(1, room - min(3, len(done))))
    body = [*(["", "LOOK AT"] if rows else [""] if done else []), *shown, *waiting]
    if done:
        body.append(f"{'DONE':<{label + 2}}{_columns(COLUMNS)}")
        body += _dearest(facts.done, done, max(1, room - len(shown)))
    return [*head, *body, _again(facts, width)]


def _wrapped(text: str, width: int) -> list[str]:
    """Return `text` in at most WRAPPED lines of `width` characters."""
    whole = quoting.one_line(text, (WRAPPED + 1) * width)
    wrapper = textwrap.TextWrapper(
        width, break_long_words=False, break_on_hyphens=False, max_lines=WRAPPED, placeholder=" …"
    )
    return [cut(row, width) for row in wrapper.wrap(whole)]


def header(facts: Facts, branches: int | None = None) -> Iterator[str]:
    """Yield when it was, how many tasks are done, where the work is, and how the checks stand.

    Of more than so many branches the others are named.
    """
    yield f"{when(facts)} ({_ran(facts.runs)})"
    lost = f"; dropped since: {some(list(facts.dropped))}" if facts.dropped else ""
    rescued = f" ({facts.rescued} rescued: harness rescue list{lost})" if facts.rescued or lost else ""
    missing = sum(each.kind == "missing" for each in facts.decisions)
    safe = (
        f"The commits of {counted(missing, 'task')} are not on the branch" if missing else "Nothing was lost"
    )
    yield f"{counts(facts)}. {safe}{rescued}."
    merged = [each for each in (facts.merged, *facts.elsewhere) if each and each.after]
    yield from map(branch, merged[:branches])
    if others := [quoting.one_line(each.branch, 60) for each in merged[len(merged[:branches]) :]]:
        yield f"Merged into other branches, too: {some(others)}: {ALL}"
    yield checks(facts)
    if facts.machines:
        named = [f"{quoting.one_line(name, 60)} {count}" for name, count in facts.machines]
        yield f"Finished on: {some(named)}"
    told = (each for ran in facts.runs[-1:] for each in ran.told if each.kind == "sandbox")
    yield from (each.message for each in told if each.message.startswith("sandbox: "))


def when(facts: Facts) -> str:
    """Return the time of the runs, in the local time zone."""
    began, ended = local(facts.began), local(facts.ended)
    if began.date() == ended.date():
        return f"{began:%d %b}, {began:%H:%M} to {ended:%H:%M}"
    if (ended.date() - began.date()).days == 1:
        return f"Night of {began:%d %b}, {began:%H:%M} to {ended:%H:%M}"
    day = "%d %b" if began.year == ended.year else "%d %b %Y"
    return f"{began.strftime(day)}, {began:%H:%M} to {ended.strftime(day)}, {ended:%H:%M}"


def local(at: float) -> datetime:
    """Return the moment `at`, in seconds, in the time of this machine."""
    return datetime.fromtimestamp(at, timezone.utc).astimezone()


def _ran(runs: Sequence[run_records.Ran]) -> str:
    if not runs:
        return "no run has a record"
    said = []
    killed = [ran for ran in runs if ran.killed]
    if killed:
        who = "it" if len(runs) == 1 else "one" if len(killed) == 1 else str(len(killed))
        were = "were" if len(killed) > 1 else "was"
        at = some([f"{local(ran.last):%H:%M}" for ran in killed])
        resumed = " and resumed" if runs[-1] is not killed[-1] else ""
        said.append(f"{who} {were} killed at {at}{resumed}")
    if runs[-1].alive:
        said.append("it goes on" if len(runs) == 1 else "the last goes on")
    elif runs[-1].closed and runs[-1].closed.why in HOW:
        said.append(f"{'' if len(runs) == 1 else 'the last '}{HOW[runs[-1].closed.why]}")
    return "; ".join([counted(len(runs), "run"), *said])


def money(facts: Facts) -> str:
    """Return the cost and the tokens of everything, as far as agents tell."""
    cost = f"${facts.cost:,.2f}" if facts.cost else ""
    number = f"{facts.tokens / MILLION:.1f} M" if facts.tokens >= MILLION else f"{facts.tokens:,}"
    tokens = f"{number} tokens" if facts.tokens else ""
    return "   ".join(filter(None, (cost, tokens))) or "no cost reported"


def counts(facts: Facts) -> str:
    """Return how many tasks there are of each kind, without zeros."""
    n = facts.counts
    look = len({each.task for each in facts.decisions if each.kind in ("red", "look", "missing")})
    among = [
        f"{facts.done_already} done already" if facts.done_already else "",
        f"{look} to look at" if look else "",
    ]
    inner = ", ".join(filter(None, among))
    halted = sum(each.kind == "halted" for each in facts.decisions)
    # The others failed for good only because they depend on these.
    failed = sum(each.kind == "failed" for each in facts.decisions)
    pending = n.pending - halted
    parts = [
        f"{n.completed} completed" + (f" ({inner})" if inner else ""),
        f"{halted} waiting for you" if halted else "",
        f"{failed} failed for good" if failed else "",
        f"{n.permanent - failed} blocked" if n.permanent > failed else "",
        f"{n.retryable} failed, to be tried again" if n.retryable else "",
        f"{pending} pending" + (f" ({n.blocked} wait for a failed one)" if n.blocked else "")
        if pending > 0
        else "",
        f"{n.in_progress} in progress" if n.in_progress else "",
    ]
    return f"{counted(n.total, 'task')}: {', '.join(filter(None, parts))}"


def branch(merged: Merged) -> str:
    """Return where the work is, and how much of it."""
    name, after = quoting.one_line(merged.branch, 60), (merged.after or "")[:SHORT]
    if merged.before is None or merged.before == merged.after:
        return f"{name} is at {after}" + ("; nothing was merged." if merged.before else ".")
    size = f"{counted(merged.size.files, 'file')} (+{merged.size.added} -{merged.size.removed})"
    span = f"{merged.before[:SHORT]}..{after}"
    return f"{name}: {counted(merged.commits, 'commit')}, {size}: {typed.git('log', '--stat', span)}"


def checks(facts: Facts) -> str:
    """Return how the last final check went, and whether an attempt changed what judges it."""
    checked = facts.checked
    final = (
        f"{checked.passed} of {checked.of} pass on {checked.commit[:SHORT]}" if checked else "none ran again"
    )
    names = [f"{task} {quoting.one_line(file, 60)}" for task, file in facts.touched]
    changed = (
        f"attempts changed what checks them: {some(names)}"
        if names
        else "no attempt changed a file of its check"
    )
    return f"Final check: {final}; {changed}."


def _together(decisions: Iterable[Decision]) -> Iterator[Decision]:
    """Yield `decisions`, but one for all tasks that wait for the same: a path in the sandbox, a program."""
    alike: dict[object, list[Decision]] = {}
    for each in decisions:
        key: object = (each.kind, each.what, each.commands[0]) if each.task else id(each)
        if _is_retried(each):
            key = (each.kind, each.what.replace(each.task, ""))
        alike.setdefault(key, []).append(each)
    for first, *others in alike.values():
        title = f"and {counted(len(others), 'more task')}" if others else first.title
        commands = first.commands[:1] if others else first.commands
        if others and _is_retried(first):
            commands = (typed.harness("retry", first.task, *(each.task for each in others)),)
        yield first._replace(title=title, commands=commands)


def _is_retried(decision: Decision) -> bool:
    """Return whether the task of `decision` goes on once the user has seen to the machine."""
    return decision.kind == "halted" and decision.commands == (typed.harness("retry", decision.task),)


def _decisions(facts: Facts, width: int, most_label: int) -> Iterator[list[str]]:
    """Yield the lines of each decision: what it is, and its command behind it or all of them below it."""
    spent = {each.task: each for each in facts.others}
    plain = [each.commands[0] for each in facts.decisions if each.kind not in ASK]
    column = max((len(each) for each in plain if len(each) <= width // 2), default=0)
    for each in facts.decisions:
        before = f"  {_label(each):<{most_label}}  " if each.task else "  "
        left, (first, *others), asks = width - len(before), each.commands, each.kind in ASK
        fits = len(each.what) + 2 + max(0 if asks else column, len(first)) <= left
        if asks and (others or not fits):
            yield [cut(f"{before}{quoting.one_line(each.what, width)}", width), *_below(each, width)]
        elif not each.task and not fits:
            command = _command(first, each, width - 6)
            yield [*(f"  {line}" for line in _wrapped(each.what, left)), f"      {command}"]
        else:
            command = _command(first, each, left - 2 - LEAST_ROOM)
            room = max(LEAST_ROOM, left - 2 - max(column, len(command)))
            is_failure = each.kind in ("failed", "again")
            what = _failure(each.what, spent.get(each.task), room) if is_failure else each.what
            yield [f"{before}{quoting.one_line(what, room):<{min(room, WIDTH)}}  {command}"]


def _below(decision: Decision, width: int) -> list[str]:
    """Return the command that shows the work of a decision, and those that answer it, below it."""
    (first, *others), see = decision.commands[:2], decision.commands[2:]
    one = "   or: ".join(decision.commands[:2])
    rows = [*see, *([one] if len(one) + 6 <= width else [first, *(f"or: {each}" for each in others)])]
    return list(dict.fromkeys(f"      {_command(row, decision, width - 6)}" for row in rows))


def _command(command: str, decision: Decision, most: int) -> str:
    """Return `command` where it has at most `most` characters, else one that shows more of the decision."""
    show = typed.harness("show", decision.task) if decision.task else STATUS
    return next((each for each in (command, show) if len(each) <= most), STATUS)


def _failure(what: str, work: Work | None, room: int) -> str:
    """Return how often a task failed, with time and cost if there is room, and both ends of the reason."""
    tries, _, reason = what.partition(": ")
    short, comma, again = tries.partition(", ")
    cost = f", ${work.cost:.2f}" if work and work.cost else ""
    timed = f"{short} in {span(work.seconds)}{cost}{comma}{again}" if work and work.seconds else tries
    said = next((each for each in (timed, tries) if len(f"{each}: {reason}") <= room), short)
    left = room - len(f"{said}: ")
    return f"{said}: {attempts.line(reason, left)}" if left >= LEAST_ROOM else what


def _label(decision: Decision) -> str:
    return quoting.one_line(f"{decision.task} {decision.title}", LABEL) if decision.task else ""


def _title(work: Work) -> str:
    return quoting.one_line(f"{work.task} {work.title}", LABEL)


def _fitting(rows: Sequence[Sequence[str]], room: int) -> list[str]:
    """Return the first rows that have room, and how many more there are."""
    shown: list[str] = []
    for at, row in enumerate(rows):
        last = at + 1 == len(rows)
        if len(shown) + len(row) + (not last) > room:
            return [*shown, f"  … and {len(rows) - at} more: {ALL}"]
        shown += row
    return shown


def _done(done: Sequence[Work], label: int) -> Iterator[str]:
    for each in done:
        yield f"  {_title(each):<{label}}{_columns(_cells(each))}"


def _cells(work: Work) -> tuple[str, str, str, str]:
    """Return time, cost, tries and files; "" for what nobody has reported."""
    cost = f"${work.cost:.2f}" if work.cost else ""
    return span(work.seconds), cost, str(work.tries or ""), "" if work.files is None else str(work.files)


def _columns(cells: Sequence[str]) -> str:
    return "".join(f"{cell:>10}" for cell in cells).rstrip()


def _dearest(done: Sequence[Work], rows: Sequence[str], room: int) -> list[str]:
    """Return all rows, or those of the dearest and longest work, in the order of the list."""
    if len(rows) <= room:
        return list(rows)
    ranked = sorted(range(len(rows)), key=lambda at: (done[at].cost, done[at].seconds), reverse=True)
    kept = sorted(ranked[: room - 1])
    return [*(rows[at] for at in kept), f"  … and {len(rows) - len(kept)} more: {ALL}"]


def _again(facts: Facts, width: int) -> str:
    text, commands = f"AGAIN: {facts.again}", facts.commands
    # Rather without the reason than without what to type.
    short = re.split(r" \(|, ", text)[0]
    ways = [(text, *commands), (short, *commands), (short, *commands[:1], "…"), (text, "…")]
    return next(
        (line for line in map("; ".join, ways if commands else ()) if len(line) <= width), cut(text, width)
    )


# -- Markdown, for a pull request


def markdown(facts: Facts) -> list[str]:
    """Return the whole report as Markdown, in which no title is markup."""
    head = list(header(facts))
    rows = [
        f"## {_escaped(head[0])}",
        "",
        f"{money(facts)}",
        "",
        *(f"- {_escaped(line)}" for line in head[1:]),
        "",
    ]
    if facts.decisions:
        rows += ["### Look at", "", "| task | what | commands |", "|---|---|---|"]
        for each in facts.decisions:
            commands = "<br>".join(map(_code, each.commands))
            name = f"{each.task} {each.title}" if each.task else each.kind
            rows.append(f"| {_escaped(name)} | {_escaped(each.what)} | {commands} |")
        rows.append("")
    if facts.waiting:
        rows += [f"Waiting for these: {_escaped(', '.join(facts.waiting))}", ""]
    if facts.done:
        rows += ["### Done", "", "| task | time | cost | tries | files |", "|---|--:|--:|--:|--:|"]
        for work in facts.done:
            name = f"{work.task} {work.title}"
            rows.append(f"| {_escaped(name)} | {' | '.join(_cells(work))} |")
        rows.append("")
    commands = "".join(f"; {_code(each)}" for each in facts.commands)
    return [*rows, f"Again: {_escaped(facts.again)}{commands}"]


_MARKUP = {ord(char): f"&#{ord(char)};" for char in "\\`*_{}[]<>#|!&~@"}


def _escaped(text: str) -> str:
    return quoting.one_line(text, 500).translate(_MARKUP)


def _code(command: str) -> str:
    """Return `command` as code in a cell of a table."""
    return f"<code>{quoting.one_line(command, 1000).translate(_MARKUP)}</code>"
