"""Name what the user must decide after runs, or should look at: pure, from what is known of the tasks.

`report_facts` gathers what is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from harness_lib import typed
from harness_lib.attempts import complete, evaluate, rescue_refs
from harness_lib.attempts.outcome import Waits
from harness_lib.core import quoting, rechecked
from harness_lib.rules import attempts, rechecks, run_records, selection
from harness_lib.runs import next_step
from harness_lib.state.api import Questions
from harness_lib.system.processes import denied
from harness_lib.task import Task
from harness_lib.text import Strings, some

Kind = Literal[
    "red",
    "halted",
    "untrusted",
    "merge",
    "lacks",
    "failed",
    "missing",
    "check",
    "look",
    "proposals",
    "again",
    "denied",
]
_HOLD_UP = ("halted", "untrusted", "failed")
SHORT = 12
_PLAIN_FAILURE = re.compile(r"^(?:\[[A-Z_]+\] )?(?:The check failed with exit code \d+\. )?")


class Decision(NamedTuple):
    """Something that the user should decide or look at, and the commands for it, the first one first."""

    kind: Kind
    task: str
    title: str
    what: str
    commands: Strings


class Known(NamedTuple):
    """What is known of the tasks.

    `done` are all completed tasks, `red` some of them. `untrusted` are those whose commands the user has not
    trusted here. `commits` are those of `branch`, newest first, each with its files. `merge` is finished work
    that waits for the branch, and `unpushed` what the remote lacks although a run was to push it; `missing`
    are completed tasks whose commits are not there, each with another branch that has its commit, "" if none
    has. `lacking` says what the machine lacks, `unchecked` which checks have not run again. `kept` has the
    rescued work of failed tasks, `told` what the last run has told. `above` begins a path in a command of git
    that is typed where the list is.
    """

    questions: Questions
    done: Sequence[Task]
    untrusted: Sequence[Task]
    red: Sequence[Task]
    commits: Sequence[tuple[str, Strings]]
    branch: str
    merge: Waits | None
    unpushed: Waits | None
    lacking: Sequence[str]
    missing: Sequence[tuple[Task, str]]
    unchecked: Sequence[str]
    kept: Mapping[str, Sequence[str]]
    told: Sequence[run_records.Told]
    above: str = ""


def decisions(known: Known) -> Iterator[Decision]:
    """Yield what the user must decide, then what they should look at."""
    questions = known.questions
    yield from (_red(known, task) for task in known.red)
    for task in questions.halted():
        if task.status in ("pending", "in_progress"):
            yield Decision("halted", task.id, task.title, *_halted(task))
    for task in known.untrusted:
        what, trust = "its commands are not trusted here", typed.harness("trust")
        yield Decision("untrusted", task.id, task.title, what, (trust,))
    for waits in filter(None, (known.merge, known.unpushed)):
        yield Decision("merge", "", "", waits.what, (waits.command,))
    for text in known.lacking:
        yield Decision("lacks", "", "", text.removesuffix(f"; then: {next_step.RUN}"), (next_step.RUN,))
    failed = questions.search("failed")
    yield from (_failed(known, task) for task in failed if selection.is_permanent(task) and task.attempts)
    yield from (_missing(known, task, other) for task, other in known.missing)
    yield from _doubts(known)
    yield from (_look_at(task) for task in known.done if task.look_at and task not in known.red)
    if proposed := questions.proposals():
        titles = some([quoting.title(task) for task in proposed])
        what = f"{len(proposed)} proposed by agents: {titles}"
        yield Decision("proposals", "", "", what, (typed.harness("add", "--proposed"),))
    yield from (_failed(known, task) for task in failed if not selection.is_permanent(task))
    yield from _denied(known)


def _denied(known: Known) -> Iterator[Decision]:
    """Yield what the sandbox has denied to the agents of the last run."""
    for message in dict.fromkeys(each.message for each in known.told if each.kind == "sandbox"):
        name, _, said = message.partition(": ")
        if found := denied.parts(said):
            task = known.questions.task(name)
            what, command = found
            yield Decision("denied", name, task.title if task else "", what, (command,))


def _red(known: Known, task: Task) -> Decision:
    """Return a task whose check fails now, with the first commit since its own that changed its files."""
    retry = typed.harness("retry", task.id)
    mine = next((set(files) for oid, files in known.commits if oid == task.completed_commit), set[str]())
    later: list[tuple[str, str]] = []
    for oid, files in known.commits:
        if oid == task.completed_commit:
            break
        later += [(oid, file) for file in files if file in mine]
    if not later:
        why = _PLAIN_FAILURE.sub("", task.recheck.tail.partition("\n")[0]) if task.recheck else ""
        return Decision("red", task.id, task.title, f"red: {why or 'its check fails now'}", (retry,))
    oid, file = later[-1]
    owners = {each.completed_commit: each.id for each in known.done if each.outcome != "already_done"}
    what = f"red since {owners.get(oid) or oid[:SHORT]} changed {quoting.one_line(file, 80)}"
    return Decision(
        "red", task.id, task.title, what, (typed.git("show", oid[:SHORT], "--", known.above + file), retry)
    )


def _missing(known: Known, task: Task, other: str) -> Decision:
    """Return a completed task whose commit is not on the branch; it is on the branch `other`, if given."""
    commit, what = (task.completed_commit or "")[:SHORT], f"its commit is not on {known.branch}"
    commands = [typed.git("cherry-pick", commit), typed.harness("retry", task.id)]
    if other:
        commands = [typed.git("branch", "--all", "--contains", commit)]
    what = f"{what}, but on {other}" if other else f"{what}, nor on another branch"
    return Decision("missing", task.id, task.title, what, tuple(commands))


def _doubts(known: Known) -> Iterator[Decision]:
    """Yield what the final check leaves open of finished work that is not red."""
    for task in known.done:
        found = task.recheck
        what, command = "", typed.harness("show", task.id)
        if task in known.red:
            continue
        if rechecks.is_red(task):
            what, command = "its check failed before the last commits", rechecked.COMMAND
        elif found and found.excuse == "not_reproducible":
            needs = quoting.named(rechecks.needed([task]))
            what = f"not reproducible: it needs {needs or 'what only its work tree had'}"
        elif found and found.excuse == "held_out":
            what = "held-out check not run: it is not on this machine, or cannot run"
        if what:
            yield Decision("check", task.id, task.title, what, (command,))
    for line in known.unchecked:
        yield Decision("check", "", "", line.partition(". ")[0], (rechecked.COMMAND,))


def _halted(task: Task) -> tuple[str, Strings]:
    """Return what a halted task waits for, and the commands that answer."""
    halt = task.halt or ""
    if attempts.takes_an_answer(task.halt_kind):
        what = halt.partition(". Nothing was committed.")[0].partition(": the check ")[2] or halt
        see = (rescue_refs.show_command(task.kept),) if task.kept else ()
        if see:
            # What shows the work has a place of its own.
            what = what.removesuffix(f": {typed.harness('rescue', 'show', task.id)}")
        return what, (*complete.answers(task), *see)
    (answer,) = complete.answers(task)
    if task.halt_kind == "ENV_SETUP" and (found := denied.told(halt)):
        what, allow = found
        return what, (allow, answer)
    what = halt.removesuffix(f" Then type: {answer}")
    return what.removeprefix(f"ENV_SETUP: {evaluate.CANNOT_RUN.format(task.id)}"), (answer,)


def _failed(known: Known, task: Task) -> Decision:
    reason = _PLAIN_FAILURE.sub("", task.error_log[-1]) if task.error_log else "no reason is recorded"
    reason = reason.removeprefix("the agent ")
    again = "" if selection.is_permanent(task) else ", and is tried again"
    kept = known.kept[task.id]
    command = rescue_refs.show_command(kept[-1]) if kept else typed.harness("log", "--task", task.id)
    what = f"failed {task.attempts} of {task.max_attempts}{again}: {reason}"
    kind: Kind = "failed" if selection.is_permanent(task) else "again"
    return Decision(kind, task.id, task.title, what, (command, typed.harness("retry", task.id)))


def _look_at(task: Task) -> Decision:
    first, *more = task.look_at
    what, bracket, command = first.rpartition(" (git ")
    command = f"git {command.removesuffix(')')}" if bracket else typed.harness("show", task.id)
    what = (what or first).removeprefix(f"{task.id} ").removeprefix(f"{task.id}: ")
    # On a line with a command there is little room.
    what = what.replace("changed a file that its check depends on:", "changed what checks it:", 1)
    also = f", and {len(more)} more" if more else ""
    return Decision("look", task.id, task.title, what + also, (command,))


def waiting(questions: Questions, decisions: Iterable[Decision]) -> Strings:
    """Return the unfinished tasks that depend on those in `decisions`."""
    waiting: dict[str, None] = {}
    stuck = [each.task for each in decisions if each.task and each.kind in _HOLD_UP]
    seen = set(stuck)
    while stuck:
        for name in questions.dependents(stuck.pop()):
            task = questions.task(name)
            if name not in seen and task and not task.is_done:
                waiting[name] = None
                stuck.append(name)
            seen.add(name)
    return tuple(waiting)
