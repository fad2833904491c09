"""Tell an agent about its task, and record what it reports: notes, checkpoints and proposed tasks.

A brief is short, and every text from the list is quoted as data. An agent that cannot write the list leaves
its notes, checkpoints and proposed tasks as letters beside its work, which the run records. They are data:
they may do nothing else.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lib import timestamps, typed
from harness_lib.attempts import check, outcome, rescue_refs, snapshots
from harness_lib.checks import check_of, shell_run
from harness_lib.core import add_tasks, ownership, quoting
from harness_lib.core.context import Context, Reply
from harness_lib.core.quoting import REASON_LENGTH, TITLE_LENGTH, one_line
from harness_lib.errors import EnvSetupError, HarnessError, LeaseLostError, NotAllowedError, UsageError
from harness_lib.records import given
from harness_lib.rules import checklist, input_files, runners, transitions
from harness_lib.state import codec
from harness_lib.state.api import Questions
from harness_lib.system import fs
from harness_lib.system.git import snapshot
from harness_lib.system.place import own_files
from harness_lib.system.processes import runner
from harness_lib.task import Checkpoint, Task
from harness_lib.text import safe_name

if TYPE_CHECKING:
    from harness_lib.system.git.repository import Git

KEY_LENGTH = 40
# The directory of the letters of an agent that may not write the list.
MAIL = "mail"
# The logs of the checks of attempts: not of the user's `validate`, of cleanups or of agents.
_OF_ATTEMPTS = re.compile(r"\d+(-merged)?\.log")
MOST = 50
MOST_BYTES = 64 * 1024
# The schema's limit; a brief shows less.
TEXT_LENGTH = 2000
MOST_NOTES = 20
DESCRIPTION_LENGTH = 1000
NOT_FOR_AGENT = (
    "harness commits and goes on to the next task: leave out the steps of the plan that do so "
    "(commit, push, make a branch, tick boxes, a skill that carries out the whole plan)"
)


def brief(
    task: Task, ctx: Context | None = None, questions: Questions | None = None, program: str = "harness"
) -> str:
    """Return the brief of `task`; `program` is what to type for `harness`.

    With `ctx` it also says why the last attempt failed and where its work is, with `questions` what other
    tasks have noted.
    """
    whole = typed.harness("show", task.id, "--json", program=program)
    which = f"attempt {task.attempts + 1} of {task.max_attempts}"
    lines = [f"{task.id} [{task.priority}] {which}: {quoting.title(task)}"]
    lines += _plan(task, questions or (ctx.ask() if ctx and task.source else None), whole)
    if task.description:
        lines += ["description:", *quoting.quoted(task.description, whole)]
    lines += _check(task, whole, ctx)
    lines += _protected(task)
    if task.halt:
        lines.append(f"halted until the user acts: {one_line(task.halt)}")
    if task.checkpoints:
        last = task.checkpoints[-1]
        text = one_line(last.description, TITLE_LENGTH)
        lines.append(f"last checkpoint: {last.step}/{last.total} {text}")
    if task.interruptions and task.status == "in_progress":
        lines.append(
            f"interrupted so far: {task.interruptions}; the work stands (git status), no attempt was counted"
        )
    lines += _failure(task, _last_excerpt(ctx, task) if ctx else None)
    lines += _not_kept(task, ctx.git) if ctx else []
    rescued = attempts_kept(task, ctx.git) if ctx else []
    if rescued:
        lines.append(f"what the last attempt did (rolled back): {rescue_refs.show_command(rescued[-1])}")
    lines += quoting.notes(questions, task) if questions else []
    return "\n".join(lines)


def _plan(task: Task, questions: Questions | None, whole: str) -> list[str]:
    """Return what the plan of `task` says for all of its tasks, and which parts are not for the agent."""
    if not task.source or task.source.key.startswith(checklist.BULLET):
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
    lines = [f"last failure: {one_line(task.error_log[-1])}"] if task.error_log else []
    if task.handback:
        lines.append(f"handed back: {one_line(task.handback.reason, REASON_LENGTH)}")
    if check_output:
        text, log = check_output
        lines += ["what the check said:", *quoting.quoted(text, str(log)), f"all that it said: {log}"]
    return lines


def _last_excerpt(ctx: Context, task: Task) -> tuple[str, Path] | None:
    """Return an excerpt of the check that `task` failed last, and the path of the whole log.

    None if the last failure was not a check's, or its log is gone.
    """
    reason = task.handback.reason if task.handback else (task.error_log or ("",))[-1]
    if not any(words in reason for words in (shell_run.FAILED, shell_run.DID_NOT, shell_run.PRINTED)):
        return None
    logs = []
    for path in fs.matching(check.log_directory(ctx, task), "*.log"):
        # `.harness/` may be deleted at any time.
        with suppress(FileNotFoundError):
            if _OF_ATTEMPTS.fullmatch(path.name):
                logs.append((path.stat().st_mtime_ns, path))
    log = max(logs)[1] if logs else None
    text = runners.of(runner.ends_of(log)) if log else ""
    return (text, log) if log and text else None


def _not_kept(task: Task, git: Git) -> list[str]:
    if not task.gate or task.gate.before is None:
        return []
    names = snapshot.read_untracked(git, task.gate.before).unprotected
    shown = quoting.named(names, quoting.NOTES, TITLE_LENGTH)
    return [f"not yours, and too large to keep a copy of (leave alone): {shown}"] if names else []


def _check(task: Task, whole: str, ctx: Context | None) -> list[str]:
    check = check_of(task)
    if not check.is_given:
        cure = ownership.give_check(ctx, task) if ctx else typed.give_check(task.id)
        return [f"check: none yet, and without one it cannot be completed; it needs one: {cure}"]
    one = (check.text or "").strip()
    plain = "\n" not in one and len(one) <= REASON_LENGTH
    name = f"check (max {task.validation.timeout_seconds} s):"
    lines = [f"{name} {quoting.printable(one)}"] if plain else [name, *quoting.quoted(one, whole)]
    place = task.validation.cwd
    if not place and ctx and ctx.cwd.resolve() != ctx.git.top:
        place = str(ctx.git.top)
    return [*lines, f"the check runs in: {one_line(place, REASON_LENGTH)}"] if place else lines


def attempts_kept(task: Task, git: Git) -> list[str]:
    """Return the refs of the work of earlier attempts, oldest first.

    What an agent committed on another branch, or put into a stash, is work, too. Refs for what a check left
    behind, or what was there before, are not among them.
    """
    kept = [(ref, ref.rpartition("/")[2].partition("-")) for ref in rescues(task, git)]
    return [ref for ref, (_, _, what) in kept if not what or what.startswith("refs-")]


def rescues(task: Task, git: Git) -> list[str]:
    """Return the refs that keep the work of this task's earlier attempts, oldest first."""
    refs = [name for name, _oid in git.refs(f"{rescue_refs.RESCUE_REFS}{safe_name(task.id)}/")]
    # Git sorts them as text: 10 before 2.
    return sorted(refs, key=_age)


def _age(ref: str) -> tuple[list[int], bool]:
    """Return what sorts the rescue `ref`: its attempt; the attempt's own work is after the rest of it."""
    number, _, what = ref.rpartition("/")[2].partition("-")
    return [int(each) for each in re.findall(r"\d+", number)], not what


def _note(ctx: Context, task_id: str, text: str) -> None:
    record_note(ctx, task_id, note_line(task_id, text))


def _checkpoint(ctx: Context, task_id: str, step: str, text: str) -> None:
    numbers = parse_step(step)
    held = ownership.require_settled(ctx, task_id)
    record_checkpoint(ctx, held, numbers, quoting.one_line(text, DESCRIPTION_LENGTH))


def _propose(ctx: Context, task_id: str, text: str) -> None:
    try:
        fields: dict[str, Any] = json.loads(text)
        allowed = {name: fields[name] for name in given.NAMES & fields.keys()}
        draft = codec.decode_task({**allowed, "id": add_tasks.PREFIX, "status": "pending"})
        add_tasks.propose(ctx, task_id, draft)
    except (ValueError, TypeError, AttributeError, RecursionError, codec.ContractError) as error:
        raise UsageError(f"Invalid proposal: {error}", "harness add --help") from error


# How many arguments each letter has after the task.
VERBS: Mapping[str, tuple[Callable[..., object], int]] = {
    "note": (_note, 1),
    "checkpoint": (_checkpoint, 2),
    "add": (_propose, 1),
}


def _mailbox(ctx: Context) -> Path | None:
    """Return the directory of letters in the work tree of a worker.

    None in any other work tree, and where a symbolic link of a commit would lead letters elsewhere.
    """
    private = ctx.private_here
    if not private or ctx.git.top == ctx.root.path:
        return None
    place = private / MAIL
    return None if private.is_symlink() or place.is_symlink() else place


def leave_letter(
    ctx: Context, refused: EnvSetupError | OSError, verb: str, task_id: str | None, *words: str
) -> Reply:
    """Leave a letter for the runner, because the list cannot be written, or read, from here (`refused`).

    `task_id` None: the task of the agent. Raises `refused` if the agent is not supervised, or a letter cannot
    be written either.
    """
    directory, supervised = _mailbox(ctx), ctx.env.get(ownership.SUPERVISED)
    if not supervised or not directory:
        raise refused
    task_id, task = task_id or supervised, None
    # Landlock knows files, and each change of the list makes another one: then the run looks for the task.
    with suppress(EnvSetupError):
        task = ownership.require_task(ctx.ask(), task_id)
    # Sorted by the time of writing.
    name = f"{time.time_ns():020}-{os.urandom(4).hex()}.json"
    letter = json.dumps({"verb": verb, "task": task_id, "words": words})
    try:
        fs.write(directory / name, letter.encode(), durable=False, make=True)
    except OSError:
        raise refused from None
    name = task.id if task else task_id
    return Reply(f"{verb} for {name}: left for the run, which records it.", task=task)


def open_all(ctx: Context) -> list[str]:
    """Carry out the letters in this work tree and remove them; return what was wrong with them.

    What cannot be recorded now (the list is held or half saved, the disk full) stays for the next time: the
    agent whose letter it is works on.
    """
    place = _mailbox(ctx)
    if not place:
        return []
    letters = (path for path in fs.matching(place, "*.json") if path.is_file() and not path.is_symlink())
    problems: list[str] = []
    for letter in sorted(letters)[:MOST]:
        try:
            problems += _open(ctx, letter)
        except (HarnessError, OSError):
            break
        fs.remove(letter)
    return problems


def _open(ctx: Context, letter: Path) -> Iterator[str]:
    try:
        with own_files.reading(letter) as stream:
            document = json.loads(stream.read(MOST_BYTES))
        verb, task_id, words = document["verb"], str(document["task"]), [str(w) for w in document["words"]]
        run, count = VERBS[verb]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        yield f"A letter of the agent cannot be read: {error!r}"
        return
    if len(words) != count:
        yield f"A letter of the agent cannot be read: {verb} takes {count} words, not {len(words)}"
        return
    try:
        run(ctx, task_id, *words)
    except (UsageError, LeaseLostError, NotAllowedError) as error:
        yield f"What the agent left was not recorded (harness {verb}): {error}"


def note_line(task_id: str, text: str) -> str:
    """Return `text` as one line to record. Raises UsageError if nothing is left of it."""
    noted = quoting.one_line(text, TEXT_LENGTH)
    if not noted:
        raise UsageError(
            "Say what is to be noted.", typed.harness("note", task_id, rest='"what later tasks should know"')
        )
    return noted


def record_note(ctx: Context, task_id: str, note: str) -> tuple[Task, list[str]]:
    """Return the task with `note`, and the old notes that were removed for it.

    Raises UsageError if there is no such task.
    """
    with ctx.transaction() as tx:
        task = ownership.require_task(tx, task_id)
        kept = [*(old for old in task.notes if old != note), note]
        task = task._replace(notes=tuple(kept[-MOST_NOTES:]))
        tx.replace(task)
    return task, kept[:-MOST_NOTES]


def record_checkpoint(ctx: Context, held: Task, step: tuple[int, int], description: str) -> Task:
    """Return the held task with the checkpoint: `step` is M and N, `description` one line.

    Raises RefusedError if the user's merge or the like is under way.
    """
    done, total = step
    again = typed.harness("checkpoint", held.id, f"{done}/{total}", description)
    outcome.require_no_operation(ctx.git, held, again)
    tree = ctx.capture()
    with ctx.transaction() as tx:
        task = transitions.checkpoint(
            outcome.require_claim(tx, held),
            Checkpoint(done, total, description, timestamps.render(tx.now), tree),
            now=tx.now,
            lease_seconds=ctx.lease_seconds if tx.concurrent else None,
        )
        tx.replace(task)
        quoted = description.replace('"', "'")
        tx.log("CHECKPOINT", f'step={done}/{total} "{quoted}"', ctx.session.number, task.id)
    keep_elsewhere(ctx, task, tree)
    return task


# Why the work of a task is on this machine only: an attempt says so once.
_kept_here: dict[str, str] = {}


def keep_elsewhere(ctx: Context, task: Task, tree: str | None = None) -> None:
    """Push the work so far, the content `tree` or what it is now, if machines share the list."""
    if not ctx.shared:
        return
    answer = snapshots.take(ctx, task, tree)
    if not answer.done and _kept_here.get(task.id) != answer.why:
        _kept_here[task.id] = answer.why
        ctx.say(f"the work so far of {task.id} is on this machine only: {answer.why}")


def parse_step(step: str) -> tuple[int, int]:
    """Return M and N of the text "M/N". Raises UsageError for other text."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", step)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(
            f"{step!r} is not a step.", 'Write it as M/N: harness checkpoint task-001 2/4 "what was done"'
        )
    return int(match[1]), int(match[2])
