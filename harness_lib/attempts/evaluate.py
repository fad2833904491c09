"""Run the check of an attempt: before its work, and on exactly the content that will be committed.

Source: docs/design.md, "At the finish"; the recovery matrix asks the same question.
A check that passes before any work proves nothing about the work: the first one is kept by command, directory
and tree, as long as the worker lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from harness_lib import timestamps, typed
from harness_lib.attempts import (
    baseline,
    check,
    check_inputs,
    committed,
    outcome,
    pending_merges,
    recheck,
    rescue_refs,
    target_branch,
)
from harness_lib.checks import Checked
from harness_lib.core import ownership, quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, EnvSetupError, HeldError, RefusedError
from harness_lib.rules import rechecks, runners
from harness_lib.rules.attempts import Halt
from harness_lib.state.api import Questions
from harness_lib.system.git import calls, history, snapshot, trees, worktrees
from harness_lib.system.processes import runner
from harness_lib.task import Category, DoneAs, Task, Validation
from harness_lib.text import Strings, counted, some, some_quoted

# These parts of the gate are in the list, which no rollback restores.
IN_THE_LIST = frozenset(("gate", "validation.command", "validation.cwd"))

# How many changed check inputs are remembered of an attempt.
REMEMBERED = 50
PASSED_BEFORE = "had passed its check before any work"
ALREADY_DONE = "was done already: it had passed its check before any work, and nothing was changed"
SAID_TO_BE_DONE = "was done already, as its agent says: its check passes, and nothing was changed"
# An agent's shell ends a command after two minutes, so a longer check does not run again at its finish.
RED_SECONDS = 30
CANNOT_RUN = "The check of {} cannot run here. "


class Evaluation(NamedTuple):
    """The result of the check `validation`, which the user may edit at any time, and what was checked.

    That is the content `tree` of the work tree on top of `head`.

    `halt`: why nobody may try again before the user has looked.
    `against`: what stands against merging the work of a run, whatever the check says.
    `said`: what else the user should look at, part of a sentence each.
    `done_as`: what is to be recorded with it of how the check passed.
    """

    checked: Checked
    validation: Validation
    tree: str = ""
    head: str = ""
    halt: Halt | None = None
    against: pending_merges.Blockers | None = None
    said: Strings = ()
    done_as: DoneAs | None = None

    def verdict(self) -> outcome.Verdict:
        """Return the verdict on work whose check did not pass."""
        category: Category = "TIMEOUT" if self.checked.verdict == "TIMEOUT" else "TEST_FAIL"
        return outcome.Verdict(category, self.checked.failure(), halt=self.halt, validation=self.validation)


def before_work(ctx: Context, task: Task, known: check.Known) -> Checked | None:
    """Return the check of `task` in the clean work tree; None if there is none.

    Files that the check leaves behind are removed. Raises LeaseLostError.
    """
    base, has_untracked = task.started_at_commit, not task.gate or task.gate.before is not None
    # A claim refuses changed files, and keeps the untracked ones: without those the content is the base's.
    began = snapshot.capture(ctx.git) if base is None or has_untracked else ctx.git.tree_of(base)
    key = (rechecks.key(task), began)
    if key not in known:
        ctx.busy(f"checking {task.id} before any work …")
        try:
            known[key] = check.run(ctx, task, suffix="-before")
        except (ConfigError, EnvSetupError):
            return None
        finally:
            recheck.put_back(ctx.git, began)
    return known[key]


def evaluate(
    ctx: Context, questions: Questions, task: Task, *, suffix: str = "", known: check.Known | None = None
) -> Evaluation:
    """Run the check of `task`; an attempt that has changed its own gate has failed without it.

    `suffix` ends the name of the check's log; `known` is what checks have said of which content.

    Raises RefusedError (untrusted), ConfigError (no check), EnvSetupError (cannot run here), LeaseLostError.
    """
    trust.require(ctx, questions)
    # Before the gate: a user may have given it another check, on a machine that has no copy of that.
    trust.require_own(ctx, task)
    outcome.require_no_operation(ctx.git, task)
    # Before the content: a commit made between the two is then seen as a move of HEAD, and not undone.
    head, base = ctx.git.head(), task.started_at_commit
    tree, left_out = snapshot.taken(ctx.git, ctx.excluded_paths)
    worktrees.hold_on(ctx.git, tree)
    files = check_inputs.changed_inputs(ctx.git, task, tree)
    touched = (*baseline.touched(ctx, task), *files.forbidden)
    _note(ctx, task, (*files.forbidden, *files.others))
    if touched:
        return _cheated(ctx, task, tuple(dict.fromkeys(touched)))
    if base not in (None, head) and history.lost_base(ctx.git, base):
        return _off_its_base(ctx, task, base)
    check.require_check(ctx, questions, task)
    against = None
    if task.target is not None:
        against = pending_merges.find(ctx, task.target, task, tree, lacks_some=bool(left_out))
    converted = baseline.converted(ctx, task, tree)
    if converted.files:
        return _converted(ctx, task, converted)
    ctx.busy(f"checking {task.id} …")
    checked = check.run(ctx, task, suffix=suffix)
    if not checked.passed:
        checked = _explained(ctx, questions, task, tree, checked, known or {})
    elif head is None:
        raise _nothing_to_commit_on(ctx, task)
    elif task.validation.hidden:
        oid = outcome.commit_object(ctx, head, task, tree)
        held = committed.run_held_out(ctx, task, oid, suffix=suffix)
        checked = checked if held.passed else held
    said = [*check_inputs.changed_programs(ctx, task), *_without(ctx, task, left_out)]
    said += _ignored_before(ctx, task, tree)
    if converted.settings:
        names = ", ".join(converted.settings)
        said.append(f"changed git's settings for what is committed of a file: {names}")
    return Evaluation(checked, task.validation, tree, head or "", against=against, said=tuple(said))


def _without(ctx: Context, task: Task, left_out: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about those of `left_out` that were not there already when the attempt began."""
    before = rescue_refs.before(ctx.git, task)
    known = before.unprotected if before else ()
    # Git does not list a directory that it cannot open, such as the data of a database.
    old = {path for path in _older(ctx, task, left_out) if (ctx.git.top / path).is_dir()}
    new = [path for path in left_out if not (path in old or calls.covers(known, path))]
    if new:
        yield f"was committed without what git cannot read: {some_quoted(new)}"


def _ignored_before(ctx: Context, task: Task, tree: str) -> Iterator[str]:
    """Yield a sentence about files that are committed only as the attempt has changed a `.gitignore`."""
    base = ctx.git.commit_called(task.started_at_commit)
    changed = trees.changed(ctx.git, ctx.git.tree_of(base), tree) if base else {}
    if not any(path.rpartition("/")[2] == ".gitignore" for path in changed):
        return
    before = rescue_refs.before(ctx.git, task)
    untracked = before.paths if before else ()
    added = (path for path, (old, _) in changed.items() if old is None and path not in untracked)
    if found := list(_older(ctx, task, added)):
        yield f"has what git ignored before it: {some_quoted(found)}"


def _older(ctx: Context, task: Task, paths: Iterable[str]) -> Iterator[str]:
    """Yield those of `paths` that have not changed since the claim."""
    began = timestamps.parse(task.claimed_at).timestamp() if task.claimed_at else 0.0
    for path in paths:
        with suppress(OSError):
            if (ctx.git.top / path).lstat().st_ctime < began:
                yield path


def _explained(
    ctx: Context, questions: Questions, task: Task, tree: str, failed: Checked, known: check.Known
) -> Checked:
    """Return the `failed` check of `tree` with what was red before the attempt.

    Raises EnvSetupError if it cannot run here, or if another attempt has removed one of its inputs.
    """
    check_inputs.require_none_taken(ctx, questions, task, tree)
    if failed.verdict == "ENV_SETUP":
        raise EnvSetupError(
            cannot_run(task, failed),
            f"Install it or fix harness-init.sh; then type: {typed.harness('finish', task.id)}. "
            f"If the check itself is wrong, give it another: {ownership.give_check(ctx, task)}",
        )
    red = _red_before(ctx, task, failed, known)
    return failed._replace(message=f"{failed.message} {red}") if red else failed


def _red_before(ctx: Context, task: Task, failed: Checked, known: check.Known) -> str:
    """Return a sentence that names which tests of the `failed` check were red before the attempt; "" if none.

    A short check runs for that on a clean checkout of what the attempt began with. Raises LeaseLostError.
    """
    base, names = task.started_at_commit, _failing(failed)
    if base is None or not names:
        return ""
    before = known.get((rechecks.key(task), ctx.git.tree_of(base)))
    if not before and failed.seconds <= RED_SECONDS:
        asked = task.validation._replace(timeout_seconds=2 * RED_SECONDS)
        try:
            with committed.beside(ctx, base) as clean:
                ctx.busy(f"checking {task.id} as it was before the attempt …")
                before = check.run(clean, task._replace(validation=asked), suffix="-before")
        except (ConfigError, EnvSetupError, HeldError):
            return ""
    failed_before = set(_failing(before)) if before else set()
    red = [name for name in names if name in failed_before]
    if not red:
        return ""
    which = some([quoting.one_line(name, quoting.PATH_LENGTH) for name in red])
    if len(red) == len(names):
        return f"Every test that fails was red before this attempt: {which}."
    return f"Of {counted(len(names), 'failing test')}, {len(red)} had been red before this attempt: {which}."


def _failing(checked: Checked) -> list[str]:
    """Return the names of the tests that a failed check names."""
    if checked.verdict != "TEST_FAIL" or checked.held_out:
        return []
    return list(dict.fromkeys(each.name for each in runners.failures(runner.ends_of(checked.log))))


def cannot_run(task: Task, checked: Checked) -> str:
    """Return the sentences about a check of `task` that could not run."""
    return CANNOT_RUN.format(task.id) + checked.message


def _nothing_to_commit_on(ctx: Context, task: Task) -> RefusedError:
    branch = (task.gate and task.gate.branch) or "refs/heads/main"
    back = typed.git("symbolic-ref", "HEAD", branch)
    return RefusedError(
        f"HEAD stands for {ctx.git.branch()}, where no commit is yet: {task.id} cannot be committed there.",
        f"Point it back to where the task began (files and index stay): {back}",
    )


def _note(ctx: Context, task: Task, files: Strings) -> None:
    """Record which check inputs the attempt has changed: whoever trusts its check should know.

    What an earlier, interrupted check of this attempt recorded is replaced.
    """
    files = tuple(sorted(set(files)))[:REMEMBERED]
    if files == task.touched and task.outcome is None:
        return
    with ctx.transaction("tasks") as tx:
        tx.replace(outcome.require_claim(tx, task)._replace(touched=files, outcome=None))


def _off_its_base(ctx: Context, task: Task, base: str) -> Evaluation:
    where = target_branch.short(rescue_refs.branch(ctx.git, task) or "HEAD")
    message = (
        f"{where} no longer has the commit {base[:12]} that the attempt began at "
        "(reset, amended or begun anew). Add commits, and remove none that were there before."
    )
    return Evaluation(Checked("TEST_FAIL", message, "", ctx.store.log_file), task.validation)


def _converted(ctx: Context, task: Task, converted: baseline.Converted) -> Evaluation:
    settings, files = (some_quoted(names) for names in converted[:2])
    message = (
        f"The commit would not hold what the check sees: {files}. "
        f"The attempt changed git's settings, which convert these files: {settings}."
    )
    if converted.ref:
        message += f" As they stand, these files are kept: {rescue_refs.show_command(converted.ref)}"
    # They outlive the attempt, so the next attempt would inherit them.
    look = typed.git("config", "--show-origin", "--get-regexp", "^(filter|core)[.]")
    words = (
        f"CONFIG: git's settings {settings} were changed during an attempt. The user looks at them ({look}), "
        f"takes back what is not wanted, and types: {typed.harness('retry', task.id)}"
    )
    checked = Checked("TEST_FAIL", message, "", ctx.store.log_file)
    return Evaluation(checked, task.validation, halt=Halt("CHECK_CHANGED", words))


def _cheated(ctx: Context, task: Task, touched: Strings) -> Evaluation:
    names = ", ".join(touched)
    checked = Checked("TEST_FAIL", f"The attempt changed its own gate: {names}.", "", ctx.store.log_file)
    if not IN_THE_LIST.intersection(touched):
        return Evaluation(checked, task.validation)
    # The next attempt would be checked by files that this one wrote.
    cure = f"the user must say what the check is: {typed.give_check(task.id)}"
    words = f"CONFIG: {names} was changed during an attempt; {cure}"
    return Evaluation(checked, task.validation, halt=Halt("CHECK_CHANGED", words))
