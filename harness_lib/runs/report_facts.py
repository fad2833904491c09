"""Gather what the user wants to know after runs: from their records, the list and git.

Cost and times are those of all runs in question (see `run_records.window`), and of chats meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from harness_lib import timestamps
from harness_lib.attempts import dialogue, pending_merges, publish, pull_request, rescue_refs, target_branch
from harness_lib.attempts.outcome import Waits
from harness_lib.core import rechecked, trust
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.rules import rechecks, run_records, selection, stats
from harness_lib.rules.run_records import Ran, Tried
from harness_lib.runs import next_step, report_decisions, run_files
from harness_lib.state.api import Questions
from harness_lib.system.git import history, restore
from harness_lib.system.git.history import Size
from harness_lib.system.git.repository import Git
from harness_lib.task import Task
from harness_lib.text import Strings

# Commits whose place is asked for, one git process each.
MOST_ASKED = 50


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
    each, if several share the list. `merged` is the last run's branch, `elsewhere` those of others.
    `again` says what another run would do, and `commands` are for it. `gone` are the completed tasks whose
    commits are on no branch, and whose checks have not passed without them.
    """

    began: float
    ended: float
    runs: tuple[Ran, ...]
    cost: float
    tokens: int
    counts: stats.Counts
    done_already: int
    merged: Merged | None
    checked: Checked | None
    rescued: int
    dropped: Strings
    decisions: tuple[report_decisions.Decision, ...]
    waiting: Strings
    done: tuple[Work, ...]
    others: tuple[Work, ...]
    touched: tuple[tuple[str, str], ...]
    again: str
    commands: Strings
    machines: tuple[tuple[str, int], ...] = ()
    elsewhere: tuple[Merged, ...] = ()
    gone: Strings = ()


def gather(ctx: Context, since: float | None = None) -> Facts:
    """Return the facts about the runs since the list was last complete, or since `since` (epoch seconds)."""
    questions = ctx.ask()
    recorded = list(run_files.records(ctx))
    runs, start = run_records.window(recorded, since)
    tried = [each for ran in runs for each in ran.tried]
    tried += _unrecorded(recorded, questions.search(), start)
    now = ctx.clock.time()
    began = min([*(ran.opened.at for ran in runs), *(each.began for each in tried)], default=now)
    ended = max([*(ran.last for ran in runs), *(each.ended or now for each in tried)], default=now)
    merged, sizes = _merged(ctx, runs)
    work = [_work(task, own, sizes) for task, own in _by_task(questions, tried)]
    done = {task.id for task in questions.search("completed") if task.is_done}
    machines = Counter(task.machine for task in questions.search("completed") if task.machine)
    kept, dropped = _rescued(ctx, tried, began)
    known = _known(ctx, questions, merged, {each.task for each in work}, runs)
    decisions = tuple(report_decisions.decisions(known))
    goes_on = any(ran.alive for ran in runs)
    beside = next_step.TAKES_OVER if known.merge else next_step.PUSHES if known.unpushed else ""
    again, commands = next_step.of_run(ctx, questions, known.red, goes_on=goes_on, beside=beside)
    return Facts(
        began=began,
        ended=ended,
        runs=runs,
        cost=sum(each.cost for each in tried),
        tokens=sum(each.tokens for each in tried),
        counts=questions.counts()._replace(red=sum(each.kind == "red" for each in decisions)),
        done_already=sum(task.outcome == "already_done" for task in questions.search("completed")),
        merged=merged[0] if merged else None,
        checked=_checked(questions),
        rescued=kept,
        dropped=dropped,
        decisions=decisions,
        waiting=report_decisions.waiting(questions, decisions),
        done=tuple(each for each in work if each.task in done),
        others=tuple(each for each in work if each.task not in done),
        touched=tuple(dict.fromkeys((each.task, file) for each in tried for file in each.touched)),
        again=again,
        commands=commands,
        machines=tuple(sorted(machines.items())),
        elsewhere=tuple(merged[1:]),
        gone=tuple(t.id for t, other in known.missing if not (other or _passes_without(ctx.main, t))),
    )


def _unrecorded(runs: Sequence[Ran], tasks: Iterable[Task], start: float) -> list[Tried]:
    """Return the attempts since `start` that no record has: of chats, of runs elsewhere or unrecorded."""
    known: set[tuple[str, object]] = {(each.task, each.claimed_at) for ran in runs for each in ran.tried}
    # Whoever recovers the attempt of a run that was killed has claimed it anew first.
    known |= {(each.task, each.number) for ran in runs if ran.killed for each in ran.tried if not each.status}
    found = []
    for task in tasks:
        for attempt in task.attempt_log:
            if not attempt.started_at or not attempt.ended_at:
                continue
            began, ended = _moment(attempt.started_at), _moment(attempt.ended_at)
            if ended < start or {(task.id, attempt.started_at), (task.id, attempt.number)} & known:
                continue
            found.append(
                Tried(
                    task.id,
                    task.title,
                    attempt.number,
                    worker=0,
                    began=began,
                    ended=ended,
                    status=attempt.outcome,
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
        task=task.id,
        title=task.title,
        seconds=sum((each.ended or each.began) - each.began for each in tried),
        cost=sum(each.cost for each in tried),
        tokens=sum(each.tokens for each in tried),
        tries=sum(each.number > 0 for each in tried),
        files=files,
        lines=size.added + size.removed if size and size.files == files else None,
        commit=task.completed_commit,
    )


def _merged(ctx: Context, runs: Sequence[Ran]) -> tuple[list[Merged], dict[str, Size]]:
    """Return what was merged into each branch, that of the last run first, and the size of each commit."""
    found: dict[str, tuple[str, str | None]] = {}
    for ran in reversed(runs):
        # What waits on `harness/main` is for `main`, and sooner or later there.
        name = ran.opened.target.replace(target_branch.WAITING, target_branch.HEADS, 1)
        target, before = found.get(name, (ran.opened.target, None))
        found[name] = target, ran.opened.tip or before
    merged, sizes = list[Merged](), dict[str, Size]()
    # Without a repository, with a detached HEAD, or where what a record names is no commit.
    with suppress(HarnessError):
        for target, before in found.values() if found else [(target_branch.current(ctx.main), None)]:
            one, own = _merged_into(ctx.main, target, before)
            merged.append(one)
            sizes |= own
    return merged, sizes


def _merged_into(git: Git, target: str, before: str | None) -> tuple[Merged, dict[str, Size]]:
    after, branch = git.ref(target), target_branch.short(target)
    if after is None or before is None or not git.exists(before):
        return Merged(branch, before, after), {}
    sizes = history.sizes(git, before, after)
    return Merged(branch, before, after, len(sizes), history.size_between(git, before, after)), sizes


def _checked(questions: Questions) -> Checked | None:
    found = [task.recheck for task in questions.search("completed") if task.recheck]
    if not found:
        return None
    last = max(found, key=lambda each: each.at or "").commit
    passed = [each.passed for each in found if each.commit == last]
    return Checked(last, sum(passed), len(passed))


def _rescued(ctx: Context, tried: Iterable[Tried], began: float) -> tuple[int, Strings]:
    """Return how much work was rescued since `began`, and which of it somebody has dropped since."""
    try:
        kept = restore.listed(ctx.main, rescue_refs.RESCUE_REFS)
    except HarnessError:
        return 0, ()
    names = {each.ref for each in kept}
    recorded = {each.rescue for each in tried if each.rescue}
    gone = sorted(ref.removeprefix(rescue_refs.RESCUE_REFS) for ref in recorded - names)
    return sum(each.at >= int(began) or each.ref in recorded for each in kept), tuple(gone)


def _known(
    ctx: Context, questions: Questions, merged: Sequence[Merged], worked: set[str], runs: Sequence[Ran]
) -> report_decisions.Known:
    """Return what is known of the tasks; `worked` are those of the runs in question."""
    done = questions.search("completed")
    red = rechecked.red(ctx, done)
    own = [task for task in done if task.id in worked or rechecks.is_elsewhere(task)]
    after = _newest(ctx.main, merged[0]) if merged else None
    failed = questions.search("failed")
    tried = [task for task in failed if task.attempts or not selection.is_permanent(task)]
    return report_decisions.Known(
        questions=questions,
        done=done,
        untrusted=questions.tasks(trust.waiting(ctx, questions)),
        red=red,
        commits=history.with_files(ctx.main, after) if red and after else (),
        branch=merged[0].branch if merged else "",
        merge=next(filter(None, (_waits(ctx, each) for each in merged)), None),
        unpushed=unpushed(ctx, runs),
        lacking=next_step.lacked(questions, next_step.log_lines(ctx)),
        missing=[(task, _branch_with(ctx.main, task)) for task in _not_there(ctx, own, merged)],
        unchecked=rechecked.unchecked(ctx, questions, [task for task in done if task not in red]),
        kept={task.id: dialogue.attempts_kept(task, ctx.main) for task in tried},
        told=runs[-1].told if runs else (),
        # Git reads a path from where it is typed.
        above="" if not red or ctx.main.top == ctx.root.path else ":/",
    )


def _newest(git: Git, merged: Merged) -> str | None:
    """Return the commit with all finished work for a branch: that of its waiting branch, if there is one."""
    return git.ref(target_branch.waiting(target_branch.HEADS + merged.branch)) or merged.after


def _waits(ctx: Context, merged: Merged) -> Waits | None:
    """Return what finished work waits for the branch, if any does."""
    branch = target_branch.HEADS + merged.branch
    if ctx.shared:
        # Machines merge into the branch where it would wait.
        branch = branch.replace(target_branch.WAITING, target_branch.HEADS, 1)
    with suppress(HarnessError):
        return pending_merges.describe(ctx, branch)
    return None


def unpushed(ctx: Context, runs: Sequence[Ran]) -> Waits | None:
    """Return what the remote lacks of the work which one of `runs` was to push."""
    target = next((ran.opened.target for ran in reversed(runs) if ran.opened.merge == "push"), None)
    if target is None:
        return None
    # The branch or its remote may be gone.
    with suppress(HarnessError):
        view = ctx.at(ctx.main)
        view.target, view.merging = target, publish.of(view, target, "push", "")
        return publish.waits(view)
    return None


def _branch_with(git: Git, task: Task) -> str:
    """Return another branch that has the commit of `task`, whose work is not there; "" if none has."""
    names = ("--format=%(refname:short)", target_branch.HEADS, "refs/remotes/")
    return git.text("for-each-ref", "--count=1", "--contains", task.completed_commit or "", *names)


def _not_there(ctx: Context, done: Sequence[Task], merged: Sequence[Merged]) -> list[Task]:
    """Return those of `done` whose work is neither on a branch of these runs nor waiting for it."""
    if not merged or merged[0].after is None:
        return []
    git = ctx.main
    waiting = [git.ref(target_branch.waiting(target_branch.HEADS + each.branch)) for each in merged]
    missing = {task.completed_commit or "" for task in done[-MOST_ASKED:]}
    missing = {commit for commit in missing if commit and git.exists(commit)}
    for tip in filter(None, (*(each.after for each in merged), *waiting)):
        missing = {commit for commit in missing if not git.is_ancestor(commit, tip)}
        # Where it cannot be told, as git is too old, somebody should look.
        with suppress(HarnessError):
            missing -= pull_request.in_other_commits(git, tip, missing)
    return [task for task in done if task.completed_commit in missing]


def _passes_without(git: Git, task: Task) -> bool:
    """Return whether the check of `task` has passed without its commit, as after a squash with an edit."""
    found = task.recheck
    if not found or not found.passed or not git.exists(found.commit):
        return False
    return not git.is_ancestor(task.completed_commit or "", found.commit)


def document(facts: Facts) -> dict[str, object]:
    """Return `facts` as an object for JSON."""
    plain = _plain(facts)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: _plain(each) for key, each in value._asdict().items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
