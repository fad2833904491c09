"""Gather what the user wants to know after runs: from their records, the list and git.

Cost and times are those of all runs in question (see `run_records.window`), and of chats meanwhile.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from harness_lib import timestamps, typed
from harness_lib.attempts import complete, pending_merges, rescue_refs, target_branch, task_brief
from harness_lib.checks import check_of
from harness_lib.core import quoting, rechecked, sessions, trust
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.rules import attempts, rechecks, run_records, selection
from harness_lib.rules.run_records import Ran, Tried
from harness_lib.rules.stats import Counts
from harness_lib.runs import recorder, remedies
from harness_lib.state.api import Questions
from harness_lib.system.git import history, rescue_apply
from harness_lib.system.git.history import Size
from harness_lib.task import Task
from harness_lib.text import counted, some

Kind = Literal[
    "red", "halted", "merge", "lacks", "failed", "missing", "check", "look", "proposals", "again", "denied"
]
SHORT = 12
NAMED = 5
# Commits whose place is asked for, one git process each.
MOST_ASKED = 50
_ANSWERS = re.compile(r"the user types: (harness accept .*?); to send the work back")
_DENIED = re.compile(
    r"(?P<task>\S+): (?P<what>The sandbox denied: .*)\. Allow it: (?P<command>.*)", re.DOTALL
)
_PLAIN_FAILURE = re.compile(r"^\[[A-Z_]+\] (?:The check failed with exit code \d+\. )?")


class Decision(NamedTuple):
    """Something that the user should decide or look at, and the commands for it, the first one first."""

    kind: Kind
    task: str
    title: str
    what: str
    commands: tuple[str, ...]


class Work(NamedTuple):
    """What was done for one task: seconds, cost in US dollars, tokens, attempts, and its commit."""

    task: str
    title: str
    seconds: float
    cost: float
    tokens: int
    tries: int
    files: int | None = None
    lines: int | None = None
    commit: str | None = None


class Merged(NamedTuple):
    """Where the work is: a branch, its commits before and after, and what lies between."""

    branch: str
    before: str | None
    after: str | None
    commits: int = 0
    size: Size = Size(0, 0, 0)


class Checked(NamedTuple):
    """The last final check: on which commit, and how many of the checks there pass."""

    commit: str
    passed: int
    of: int


class Facts(NamedTuple):
    """Everything that a report says; `began` and `ended` are epoch seconds.

    `done` is finished work and `others` is all other work; `waiting` are tasks that wait for the decisions.
    `touched` says which task changed which file of its check. `machines` has the number of finished tasks of
    each, if several share the list. `again` says what another run would do, and
    `commands` are for it.
    """

    began: float
    ended: float
    runs: tuple[Ran, ...]
    cost: float
    tokens: int
    counts: Counts
    done_already: int
    merged: Merged | None
    checked: Checked | None
    rescued: int
    dropped: tuple[str, ...]
    decisions: tuple[Decision, ...]
    waiting: tuple[str, ...]
    done: tuple[Work, ...]
    others: tuple[Work, ...]
    touched: tuple[tuple[str, str], ...]
    again: str
    commands: tuple[str, ...]
    machines: tuple[tuple[str, int], ...] = ()


def gather(ctx: Context, since: float | None = None) -> Facts:
    """Return the facts about the runs since the list was last complete, or since `since` (epoch seconds)."""
    questions = ctx.store.ask()
    runs, start = run_records.window(list(recorder.runs(ctx)), since)
    tried = _tried(runs, questions.search(), start)
    now = ctx.clock.now().timestamp()
    began = min([*(ran.opened.at for ran in runs), *(each.began for each in tried)], default=now)
    ended = max([*(ran.last for ran in runs), *(each.ended or now for each in tried)], default=now)
    merged, sizes = _merged(ctx, runs)
    work = [_work(task, own, sizes) for task, own in _by_task(questions, tried)]
    done = {task.id for task in questions.search("completed") if task.is_done}
    kept, dropped = _rescued(ctx, tried, began)
    decisions = (*_decisions(ctx, questions, merged, {each.task for each in work}), *_denied(questions, runs))
    again, commands = _again(ctx, questions, runs, waits=any(each.kind == "merge" for each in decisions))
    return Facts(
        began,
        ended,
        runs,
        sum(each.cost for each in tried),
        sum(each.tokens for each in tried),
        questions.counts()._replace(red=sum(each.kind == "red" for each in decisions)),
        sum(task.outcome == "already_done" for task in questions.search("completed")),
        merged,
        _checked(questions),
        kept,
        dropped,
        decisions,
        _waiting(questions, decisions),
        tuple(each for each in work if each.task in done),
        tuple(each for each in work if each.task not in done),
        tuple(dict.fromkeys((each.task, file) for each in tried for file in each.touched)),
        again,
        commands,
        _machines(questions.search("completed")),
    )


def _machines(done: Iterable[Task]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(task.machine for task in done if task.machine).items()))


def _tried(runs: Sequence[Ran], tasks: Iterable[Task], start: float) -> list[Tried]:
    """Return the attempts of `runs`, and those that no record has: of chats, and of runs without a record."""
    recorded: dict[str, list[float]] = {}
    for ran in runs:
        for each in ran.tried:
            recorded.setdefault(each.task, []).append(each.began)
    found = [each for ran in runs for each in ran.tried]
    for task in tasks:
        for attempt in task.attempt_log:
            if not attempt.started_at or not attempt.ended_at:
                continue
            began, ended = _moment(attempt.started_at), _moment(attempt.ended_at)
            if ended < start or any(began - 1 <= at <= ended + 1 for at in recorded.get(task.id, ())):
                continue
            found.append(
                Tried(
                    *(task.id, task.title, attempt.number, 0, began, ended, attempt.outcome),
                    cost=attempt.cost_usd,
                    tokens=attempt.tokens,
                )
            )
    return found


def _moment(stamp: str) -> float:
    try:
        return timestamps.parse(stamp).timestamp()
    except ValueError:
        # Agents of the legacy protocol write what they like.
        return 0.0


def _by_task(questions: Questions, tried: Iterable[Tried]) -> Iterator[tuple[Task, list[Tried]]]:
    own: dict[str, list[Tried]] = {}
    for each in tried:
        own.setdefault(each.task, []).append(each)
    yield from ((task, own[task.id]) for task in questions.search() if task.id in own)


def _work(task: Task, tried: Sequence[Tried], sizes: dict[str, Size]) -> Work:
    size = sizes.get(task.completed_commit or "")
    files = next((each.files for each in reversed(tried) if each.files is not None), size and size.files)
    return Work(
        task.id,
        task.title,
        sum((each.ended or each.began) - each.began for each in tried),
        sum(each.cost for each in tried),
        sum(each.tokens for each in tried),
        sum(each.number > 0 for each in tried),
        files,
        size.added + size.removed if size and size.files == files else None,
        task.completed_commit,
    )


def _merged(ctx: Context, runs: Sequence[Ran]) -> tuple[Merged | None, dict[str, Size]]:
    """Return what was merged where, and the size of each commit of it."""
    try:
        git = ctx.main
        target = runs[-1].opened.target if runs else target_branch.current(git)
        after = git.ref(target)
        before = next((ran.opened.tip for ran in runs if ran.opened.tip), None)
        branch = target_branch.short(target)
        if after is None or before is None or not git.exists(before):
            return Merged(branch, before, after), {}
        sizes = history.sizes(git, before, after)
        return Merged(branch, before, after, len(sizes), history.size_between(git, before, after)), sizes
    except HarnessError:
        # No repository, a detached HEAD, or what a record names is no commit.
        return None, {}


def _checked(questions: Questions) -> Checked | None:
    found = [task.recheck for task in questions.search("completed") if task.recheck]
    if not found:
        return None
    last = max(found, key=lambda each: each.at or "").commit
    passed = [each.passed for each in found if each.commit == last]
    return Checked(last, sum(passed), len(passed))


def _rescued(ctx: Context, tried: Iterable[Tried], began: float) -> tuple[int, tuple[str, ...]]:
    """Return how much work was rescued since `began`, and which of it somebody has dropped since."""
    try:
        kept = rescue_apply.listed(ctx.main, rescue_refs.RESCUE_REFS)
    except HarnessError:
        return 0, ()
    names = {each.ref for each in kept}
    recorded = {each.rescue for each in tried if each.rescue}
    gone = sorted(ref.removeprefix(rescue_refs.RESCUE_REFS) for ref in recorded - names)
    return sum(each.at >= int(began) or each.ref in recorded for each in kept), tuple(gone)


# -- what the user must decide, or should look at


def _decisions(
    ctx: Context, questions: Questions, merged: Merged | None, worked: set[str]
) -> Iterator[Decision]:
    done = questions.search("completed")
    red = rechecked.red(ctx, done)
    yield from _red(ctx, red, done, merged)
    for task in questions.halted():
        if task.status in ("pending", "in_progress"):
            yield Decision("halted", task.id, task.title, *_halted(task))
    yield from _waits(ctx, merged)
    for text in remedies.lacked(questions, remedies.log_lines(ctx)):
        yield Decision("lacks", "", "", text.removesuffix(f"; then: {remedies.RUN}"), (remedies.RUN,))
    failed = questions.search("failed")
    yield from (_failed(ctx, task) for task in failed if selection.is_permanent(task) and task.attempts)
    yield from _missing(ctx, [task for task in done if task.id in worked], merged)
    yield from _doubts(ctx, questions, [task for task in done if task not in red])
    names = {task.id for task in red}
    for task in done:
        if task.id not in names and task.look_at:
            yield _look_at(task)
    if proposed := questions.proposals():
        titles = some([quoting.title(task) for task in proposed], NAMED)
        what = f"{len(proposed)} proposed by agents: {titles}"
        yield Decision("proposals", "", "", what, (typed.harness("add", "--proposed"),))
    yield from (_failed(ctx, task) for task in failed if not selection.is_permanent(task))


def _denied(questions: Questions, runs: Sequence[Ran]) -> Iterator[Decision]:
    """Yield what the sandbox has denied to the agents of the last run."""
    told = (each.message for each in runs[-1].told if each.kind == "sandbox") if runs else ()
    for match in filter(None, map(_DENIED.fullmatch, dict.fromkeys(told))):
        task = questions.task(match["task"])
        yield Decision(
            "denied", match["task"], task.title if task else "", match["what"], (match["command"],)
        )


def _red(
    ctx: Context, red: Sequence[Task], done: Sequence[Task], merged: Merged | None
) -> Iterator[Decision]:
    commits: list[tuple[str, tuple[str, ...]]] = []
    if red and merged and merged.after:
        commits = history.with_files(ctx.main, merged.after)
    owners = {task.completed_commit: task.id for task in done if task.outcome != "already_done"}
    for task in red:
        mine = next((set(files) for oid, files in commits if oid == task.completed_commit), set[str]())
        later: list[tuple[str, str]] = []
        for oid, files in commits:
            if oid == task.completed_commit:
                break
            later += [(oid, file) for file in files if file in mine]
        retry = typed.harness("retry", task.id)
        if later and mine:
            oid, file = later[-1]
            what = f"red since {owners.get(oid) or oid[:SHORT]} changed {quoting.one_line(file, 80)}"
            yield Decision(
                "red", task.id, task.title, what, (typed.git("show", oid[:SHORT], "--", file), retry)
            )
        else:
            why = task.recheck.tail.partition("\n")[0] if task.recheck else ""
            yield Decision("red", task.id, task.title, f"red: {why or 'its check fails now'}", (retry,))


def _doubts(ctx: Context, questions: Questions, done: Sequence[Task]) -> Iterator[Decision]:
    """Yield what the final check leaves open of finished work that is not red."""
    for task in done:
        found = task.recheck
        what, command = "", typed.harness("show", task.id)
        if rechecks.is_red(task):
            what, command = "its check failed before the last commits", rechecked.COMMAND
        elif found and found.excuse == "not_reproducible":
            needs = quoting.named(rechecks.needed([task]), NAMED, 80)
            what = f"not reproducible: it needs {needs or 'what only its work tree had'}"
        elif found and found.excuse == "held_out":
            what = "held-out check not run: it is not on this machine, or cannot run"
        if what:
            yield Decision("check", task.id, task.title, what, (command,))
    for line in rechecked.unchecked(ctx, questions, done):
        yield Decision("check", "", "", line.partition(". ")[0], (rechecked.COMMAND,))


def _halted(task: Task) -> tuple[str, tuple[str, ...]]:
    """Return what a halted task waits for, and the commands that answer."""
    halt = task.halt or ""
    if attempts.takes_an_answer(task.halt_kind):
        match = _ANSWERS.search(halt)
        accept = match[1] if match else typed.harness("accept", task.id)
        what = halt.partition(". Nothing was committed.")[0].partition(": the check ")[2] or halt
        kept = task.handback.rescue if task.handback else None
        see = (rescue_refs.show_command(kept),) if kept else ()
        return what, (accept, complete.return_command(task), *see)
    retry = typed.harness("retry", task.id) if check_of(task).is_given else typed.give_check(task.id)
    retry = typed.harness("accept", task.id) if attempts.asks_a_person(task) else retry
    return halt.removesuffix(f" Then type: {retry}"), (retry,)


def _waits(ctx: Context, merged: Merged | None) -> Iterator[Decision]:
    if merged is None:
        return
    try:
        text = pending_merges.describe(ctx, target_branch.HEADS + merged.branch)
    except HarnessError:
        return
    if text:
        what, _, command = text.rpartition(". Take it over with: ")
        yield Decision("merge", "", "", what, (command,))


def _failed(ctx: Context, task: Task) -> Decision:
    reason = _PLAIN_FAILURE.sub("", task.error_log[-1]) if task.error_log else "no reason is recorded"
    reason = reason.removeprefix("the agent ")
    again = "" if selection.is_permanent(task) else ", and is tried again"
    kept = task_brief.attempts_kept(task, ctx.main)
    command = rescue_refs.show_command(kept[-1]) if kept else typed.harness("log", "--task", task.id)
    what = f"failed {task.attempts} of {task.max_attempts}{again}: {reason}"
    kind: Kind = "failed" if selection.is_permanent(task) else "again"
    return Decision(kind, task.id, task.title, what, (command, typed.harness("retry", task.id)))


def _missing(ctx: Context, done: Sequence[Task], merged: Merged | None) -> Iterator[Decision]:
    """Yield the finished work of these runs that is neither on the branch nor waiting for it."""
    if merged is None or merged.after is None:
        return
    git, target = ctx.main, target_branch.HEADS + merged.branch
    waiting = git.ref(target_branch.waiting(target))
    for task in done[-MOST_ASKED:]:
        commit = task.completed_commit
        if commit is None or commit == merged.after or not git.exists(commit):
            continue
        if not any(git.is_ancestor(commit, tip) for tip in (merged.after, waiting) if tip):
            what = f"its commit is not on {merged.branch}"
            command = typed.git("branch", "--all", "--contains", commit[:SHORT])
            yield Decision("missing", task.id, task.title, what, (command,))


def _look_at(task: Task) -> Decision:
    first, *more = task.look_at
    what, bracket, command = first.rpartition(" (git ")
    command = f"git {command.removesuffix(')')}" if bracket else typed.harness("show", task.id)
    what = (what or first).removeprefix(f"{task.id} ").removeprefix(f"{task.id}: ")
    # On a line with a command there is little room.
    what = what.replace("changed a file that its check depends on:", "changed what checks it:", 1)
    also = f", and {len(more)} more" if more else ""
    return Decision("look", task.id, task.title, what + also, (command,))


def _waiting(questions: Questions, decisions: Iterable[Decision]) -> tuple[str, ...]:
    """Return the unfinished tasks that depend on those in `decisions`."""
    waiting: dict[str, None] = {}
    stuck = [each.task for each in decisions if each.task and each.kind in ("halted", "failed", "red")]
    seen = set(stuck)
    while stuck:
        for name in questions.dependents(stuck.pop()):
            task = questions.task(name)
            if name not in seen and task is not None and not task.is_done:
                waiting[name] = None
                stuck.append(name)
            seen.add(name)
    return tuple(waiting)


def _again(
    ctx: Context, questions: Questions, runs: Sequence[Ran], *, waits: bool
) -> tuple[str, tuple[str, ...]]:
    """Return what another run would do, as the end of a sentence, and what to type for more than that."""
    if any(ran.alive for ran in runs) and questions.work_remains():
        return "this run goes on", (sessions.WATCH,)
    if not questions.counts().total:
        return "the list is empty", (rechecked.ADD,)
    if questions.work_remains() and not trust.is_trusted(ctx, questions):
        return f"{remedies.RUN} is refused until you have looked at the commands", (typed.harness("trust"),)
    does, then = _does(ctx, questions, _retry(ctx, questions), waits=waits)
    return f"{remedies.RUN} {does}", then


def _does(
    ctx: Context, questions: Questions, retry: tuple[str, ...], *, waits: bool
) -> tuple[str, tuple[str, ...]]:
    match questions.no_work():
        case None:
            first = questions.next_ready()
            begins = f", {first.id} first" if first else ""
            does, then = f"goes on with {counted(questions.ahead().tasks, 'task')}{begins}", retry
        case "waiting" if {task.halt_kind for task in questions.halted()} == {"MERGE"}:
            does, then = "looks whether others have merged what waits", retry
        case "waiting" if questions.awaits_user():
            does, then = "starts nothing before you have answered", retry
        case "waiting":
            does, then = "takes over what a killed run or another session holds", ()
        case "recheck_failed":
            does, then = "runs the checks again", (rechecked.next_command(ctx, questions), *retry)
        case "blocked":
            does, then = "starts nothing (the failed ones are used up)", retry
        case _ if waits:
            does, then = "takes over what waits, once nothing is in its way", ()
        case _:
            does, then = "starts nothing: every task is completed", ()
    return does, then


def _retry(ctx: Context, questions: Questions) -> tuple[str, ...]:
    """Return the command that gives the tasks which failed for good, or are red now, another start."""
    lost = [task for task in questions.search("failed") if selection.is_permanent(task) and task.attempts]
    again = [*rechecked.red(ctx, questions.search("completed")), *lost]
    return (typed.harness("retry", *(task.id for task in again[:NAMED])),) if again else ()


def document(facts: Facts) -> dict[str, object]:
    """Return `facts` as an object for JSON."""
    plain = _plain(facts)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: _plain(each) for key, each in value._asdict().items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
