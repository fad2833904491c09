"""Find the inputs of the check of a task, and which of them an attempt has changed.

They are more than its command names: what its scripts call, and its programs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harness_lib import timestamps, typed
from harness_lib.attempts import rescue_refs
from harness_lib.checks import check_of
from harness_lib.core import ownership, quoting
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError
from harness_lib.rules import input_changes, input_files, rechecks
from harness_lib.state.api import Questions
from harness_lib.system.git import calls, checkout, trees
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import environment
from harness_lib.task import Task
from harness_lib.text import Strings

# How deep scripts that call scripts are followed.
DEEPEST = 3
LARGEST_SCRIPT = 200_000
# Begins a record of a file that git ignores, among those of programs: none of them has such a name.
IGNORED = "./"
GONE = "files that git no longer has as they were (git prune)"


class Scripts:
    """The scripts of a base, each read once, and the inputs of the checks that call them."""

    def __init__(self, git: Git, base: str) -> None:
        self._git, self._base = git, base
        self._named: dict[str, input_files.InputFiles] = {}
        self._has: dict[str, bool] = {}

    def asked(self, task: Task) -> input_changes.Asked:
        """Return the inputs of the check of `task`: files that it names, and those that they name in turn."""
        text, cwd = rechecks.key(task)
        place = (cwd or "").strip("/")
        found = input_files.of(text or "")
        frontier = _called(found)
        for _ in range(DEEPEST):
            paths = [input_changes.joined(place, name) for name in frontier]
            self._read(paths)
            called = [self._named[path] for path in paths]
            frontier = [name for each in called for name in each.named if name not in found.named]
            found = input_files.joined([found, *called])
        return input_changes.Asked(found, place)

    def prepare(self, tasks: Iterable[Task]) -> None:
        """Read the scripts that the checks of `tasks` name in one question to git: there may be thousands."""
        keys = dict.fromkeys(rechecks.key(task) for task in tasks)
        self._read(
            input_changes.joined((cwd or "").strip("/"), name)
            for text, cwd in keys
            for name in _called(input_files.of(text or ""))
        )

    def has(self, path: str) -> bool:
        """Return whether the base has a file or a directory at `path`; "" is the top."""
        if path not in self._has:
            self._has[path] = self._git.object_exists(f"{self._base}:{path}")
        return self._has[path]

    def _read(self, paths: Iterable[str]) -> None:
        new = [path for path in dict.fromkeys(paths) if path not in self._named]
        self._named |= dict.fromkeys(new, input_files.InputFiles())
        scripts = [path for path in new if input_changes.is_script(path) and "\n" not in path]
        texts = trees.blobs(self._git, [f"{self._base}:{path}" for path in scripts])
        for path, text in zip(scripts, texts, strict=True):
            if text:
                self._named[path] = input_files.of_script(path, os.fsdecode(text[:LARGEST_SCRIPT]))


def _called(found: input_files.InputFiles) -> list[str]:
    return [*found.named, *(name for name in found.config if "*" not in name)]


def programs(ctx: Context, task: Task, base: str) -> Strings:
    """Return the programs of the check of `task` and of its scripts, as `NAME=FILE#CONTENT` each.

    Behind them, the files it depends on that git ignores, as `./PATH=MODE#CONTENT`: no tree has them.
    """
    names = Scripts(ctx.git, base).asked(task).inputs.programs
    found = {name: _identity(ctx, task, name) for name in names}
    ignored = checkout.hashed(ctx.git, _ignored(ctx.git, task), store=True)
    # A missing program is recorded only if it is a test runner, which may be installed later.
    return (
        *(f"{name}={file}" for name, file in found.items() if file or name in input_files.RUNNERS),
        *(f"{IGNORED}{path}={mode}#{content}" for path, (mode, content) in ignored.items()),
    )


def changed_programs(ctx: Context, task: Task) -> Iterator[str]:
    """Yield a phrase for each program of the check that is a different file now than at the claim."""
    for record in task.gate.programs if task.gate else ():
        name, _, before = record.partition("=")
        if name.startswith(IGNORED):
            continue
        now = _identity(ctx, task, name)
        if now != before:
            was, is_now = (text.partition("#")[0] or "not there" for text in (before, now))
            other = f"at the claim: {was}" if was != is_now else "with other content than at the claim"
            yield quoting.one_line(f"was checked with {name}: {is_now} ({other})")


def _identity(ctx: Context, task: Task, name: str) -> str:
    env, _ = environment.cleaned(ctx.env, ctx.git.top)
    return environment.program_identity(name, cwd=ctx.git.top / (task.validation.cwd or ""), env=env)


def require_none_taken(ctx: Context, questions: Questions, task: Task, tree: str) -> None:
    """Raise EnvSetupError if somebody other than this attempt removed an input of the failed check.

    `tree` is what was checked. A file that the task's own text names is for the attempt to write.
    """
    git = ctx.git
    base = git.commit_called(task.started_at_commit)
    if base is None:
        return
    asked = Scripts(git, base).asked(task)
    words = f"{task.title}\n{task.description or ''}"
    paths = [input_changes.joined(asked.cwd, name) for name in asked.inputs.named]
    missing = [
        path
        for path in paths
        if not (git.object_exists(f"{tree}:{path}") or input_changes.is_named_for_change(path, words))
    ]
    before = [path for path in missing if not git.object_exists(f"{base}:{path}")]
    during = [path for path in missing if path not in before]
    removed = _removed(git, base, before) or _removed(git, "HEAD", during)
    if not removed or (removed.path in during and not _is_of_another(git, task, removed)):
        return
    who = quoting.one_line(f"{removed.author}: {removed.subject}", quoting.TITLE_LENGTH)
    commit = removed.commit[:12]
    by = f"{commit}{_of_task(git, questions, base, removed.commit)}"
    when = "during this attempt" if removed.path in during else "before this attempt began"
    raise EnvSetupError(
        f"The check of {task.id} needs {quoting.one_line(removed.path, quoting.PATH_LENGTH)}, "
        f"which commit {by} removed {when} ({who}).",
        f"Put it back: {typed.git('checkout', f'{commit}^', '--', f':/{removed.path}')}; "
        f"or give the task another check: {ownership.give_check(ctx, task)}",
    )


class _Removed(NamedTuple):
    commit: str
    author: str
    email: str
    at: str
    subject: str
    path: str


def _removed(git: Git, tip: str, paths: list[str]) -> _Removed | None:
    """Return the last commit up to `tip` that removed one of `paths`; None if there is none."""
    asks = ("log", "-1", "-z", "--diff-filter=D", "--name-only", "--format=%H%x00%an%x00%ae%x00%at%x00%s")
    said = git.text(*asks, tip, "--", *[f":(top,literal){path}" for path in paths]) if paths else ""
    if not said:
        return None
    commit, author, email, at, subject, path, *_ = said.strip("\0").split("\0")
    return _Removed(commit, author, email, at, subject, path.lstrip("\n"))


def _is_of_another(git: Git, task: Task, removed: _Removed) -> bool:
    """Return whether a commit of the attempt's time was pulled: it is older, or by another author."""
    began = task.claimed_at and timestamps.parse(task.claimed_at).timestamp()
    mine = git.run("config", "user.email", check=False).stdout.decode("utf-8", "replace").strip()
    return bool((began and float(removed.at) < began) or (mine and removed.email != mine))


def _of_task(git: Git, questions: Questions, base: str, commit: str) -> str:
    """Return the task whose attempt made `commit`, in words, if that task is completed."""
    done = {task.completed_commit: task for task in questions.search("completed")}
    later = git.lines("rev-list", "--reverse", "--ancestry-path", f"{commit}..{base}")
    task = next((done[oid] for oid in (commit, *later) if oid in done), None)
    began = task and task.started_at_commit
    is_its = began and git.exists(began) and not git.is_ancestor(commit, began)
    return f" of {task.id}" if task and is_its else ""


class ChangedInputs(NamedTuple):
    """The check inputs that an attempt has changed: `forbidden` ones that the task protects, and `others`."""

    forbidden: Strings = ()
    others: Strings = ()


def depends_on_files(task: Task) -> bool:
    """Return whether the check of `task` is known to depend on files."""
    return _inputs(task).are_files


def changed_inputs(git: Git, task: Task, tree: str) -> ChangedInputs:
    """Return which inputs of the check of `task` are other ones in `tree` than at the base of its attempt.

    Many tasks ask for a new file that the check names, or for a new test; new settings always count.
    """
    base = git.commit_called(task.started_at_commit)
    if base is None and task.started_at_commit and _protects(task) and depends_on_files(task):
        return ChangedInputs((GONE,))
    changed = _since_claim(git, task, base, tree)
    if not changed:
        return ChangedInputs()
    inputs = _inputs(task)
    excluded = input_changes.fitting(changed, input_changes.let_go(task.validation.protect))
    cwd = task.validation.cwd or ""
    named = [input_changes.joined(cwd, name) for name in inputs.named]
    settings = input_changes.fitting(
        changed, [*(input_changes.joined(cwd, glob) for glob in inputs.config), *inputs.config]
    )
    tests = input_changes.fitting(changed, _tests(git, cwd, named, inputs.tests))
    strict, loose = list[str](), list[str]()
    for path, change in changed.items():
        if path in excluded or is_same_part(git, path, change):
            continue
        if path in settings or (change[0] and path in named):
            strict.append(path)
        elif change[0] and path in tests:
            loose.append(path)
    if _protects(task):
        return ChangedInputs(tuple(strict), tuple(loose))
    return ChangedInputs((), (*strict, *loose))


def _since_claim(git: Git, task: Task, base: str | None, tree: str) -> dict[str, input_changes.Change]:
    """Return what differs from the claim in `tree`, and of what the check depends on and git ignores."""
    changed = dict(trees.changed(git, git.tree_of(base), tree)) if base else {}
    # No commit has what was untracked then: its copy says what it was.
    before = rescue_refs.before(git, task)
    for path, then in before.kept.items() if before else ():
        changed[path] = then, changed.get(path, (None, None))[1]
    # Earlier versions did not record these.
    if task.gate and not task.gate.judges:
        recorded = _recorded(task.gate.programs)
        paths = {*recorded, *_ignored(git, task)}
        standing = checkout.hashed(git, paths, store=True)
        for path in paths:
            changed[path] = recorded.get(path) or changed.get(path, (None, None))[0], standing.get(path)
    return {path: (then, now) for path, (then, now) in changed.items() if then != now}


def _protects(task: Task) -> bool:
    """Return whether the task protects files; then what its check names and its settings are, too."""
    return any(glob not in input_files.WORDS and glob[0] != "!" for glob in task.validation.protect)


def _ignored(git: Git, task: Task) -> list[str]:
    """Return the files that git ignores and the check of `task` names, or that are its settings.

    By name only: a search through everything that was built and installed here would take long.
    """
    inputs, cwd = _inputs(task), task.validation.cwd or ""
    names = {input_changes.joined(cwd, name) for name in (*inputs.named, *inputs.config)} | {*inputs.config}
    there = [name for name in sorted(names) if checkout.mode(git.top, name)]
    if not there:
        return []
    asked = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--")
    return calls.decode(git.run(*asked, *(f":(top,literal){name}" for name in there)).stdout)


def _recorded(records: Iterable[str]) -> dict[str, trees.Entry]:
    """Return the entries of the files among `records` that git ignored at the claim."""
    parts = (each[len(IGNORED) :].rpartition("=") for each in records if each.startswith(IGNORED))
    return {path: (mode, oid) for path, _, entry in parts for mode, _, oid in [entry.partition("#")]}


def _tests(git: Git, cwd: str, named: Iterable[str], globs: Iterable[str]) -> list[str]:
    """Return globs of the tests that a runner runs: if it is given files, no others."""
    given = [name for name in named if (git.top / name).exists()]
    folders = [name for name in given if (git.top / name).is_dir()] or ([] if given else [cwd])
    return [input_changes.joined(folder, glob) for folder in folders for glob in globs]


def is_same_part(git: Git, path: str, change: input_changes.Change) -> bool:
    """Return whether the part of the file at `path` that a check depends on is the same after `change`."""
    if not input_files.is_partial(path):
        return False
    before, after = (
        entry and input_files.part(path, git.run("cat-file", "blob", entry[1]).stdout) for entry in change
    )
    return before == after


def _inputs(task: Task) -> input_files.InputFiles:
    return input_files.of("\n".join(text or "" for text, _ in check_of(task).commands()))
