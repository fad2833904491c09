"""Inspect work that has passed its check: check it once more, and look through what its commit adds.

An attempt may change a test, a script or the settings of a runner. Whether its work also passes without
these changes is found out by the second check, on a clean checkout with the attempt's content and the
base's check inputs; the checks of completed tasks whose inputs it has changed run there, too. Where only
new tests check the work, the check must fail with these on the base's content.

Source: docs/design.md, "The second check".
"""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import check, check_inputs, committed
from harness_lib.checks import Checked
from harness_lib.core import quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, EnvSetupError, RefusedError
from harness_lib.rules import input_changes, input_files, rechecks
from harness_lib.rules.input_changes import Found, Fresh
from harness_lib.system.git import history, status, submodules, trees
from harness_lib.system.git.calls import covers
from harness_lib.system.git.repository import Git
from harness_lib.system.place import own_files
from harness_lib.task import Task
from harness_lib.text import Strings, counted, sentence, some, some_quoted

# Only the beginning of a file is searched for keys: later content is data.
MOST_BYTES = 1_000_000
TARGET_LENGTH = 200
EXECUTABLE = "100755"
FILES = ("100644", "100755")
MEGABYTE = 1_000_000
# The checks of at most this many completed tasks are repeated; a runner's settings may concern thousands.
MOST = 5
NOT_REPEATED = (
    "its check could not be repeated on a clean checkout with the files that it depends on as they were"
)

Key = rechecks.Key


class Objection(NamedTuple):
    """Why passing its own check is not enough: the check of `task` depends on `files`, which were changed.

    `checked`: the result of that check with these files as they were; None if the task is not completed.
    """

    task: Task
    files: Strings
    checked: Checked | None = None


class Verdict(NamedTuple):
    """The result of the second check, and what the user should review in any case.

    `vacuous`: new tests of the attempt that pass without its work.
    """

    objections: tuple[Objection, ...] = ()
    vacuous: Strings = ()
    look_at: Strings = ()

    @property
    def files(self) -> Strings:
        """Return the files that the user would have to accept."""
        return tuple(dict.fromkeys(path for each in self.objections for path in each.files))


class _Changes(NamedTuple):
    """The check inputs that an attempt has changed: of its own check, of completed and of pending tasks.

    `fresh`: the new tests, if its own check depends on nothing else that changed.
    """

    changed: Mapping[str, input_changes.Change]
    own: Found = Found()
    fresh: Fresh = Fresh()
    completed: tuple[tuple[Task, Found], ...] = ()
    open: tuple[tuple[Task, Strings], ...] = ()

    @property
    def files(self) -> Strings:
        found = (self.own, *(found for _, found in self.completed))
        return tuple(dict.fromkeys(path for each in found for path in each.all))


def second_check(ctx: Context, task: Task, tree: str, known: check.Known) -> Verdict:
    """Return the objections to the content `tree`, which has passed the check of `task`.

    `known` has the results of earlier checks, by content.
    Raises LeaseLostError, RefusedError (untrusted commands).
    """
    base = task.started_at_commit
    changes = _changes(ctx, task, tree)
    if base is None or not changes:
        return Verdict()
    changes, said = _trusted(ctx, changes)
    runs = _Runs(ctx, task, known)
    objections = [Objection(other, files) for other, files in changes.open]
    vacuous: Strings = ()
    try:
        failing = _failing(runs, tree, changes)
        others = [each for each in failing if each.task is not task]
        base_says = runs.of(ctx.git.tree_of(base), [each.task for each in others])
        objections += [each for each, before in zip(others, base_says, strict=True) if before.passed]
        if len(others) < len(failing):
            (alone,) = runs.of(tree, [task])
            objections += [each for each in failing if each.task is task and alone.passed]
            said += [] if alone.passed else [NOT_REPEATED]
        if changes.fresh.tests and not changes.own.old and not objections:
            vacuous = _vacuous(runs, base, changes)
    except EnvSetupError:
        # `harness-init.sh` fails there, so nothing can be found out; the check has passed in place.
        said.append(NOT_REPEATED)
    if len(changes.completed) > MOST:
        rest = counted(len(changes.completed) - MOST, "more check")
        said.append(f"changed what {rest} of completed tasks go by; these were not repeated")
    verdict = Verdict(tuple(objections), vacuous)
    return verdict._replace(look_at=(*_weakened(ctx.git, changes, verdict.files), *said))


def _trusted(ctx: Context, changes: _Changes) -> tuple[_Changes, list[str]]:
    """Return `changes` without completed tasks whose checks are not trusted here, and words about these."""
    here = {task.id for task in trust.known(ctx, [task for task, _ in changes.completed])}
    left = [task.id for task, _ in changes.completed if task.id not in here]
    if not left:
        return changes, []
    kept = tuple(each for each in changes.completed if each[0].id in here)
    said = f"changed what the checks of {some(left)} go by, which are not trusted on this machine"
    return changes._replace(completed=kept), [f"{said} and were not repeated"]


def waiting(ctx: Context, task: Task, tree: str) -> Strings:
    """Return the check inputs that the content `tree` of `task` changes and the user has not accepted."""
    changes = _changes(ctx, task, tree)
    if not changes:
        return ()
    return tuple(dict.fromkeys((*changes.files, *(path for _, files in changes.open for path in files))))


def explanation(verdict: Verdict, task: Task) -> str:
    """Return why the work is not completed yet, for the agent that goes on with it."""
    sentences = []
    for each in verdict.objections:
        names = some_quoted(each.files)
        if not each.checked:
            sentences.append(
                f"It changes or removes lines of {names}, by which the check of {each.task.id} goes, "
                "a task that is still to be done."
            )
        else:
            whose = (
                "its check"
                if each.task.id == task.id
                else f"the check of {each.task.id}, which is completed,"
            )
            sentences.append(
                f"With {names} as before the attempt, {whose} fails. {sentence(each.checked.failure())}"
            )
    back = typed.git("checkout", (task.started_at_commit or "")[:12], rest="-- FILE")
    return (
        f"The work passed its check, but changed files that a check depends on. {' '.join(sentences)} "
        f"Make the work pass with these files as they were ({back}); new tests are welcome. "
        "If the task cannot be done without that change, leave it as it is, and the user will be asked."
    )


def vacuous_explanation(verdict: Verdict) -> str:
    """Return why work whose new tests pass without it is not completed yet, for the agent that goes on."""
    names = some_quoted(verdict.vacuous)
    return (
        f"The work passed its check, but your tests pass without your change: with {names} alone, on what "
        "the attempt began with, the check passes, too. Let them fail without the change, or say in a note "
        "(harness note) why they cannot: next time the work is completed, and the user is told."
    )


def _changes(ctx: Context, task: Task, tree: str) -> _Changes | None:
    """Return which check inputs `tree` changes; None if it changes none, or they are not guarded."""
    git = ctx.git
    base = git.commit_called(task.started_at_commit)
    moves = trees.changed(git, git.tree_of(base), tree) if base else {}
    if base is None or not moves or input_files.NONE in task.validation.protect:
        return None
    excluded = input_changes.fitting(moves, input_changes.let_go(task.validation.protect))
    changed = {
        path: change
        for path, change in moves.items()
        if path not in excluded
        and not covers(task.accepted, path)
        and not check_inputs.is_same_part(git, path, change)
    }
    if not changed:
        return None
    scripts = check_inputs.Scripts(git, base)
    words = f"{task.title}\n{task.description or ''}"
    asked = scripts.asked(task)
    own = input_changes.find(changed, asked, words, scripts.has, sys.stdlib_module_names)
    fresh = input_changes.fresh(changed, asked, scripts.has, words)
    mine, seen = rechecks.key(task), set[Key]()
    # Tasks whose own files were changed come first, then the last ones of the list.
    by_name: list[tuple[Task, Found]] = []
    completed: list[tuple[Task, Found]] = []
    still_open: list[tuple[Task, Strings]] = []
    lost = cache(lambda path: _lost(git, changed[path]))
    others = list(ctx.ask().search()) if input_changes.may_be_input(changed) else []
    scripts.prepare(others)
    for other in others:
        key = rechecks.key(other)
        if key == mine or key in seen or not key[0]:
            continue
        seen.add(key)
        theirs = scripts.asked(other)
        files = input_changes.named_inputs(changed, theirs, words)
        if other.is_done:
            found = input_changes.find(changed, theirs, words, scripts.has)
            (by_name if files else completed).extend([(other, found)] if found.old else [])
        elif lost_in := tuple(path for path in files if lost(path)):
            still_open.append((other, lost_in))
    completed = [*by_name, *reversed(completed)]
    found_any = own or own.free or fresh.tests or fresh.alone or completed or still_open
    return _Changes(changed, own, fresh, tuple(completed), tuple(still_open)) if found_any else None


def _failing(runs: _Runs, tree: str, changes: _Changes) -> list[Objection]:
    """Run the checks whose inputs `tree` changes on it, with the base's inputs; return those that fail."""
    if not changes.files:
        return []
    asked = [*([(runs.task, changes.own)] if changes.own else []), *changes.completed[:MOST]]
    edits = {path: changes.changed[path][0] for path in changes.files}
    content = trees.edited(runs.ctx.git, tree, edits)
    said = zip(asked, runs.of(content, [other for other, _ in asked]), strict=True)
    return [Objection(other, found.all, checked) for (other, found), checked in said if not checked.passed]


def _vacuous(runs: _Runs, base: str, changes: _Changes) -> Strings:
    """Return the new tests of the attempt if its check passes with these alone on the base's content."""
    edits = {path: changes.changed[path][1] for path in (*changes.fresh.tests, *changes.fresh.beside)}
    (checked,) = runs.of(trees.edited(runs.ctx.git, base, edits), [runs.task])
    return changes.fresh.tests if checked.passed else ()


class _Runs:
    """Runs checks on clean checkouts, each once per content."""

    def __init__(self, ctx: Context, task: Task, known: check.Known) -> None:
        self.ctx, self.task, self._known = ctx, task, known

    def of(self, content: str, tasks: Sequence[Task]) -> list[Checked]:
        """Return the results of the checks of `tasks` on the tree `content`."""
        new = [task for task in tasks if (rechecks.key(task), content) not in self._known]
        if new:
            git, base = self.ctx.git, self.task.started_at_commit
            message = f"harness: to check {self.task.id} again\n"
            with committed.beside(self.ctx, git.commit(content, [base] if base else [], message)) as view:
                for task in new:
                    self._known[rechecks.key(task), content] = self._run(view, task)
        return [self._known[rechecks.key(task), content] for task in tasks]

    def _run(self, view: Context, task: Task) -> Checked:
        view.busy(f"second check of {self.task.id}: checking {task.id} …")
        try:
            return check.run(view, task, suffix="-verdict", holder=self.task)
        except (ConfigError, EnvSetupError) as error:
            return Checked("ENV_SETUP", error.message, "", view.root.logs)


def _weakened(git: Git, changes: _Changes, named: Collection[str]) -> Iterator[str]:
    """Yield a phrase for each old check input, not `named` yet, that lost lines or gained a skip.

    One more phrase says that the attempt has written nothing but check inputs.
    """
    for path in (*changes.own.old, *changes.own.free):
        if path in named:
            continue
        if lost := _lost(git, changes.changed[path]):
            name = quoting.one_line(path, quoting.PATH_LENGTH)
            yield f"changed a file that its check depends on: {name} ({counted(lost, 'line')})"
    if changes.fresh.alone:
        names = quoting.named(changes.fresh.alone, quoting.TOUCHED)
        yield f"added only files that its check depends on: {names}"


def _lost(git: Git, change: input_changes.Change) -> int:
    old, new = (_lines(git, entry) for entry in change)
    return input_changes.lost_lines(old, new) or int(not change[1])


def _lines(git: Git, entry: trees.Entry | None) -> list[str]:
    if not entry or entry[0] == trees.GITLINK:
        return []
    return _stored(git, entry[1]).decode("utf-8", "replace").splitlines()


class Contents(NamedTuple):
    """The files that a commit changes: how many, which new ones are named like secrets, and what to review.

    `files` is None where nobody knows what the attempt began with. `look_at` is part of a sentence each:
    what seems to be a key in a file, links that lead out of the repository, repositories inside, and caches
    that commits of the attempt had.
    """

    files: int | None = None
    secrets: Strings = ()
    look_at: Strings = ()


def contents(ctx: Context, task: Task, head: str, tree: str) -> Contents:
    """Return what the content `tree`, committed on `head`, adds to the base of `task`.

    Files that the user has accepted are no longer reported.
    """
    git = ctx.git
    base = git.commit_called(task.started_at_commit)
    if base is None and task.started_at_commit:
        # It is gone, so any file may be new.
        named = {
            _secret(git, path, each) for path, each in trees.entries(git, tree).items() if each[0] in FILES
        }
        found = sorted(path for path in named if path and not covers(task.accepted, path))
        gone = "the commit that it began with is gone, so what it has changed is not known"
        return Contents(None, tuple(found), (gone,))
    if base is None:
        return Contents()
    changed = trees.changed(git, git.tree_of(base), tree)
    put = {path: new for path, (_, new) in changed.items() if new and new[0] in FILES}
    moved = {old for old, new in changed.values() if old and not new}
    added = {path: new for path, new in put.items() if not changed[path][0] and new not in moved}
    secrets = {_secret(git, path, entry) for path, entry in added.items()}
    keys = ((path, _key(git, path, changed[path][0])) for path in put)
    look_at = [f"{path!r} seems to hold {kind}" for path, kind in keys if kind]
    look_at += _odd(git, changed, tree)
    if base != head:
        # A file that one commit adds and a later one removes stays in the history.
        committed = history.added(git, base, head)
        secrets |= {input_changes.secret(path) for path in committed}
        if caches := status.caches_above(git, committed):
            look_at.append(
                f"{some(caches)} was left out of its commits; a `!` rule in .gitignore takes it in"
            )
    found = sorted(path for path in secrets if path and not covers(task.accepted, path))
    return Contents(len(changed), tuple(found), tuple(look_at))


def _odd(git: Git, changed: Mapping[str, input_changes.Change], tree: str) -> Iterator[str]:
    """Yield what to say of new links and repositories: a chat commits of a repository what `git add` does."""
    for path, (old, new) in changed.items():
        mode = new[0] if new else None
        if new and mode == trees.SYMLINK and _leads_out(path, target := os.fsdecode(_stored(git, new[1]))):
            shown = quoting.one_line(repr(target), TARGET_LENGTH)
            yield f"the link {path!r} leads out of the repository, to {shown}"
        is_new = mode == trees.GITLINK and not (old and old[0] == trees.GITLINK)
        if is_new and not submodules.is_submodule(git, tree, path):
            yield f"{path!r} is a repository of its own, and the commit has none of its files"


def _leads_out(path: str, target: str) -> bool:
    """Return whether a link at `path` to `target` leads out of the repository."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return f"{place}/".startswith(("/", "../", ".git/"))


def _secret(git: Git, path: str, entry: trees.Entry) -> str | None:
    mode, oid = entry
    if path.rpartition("/")[2] == input_changes.NPM:
        return path if input_changes.has_npm_token(_stored(git, oid)) else None
    return input_changes.secret(path, executable=mode == EXECUTABLE)


def _key(git: Git, path: str, old: trees.Entry | None) -> str | None:
    """Return what kind of key the attempt seems to have put into the file at `path`."""
    try:
        kind = input_changes.key_in(own_files.read(git.top / path, MOST_BYTES))
    except OSError:
        return None
    return None if kind is None or (old and input_changes.key_in(_stored(git, old[1]))) else kind


def _stored(git: Git, oid: str) -> bytes:
    return git.run("cat-file", "blob", oid).stdout


def refuse_large(ctx: Context, task: Task, tree: str, most: float) -> None:
    """Raise RefusedError if `tree` adds a file of more than `most` megabytes; 0 is no limit."""
    git = ctx.git
    base = git.commit_called(task.started_at_commit)
    if not most or base is None:
        return
    new = {
        path: entry[1]
        for path, (_, entry) in trees.changed(git, git.tree_of(base), tree).items()
        if entry and entry[0] != trees.GITLINK
    }
    sizes = trees.sizes(git, new.values())
    large = [(path, sizes[oid] / MEGABYTE) for path, oid in new.items() if sizes[oid] > most * MEGABYTE]
    if not large:
        return
    shown = some([f"{path} ({size:.1f} MB)" for path, size in large])
    raise RefusedError(
        f"The check passed, but the work has files of more than {most:g} MB: {shown}. Should they be "
        f"committed? Then type: {typed.harness('retry', task.id)}, and harness run with a larger --max-file; "
        "if not, say so in the task's description (harness edit) before you retry it.",
    )
