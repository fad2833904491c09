"""Write what an agent is told about a task: short, and every text from the list quoted as data."""

from __future__ import annotations

import re
from pathlib import Path

from harness_lib import typed
from harness_lib.attempts import check
from harness_lib.attempts.rescue_refs import RESCUE_REFS, show_command
from harness_lib.checks import check_of
from harness_lib.core import ownership, quoting
from harness_lib.core.context import Context
from harness_lib.core.quoting import FAILURE_LENGTH, REASON_LENGTH, TITLE_LENGTH, one_line
from harness_lib.rules import checklist, input_files
from harness_lib.state.api import Questions
from harness_lib.system.git import snapshot
from harness_lib.system.git.repository import Git
from harness_lib.task import Task

KEY_LENGTH = 40
NOT_FOR_AGENT = (
    "harness commits and goes on to the next task: leave out the steps of the plan that do so "
    "(commit, push, make a branch, tick boxes, a skill that carries out the whole plan)"
)


def render(
    task: Task, ctx: Context | None = None, questions: Questions | None = None, program: str = "harness"
) -> str:
    """Return the brief of `task`; `program` is what to type for `harness`.

    With `ctx` it also says why the last attempt failed and where its work is, with `questions` what other
    tasks have noted.
    """
    whole = typed.harness("show", task.id, "--json", program=program)
    which = f"attempt {task.attempts + 1} of {task.max_attempts}"
    lines = [f"{task.id} [{task.priority}] {which}: {quoting.title(task)}"]
    lines += _plan(task, questions or (ctx.store.ask() if ctx and task.source else None), whole)
    if task.description:
        lines += ["description:", *quoting.quoted(task.description, whole)]
    lines += _check(task, whole, ownership.give_check(ctx, task) if ctx else typed.give_check(task.id))
    lines += _protected(task)
    if task.halt:
        lines.append(f"halted until the user acts: {one_line(task.halt, FAILURE_LENGTH)}")
    if task.checkpoints:
        last = task.checkpoints[-1]
        text = one_line(last.description, TITLE_LENGTH)
        lines.append(f"last checkpoint: {last.step}/{last.total} {text}")
    if task.interruptions and task.status == "in_progress":
        lines.append(
            f"interrupted so far: {task.interruptions}; the work stands (git status), no attempt was counted"
        )
    lines += _failure(task, check.last_excerpt(ctx, task) if ctx else None)
    lines += _not_kept(task, ctx.git) if ctx else []
    rescued = attempts_kept(task, ctx.git) if ctx else []
    if rescued:
        lines.append(f"what the last attempt did (rolled back): {show_command(rescued[-1])}")
    lines += quoting.notes(questions, task) if questions else []
    return "\n".join(lines)


def _plan(task: Task, questions: Questions | None, whole: str) -> list[str]:
    """Return what the plan of `task` says for all of its tasks, and which parts are not for the agent."""
    if task.source is None or task.source.key.startswith(checklist.BULLET):
        return []
    header = questions.plan_header(task.source.plan) if questions else ""
    name = f"task {one_line(task.source.key, KEY_LENGTH)} of {one_line(task.source.plan, TITLE_LENGTH)}"
    return [f"from a plan, {name}:", *quoting.quoted(header, whole), NOT_FOR_AGENT]


def _protected(task: Task) -> list[str]:
    globs = [glob for glob in task.validation.protect if glob not in input_files.WORDS]
    globs += task.gate.protect if task.gate else ()
    if globs:
        return [f"do not change: {', '.join(globs)}, nor how the check is run"]
    if input_files.AUTO in task.validation.protect:
        return [
            "it must also pass with tests, scripts and settings as they were before; new tests are welcome"
        ]
    return []


def _failure(task: Task, check_output: tuple[str, Path] | None) -> list[str]:
    lines = [f"last failure: {one_line(task.error_log[-1], FAILURE_LENGTH)}"] if task.error_log else []
    if task.handback:
        lines.append(f"handed back: {one_line(task.handback.reason, REASON_LENGTH)}")
    if check_output is not None:
        text, log = check_output
        lines += ["what the check said:", *quoting.quoted(text, str(log)), f"all that it said: {log}"]
    return lines


def _not_kept(task: Task, git: Git) -> list[str]:
    if task.gate is None or task.gate.before is None:
        return []
    names = snapshot.read_untracked(git, task.gate.before).unprotected
    shown = quoting.named(names, quoting.NOTES, TITLE_LENGTH)
    return [f"not yours, and too large to keep a copy of (leave alone): {shown}"] if names else []


def _check(task: Task, whole: str, cure: str) -> list[str]:
    check = check_of(task)
    if not check.is_given:
        return [f"check: none yet, and without one it cannot be completed; it needs one: {cure}"]
    one = (check.text or "").strip()
    plain = "\n" not in one and len(one) <= REASON_LENGTH
    name = f"check (max {task.validation.timeout_seconds} s):"
    lines = [f"{name} {quoting.printable(one)}"] if plain else [name, *quoting.quoted(one, whole)]
    if task.validation.cwd:
        lines.append(f"the check runs in: {one_line(task.validation.cwd, REASON_LENGTH)}")
    return lines


def attempts_kept(task: Task, git: Git) -> list[str]:
    """Return the refs of the work of earlier attempts, oldest first.

    What an agent committed on another branch, or put into a stash, is work, too. Refs for what a check left
    behind, or what was there before, are not among them.
    """
    kept = [(ref, ref.rpartition("/")[2].partition("-")) for ref in rescues(task, git)]
    return [ref for ref, (_, _, what) in kept if not what or what.startswith("refs-")]


def rescues(task: Task, git: Git) -> list[str]:
    """Return the refs that keep the work of this task's earlier attempts, oldest first."""
    refs = [name for name, _oid in git.refs(f"{RESCUE_REFS}{check.safe_name(task.id)}/")]
    # Git sorts them as text: 10 before 2.
    return sorted(refs, key=_age)


def _age(ref: str) -> tuple[list[int], bool]:
    """Return what sorts the rescue `ref`: its attempt; the attempt's own work is after the rest of it."""
    number, _, what = ref.rpartition("/")[2].partition("-")
    return [int(each) for each in re.findall(r"\d+", number)], not what
