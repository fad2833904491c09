"""`harness show`: show one task, or why each waiting task waits. Reads without a lock."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import claim, dialogue
from harness_lib.checks import check_of
from harness_lib.core import held_out, ownership, quoting, rechecked, rights, stops, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import ConfigError
from harness_lib.rules import attempts, selection
from harness_lib.runs import next_step, overview
from harness_lib.state.api import Questions
from harness_lib.system import fs
from harness_lib.system.git import trees
from harness_lib.system.git.repository import Git
from harness_lib.task import Attempt, Task
from harness_lib.text import Strings, first, safe_name, span

SUMMARY = "show everything about a task, and why it waits; without an id: why each waiting task waits"
EXAMPLE = "harness show task-001"
HELP_ORDER = 60
SHOWN = 10
LINES = 200
LINE_LENGTH = 1000
NO_CHECK = re.compile(r"-(?:before|cleanup|agent-\d+)\.log$")
MOST = 1000
SHORT = 12


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the task (default: the next, and why each that waits does)")


def answer(ctx: Context, args: Namespace) -> Reply:
    return run(ctx, args.id, private=not args.screen.json) if args.id else waiting(ctx)


def run(ctx: Context, task_id: str, *, private: bool) -> Reply:
    """Return the fields, check, checkpoints, errors, rescued work, last log and lease of one task.

    `private`: also show its held-out check and the result, for the user on a terminal.
    """
    questions = ctx.ask()
    task = ownership.require_task(questions, task_id)
    why = questions.why(task.id)
    rescued = dialogue.rescues(task, ctx.git)
    log = _last_log(ctx, task)
    done = _delivered(ctx.git, questions, task)
    lines = [f"{task.id} [{overview.word(task)}] {quoting.title(task)}", *_fields(ctx, task), *_claim(task)]
    lines += done.lines(task) if done else _nothing_delivered(ctx.git, task)
    lines += rechecked.describe(ctx, task)
    is_known = trust.knows(ctx, task)
    eligible, reasons = why.eligible and is_known, _reasons(ctx, task, why, is_known=is_known)
    lines += [f"can be claimed: {'yes' if eligible else 'no'}; {'; '.join(reasons)}"]
    lines += _block("description", (task.description or "").splitlines())
    lines += _block(_check(task), (check_of(task).text or "").splitlines())
    lines += _held_out(ctx, task, private=private)
    lines += _block("cleanup after a failure", (task.on_failure.cleanup or "").splitlines())
    lines += _last("checkpoints", [f"{c.step}/{c.total} {c.description}" for c in task.checkpoints])
    lines += _last("notes for later tasks", task.notes)
    lines += _last("errors", task.error_log)
    lines += _block("for the next attempt", [task.handback.reason] if task.handback else [])
    lines += _last("attempts", [_attempt(each) for each in task.attempt_log])
    lines += _last("rescued work (harness rescue show REF)", rescued)
    lines += [f"log of the last check: {log}"] if log else []
    return Reply(
        "\n".join(lines),
        task=task,
        next=next_step.of_task(ctx, questions, task),
        warnings=tuple(questions.warnings),
        extra={
            "eligible": eligible,
            "untrusted": not is_known,
            "reasons": reasons,
            "rescues": rescued[-SHOWN:],
            "check_log": str(log) if log else None,
            "commits": list(done.commits[:SHOWN]) if done else [],
            "files": list(done.files[:LINES]) if done else [],
            "undo": done.revert_command if done else None,
        },
    )


def _reasons(ctx: Context, task: Task, why: selection.Why, *, is_known: bool) -> list[str]:
    """Return why `task` can be claimed or not, what only the user can change first."""
    reasons = first([quoting.one_line(reason, LINE_LENGTH) for reason in why.reasons], SHOWN)
    return reasons if is_known or task.is_done else [trust.told(ctx, [task.id]), *reasons]


def _nothing_delivered(git: Git, task: Task) -> list[str]:
    if task.status != "completed" or task.completed_commit is None:
        return []
    commits = (task.completed_commit, task.started_at_commit)
    gone = next((commit for commit in commits if commit and not git.exists(commit)), None)
    reason = f"its commit {gone[:12]} is not here any more" if gone else "it committed nothing"
    return [f"{reason}; to have it done anew: {typed.harness('retry', task.id)}"]


def waiting(ctx: Context) -> Reply:
    """Return the next task, and a line for each task that cannot be claimed, with the reason."""
    questions = ctx.ask()
    following = claim.next_task(ctx, questions).task
    may = {task.id for task in trust.known(ctx, questions.claimable())}
    unfinished = [task for task in questions.interesting() if not task.is_done]
    kept = [task for task in unfinished if task is following or task.id not in may]
    # Not `next: …`, which is a command at the end of a reply.
    lines = [f"goes next: {overview.one_line(following)}"] if following else []
    facts = []
    for task in kept[:SHOWN]:
        why = questions.why(task.id)
        is_known = trust.knows(ctx, task)
        reasons = _reasons(ctx, task, why, is_known=is_known)
        facts.append({"id": task.id, "eligible": why.eligible and is_known, "reasons": reasons})
        if task is not following:
            lines += [overview.one_line(task), f"  {reasons[0]}"]
    if len(kept) > SHOWN:
        lines.append(f"… and {len(kept) - SHOWN} more that may not be claimed now (harness status --all)")
    return Reply(
        "\n".join(lines) or (stops.of_list(questions, "done").words),
        task=following,
        next=next_step.of_list(ctx, questions),
        warnings=tuple(questions.warnings),
        extra={"tasks": facts},
    )


def _fields(ctx: Context, task: Task) -> Iterator[str]:
    yield f"priority {task.priority}, attempts {task.attempts} of {task.max_attempts}"
    if task.depends_on:
        yield f"depends on: {quoting.one_line(', '.join(task.depends_on), LINE_LENGTH)}"
    if task.source:
        key = task.source.key.removeprefix("- ")
        source = quoting.one_line(f"task {key} of {task.source.plan}", LINE_LENGTH)
        yield f"from a plan: {source}"
    if not (check_of(task).is_given or task.is_done or attempts.asks_a_person(task)):
        yield f"it has no check: {ownership.give_check(ctx, task)}"
    if task.validation.protect:
        protected = quoting.one_line(", ".join(task.validation.protect), LINE_LENGTH)
        yield f"an attempt may not change: {protected}"
    if task.touched and task.status != "completed":
        yield f"the attempt {quoting.touched(task.touched)}"
    yield from quoting.look_at(task, quoting.REASON_LENGTH)
    if task.extra:
        yield f"other fields: {quoting.one_line(', '.join(sorted(task.extra)), LINE_LENGTH)}"


def _attempt(attempt: Attempt) -> str:
    how = {"pending": "handed back", None: "goes on"}.get(attempt.outcome, attempt.outcome)
    parts = [f"{attempt.number}: {how}"]
    parts += [f"from {attempt.started_at}"] if attempt.started_at else []
    parts += [f"took {span(attempts.seconds(attempt))}"] if attempt.ended_at else []
    parts += [f"${attempt.cost_usd:.2f}"] if attempt.cost_usd else []
    parts += [f"{attempt.tokens:,} tokens"] if attempt.tokens else []
    return ", ".join(parts)


def _check(task: Task) -> str:
    where = f", in {quoting.one_line(task.validation.cwd, LINE_LENGTH)}" if task.validation.cwd else ""
    first = ", must fail before work starts" if task.validation.red_first else ""
    return f"check (at most {task.validation.timeout_seconds} s{where}{first})"


def _held_out(ctx: Context, task: Task, *, private: bool) -> list[str]:
    if not task.validation.hidden:
        return []
    if not private or not ctx.at_terminal or rights.acting_agent(ctx):
        return ["it has a held-out check; the user reads about it with harness show, on a terminal"]
    try:
        material = held_out.load(ctx, task)
    except ConfigError as error:
        return [error.message, error.hint or ""]
    told = held_out.told(ctx, task)
    return [
        f"held-out check: {quoting.one_line(material.describe() if material else '', LINE_LENGTH)}",
        *_block("what it said last", told.splitlines()),
    ]


def _claim(task: Task) -> Iterator[str]:
    if task.claimed_by:
        lease = f", leased until {task.lease_expires_at}" if task.lease_expires_at else ""
        where = f" on {task.machine}" if task.machine else ""
        where += f" in {task.worktree}" if task.worktree else ""
        when = f" at {task.claimed_at}" if task.claimed_at else ""
        yield quoting.one_line(f"claimed by {task.claimed_by}{when}{where}{lease}", LINE_LENGTH)
    if task.started_at_commit:
        yield f"last attempt began at commit {task.started_at_commit[:12]}"
    if task.completed_at:
        where = f" on {quoting.one_line(task.machine, LINE_LENGTH)}" if task.machine else ""
        yield f"completed at {task.completed_at}{where} (commit {(task.completed_commit or 'unknown')[:12]})"
    if task.failed_at:
        yield f"failed at {task.failed_at}"


def _block(name: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    shown = first(
        [f"| {quoting.one_line(row, LINE_LENGTH)}" for row in rows], LINES, " lines (--json has all)"
    )
    return [f"{name}:", *(f"  {row}" for row in shown)]


def _last(name: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    head = f"{name}:" if len(rows) <= SHOWN else f"{name} (the last {SHOWN} of {len(rows)}):"
    return [head, *(f"  {quoting.one_line(row)}" for row in rows[-SHOWN:])]


def _last_log(ctx: Context, task: Task) -> Path | None:
    """Return the newest log of this task's check."""
    paths = fs.matching(ctx.root.logs / safe_name(task.id), "*.log")
    try:
        logs = [(path.stat().st_mtime, path) for path in paths if not NO_CHECK.search(path.name)]
    except FileNotFoundError:
        # `.harness/` may be deleted at any time.
        return None
    return max(logs)[1] if logs else None


class Delivered(NamedTuple):
    """`commits` are the task's own, newest first, made on `since`; `files` what they changed."""

    commits: Strings
    files: Strings
    since: str

    @property
    def show_command(self) -> str:
        """Return the command that shows the work."""
        if len(self.commits) == 1:
            return typed.git("show", self.commits[0][:SHORT])
        return typed.git("log", "--patch", self._span)

    @property
    def revert_command(self) -> str:
        """Return the command that takes the work back, by new commits."""
        return typed.git("revert", self.commits[0][:SHORT] if len(self.commits) == 1 else self._span)

    @property
    def _span(self) -> str:
        return f"{self.since[:SHORT]}..{self.commits[0][:SHORT]}"

    def lines(self, task: Task) -> list[str]:
        """Return the lines for the user."""
        names = quoting.named(self.files, 10, 200)
        again = typed.harness("retry", task.id)
        return [
            f"its work: {self.show_command}",
            f"files ({len(self.files)}): {names}",
            f"to undo it: {self.revert_command}; to have it done anew after that: {again}",
        ]


def _delivered(git: Git, questions: Questions, task: Task) -> Delivered | None:
    """Return the commits of `task`; None if there are none or they are not known."""
    tip, base = task.completed_commit, task.started_at_commit
    if task.status != "completed" or not tip or not base or not (git.exists(tip) and git.exists(base)):
        return None
    own: list[str] = []
    # A run stacks the work of several tasks.
    for oid in git.lines("rev-list", "--first-parent", f"--max-count={MOST}", tip, f"^{base}"):
        if _maker(git, questions, oid) not in (None, task.id):
            break
        own.append(oid)
    if not own:
        return None
    since = git.parent(own[-1]) or base
    return Delivered(tuple(own), tuple(trees.changed(git, since, tip)), since)


def _maker(git: Git, questions: Questions, commit: str) -> str | None:
    """Return the task that made `commit`; None if no task names it.

    A task without changes names the commit that it started from.
    """
    tasks = [task for task in questions.tasks(questions.made(commit)) if task.started_at_commit != commit]
    if len(tasks) > 1:
        # In a run both started from an earlier commit; there the subject names the task.
        subject = git.text("log", "-1", "--format=%s", commit)
        tasks = [task for task in tasks if subject.startswith(f"[{task.id}] ")] or tasks
    return tasks[0].id if tasks else None
