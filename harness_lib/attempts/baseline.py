"""Record what an attempt starts from, refuse one that could lose work, and name what it has left behind.

What an attempt may leave in the user's repository beside its commits (a hook path, a filter, an alias) runs a
program whenever the user types the next git command. Some is meant: `npm install` sets `core.hooksPath` for
husky. So each is named once, with what takes it out, and nothing is changed by us. In a run an agent has a
repository of its own, and leaves nothing here.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from harness_lib import sha256, typed
from harness_lib.attempts import check_inputs, outcome, rescue_refs, target_branch
from harness_lib.checks import fingerprint
from harness_lib.core import project, rights
from harness_lib.core.context import Context
from harness_lib.errors import RefusedError
from harness_lib.rules import attempts, input_files, rechecks, recovery
from harness_lib.state.api import Questions
from harness_lib.system import fs
from harness_lib.system.git import calls, checkout, clones, locks, snapshot, status, trees, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.task import Gate, Task
from harness_lib.text import Strings, safe_name, some, some_quoted

# Untracked files up to these sizes are copied; of larger ones only the name is recorded.
LIMIT_EACH_BYTES = 10 * 1024 * 1024
LIMIT_TOTAL_BYTES = 100 * 1024 * 1024
NAMED = 5
FILES = ("100644", "100755")
_CONVERTS = r"(?s)filter\..*\.(clean|process|required)|core\.(autocrlf|eol)"
DIRECTORY = "gates"


class Baseline(NamedTuple):
    """The work tree an attempt starts from; `unprotected` are untracked files too large to keep a copy of.

    `target` is the branch that the work is merged into, if it is; `conversion` the settings of git that
    convert files.
    """

    base: str
    branch: str | None
    before: str | None
    unprotected: Strings
    target: str | None = None
    conversion: str | None = None


def survey(ctx: Context, settings: clones.Settings | None = None) -> Baseline:
    """Return the baseline of an attempt that begins now.

    `settings`: those of git, from whoever has just seen that no file is changed.
    Raises RefusedError where changes stand that no task made, EnvSetupError where there is no commit yet.
    Untracked files never refuse.
    """
    git = ctx.git
    project.require_writable_git(ctx, git)
    base = git.head()
    if base is None:
        raise target_branch.error(git, git.branch())
    outcome.require_no_operation(git, then="harness claim")
    changes = ctx.changes() if settings is None else status.Changes()
    if changes.tracked:
        raise RefusedError(
            f"{_are(changes.tracked)} changed in {git.top}, and no task made the change; "
            "an attempt could not be rolled back without it.",
            _hint(ctx, git, changes.tracked),
        )
    before, unprotected = keep_untracked(ctx, base, changes.untracked)
    conversions = _conversions(git.settings() if settings is None else settings)
    conversion = json.dumps(conversions, sort_keys=True)
    return Baseline(base, git.branch(), before, unprotected, ctx.target, conversion)


def _hint(ctx: Context, git: Git, changed: Strings) -> str:
    marked = set(status.marked(git)).intersection(changed)
    ask = "; what is not yours to commit, ask the user about." if rights.acting_agent(ctx) else "."
    if inside := [path for path in changed if os.path.lexists(git.top / path / ".git")]:
        look = typed.git("-C", inside[0], "status")
        return f"Commit or undo it in there ({look}), and commit here what it stands at then{ask}"
    if not marked and ask == ".":
        return "Commit it, or set it aside until the task has ended: git stash (git stash pop brings it back)"
    if not marked:
        return f"Commit it if it belongs to the project{ask}"
    names = _are(tuple(sorted(marked)))
    return (
        f"{names} marked so that git does not look there (assume-unchanged or skip-worktree), but an attempt "
        "would. Take the mark off (git update-index --no-assume-unchanged FILE, or --no-skip-worktree FILE) "
        "and commit the change, or keep your own version in a file that git ignores."
    )


def keep_untracked(ctx: Context, base: str, paths: Strings) -> tuple[str | None, Strings]:
    """Keep the content of untracked `paths` in a commit; return it, and what was too large to keep.

    Tracked files that a sparse checkout leaves out are recorded there, too: the attempt did not remove them.
    """
    git = ctx.git
    left_out = status.left_out(git)
    if not paths and not left_out:
        return None, ()
    before = snapshot.capture_untracked(git, paths, LIMIT_EACH_BYTES, LIMIT_TOTAL_BYTES, left_out)
    commit = git.commit(before.tree, [base], rescue_refs.before_subject(ctx.root.path))
    with locks.hold(git):
        git.set_ref(rescue_refs.BEFORE_REFS + commit, commit)
    return commit, before.unprotected


def plain_gate(task: Task, surveyed: Baseline) -> Gate:
    """Return the gate of a task that protects no files; needs no git."""
    return Gate(
        command=fingerprint(task),
        cwd=task.validation.cwd,
        before=surveyed.before,
        branch=surveyed.branch,
        target=surveyed.target,
        conversion=surveyed.conversion,
    )


def gate_for(ctx: Context, task: Task, surveyed: Baseline) -> Gate:
    """Return the gate of `task`: what its attempt may not weaken."""
    kept = snapshot.glob_tree(ctx.git, ctx.protect, None, ctx.excluded_paths) if ctx.protect else None
    gate = plain_gate(task, surveyed)._replace(protect=ctx.protect, kept=kept)
    return _for_check(ctx, task, gate, surveyed.base)


def regate(ctx: Context, task: Task) -> Task:
    """Return `task` with a gate for its present check: the user edited it during an attempt."""
    if not task.gate:
        return task
    return task._replace(gate=_for_check(ctx, task, task.gate, task.started_at_commit or "HEAD"))


def _for_check(ctx: Context, task: Task, gate: Gate, base: str) -> Gate:
    """Return `gate` with all that the present check of `task` goes by; the attempt began with `base`."""
    return gate._replace(
        command=fingerprint(task),
        cwd=task.validation.cwd,
        protected=_protected(ctx, task),
        programs=check_inputs.programs(ctx, task, base),
    )


def _protected(ctx: Context, task: Task) -> str | None:
    """Return the tree of the protected files of the check as they are now."""
    globs = [glob for glob in task.validation.protect if glob not in input_files.WORDS]
    if not globs:
        return None
    return snapshot.glob_tree(ctx.git, globs, task.validation.cwd, ctx.excluded_paths)


def touched(ctx: Context, task: Task) -> Strings:
    """Return which parts of the gate the attempt has changed: names of fields and of files."""
    git, gate = ctx.git, task.gate
    if not gate or gate.command is None:
        # A claim of harness always has a gate and a work tree; one of the legacy protocol has neither, but
        # perhaps the fence of an earlier claim of harness.
        return ("gate",) if task.worktree else ()
    if gate.protect:
        now = snapshot.glob_tree(git, gate.protect, None, ctx.excluded_paths)
        if files := _difference(git, gate.kept, now, gate.protect):
            return files
    at_claim = task._replace(validation=task.validation._replace(cwd=gate.cwd))
    fields = attempts.changed(gate, fingerprint(at_claim), task.validation.cwd)
    files = _difference(git, gate.protected, _protected(ctx, task), ("protected",)) if gate.protected else ()
    if not fields and not files and differs(ctx, task):
        return ("gate",)
    return (*fields, *files)


def _difference(git: Git, then: str | None, now: str | None, unknown: Strings) -> Strings:
    """Return the paths in which two trees differ; `unknown` where that cannot be told.

    `git prune` removes trees that no commit has; that the two differ is known without them.
    """
    if then == now:
        return ()
    is_known = then is not None and now is not None and git.object_exists(then)
    return tuple(trees.changed(git, then or "", now or "")) if is_known else unknown


def require_dependencies(ctx: Context, questions: Questions, task: Task) -> None:
    """Raise RefusedError if a dependency's commit is not in this work tree's history.

    In exclusive mode that is asked only of what was completed on another branch.
    """
    is_asked = questions.concurrent or ctx.target is not None
    for dependency in questions.tasks(task.depends_on):
        if not is_asked and not rechecks.was_completed_elsewhere(dependency):
            continue
        name = dependency.id
        commit = dependency.completed_commit
        if commit is None or ctx.git.is_ancestor(commit, "HEAD"):
            continue
        fetch = "" if ctx.git.exists(commit) else f" (fetch it first: {typed.git('fetch', ctx.root.path)})"
        raise RefusedError(
            f"Task {task.id} builds on {name}, whose commit {commit[:12]} is not in {ctx.git.top} yet.",
            f"Bring it in and claim again: {typed.git('merge', commit[:12])}{fetch}",
        )


def _are(paths: Strings) -> str:
    """Return `paths` as the subject of a sentence, with its verb."""
    shown = some_quoted(paths)
    if len(paths) == 1:
        return f"{shown} is"
    return f"{shown} are" if len(paths) <= NAMED else f"{shown} files are"


def keep(ctx: Context, task: Task) -> None:
    """Keep the gate of `task`, whose attempt begins, or whose check the user has changed."""
    place = ctx.root.private / DIRECTORY / safe_name(task.id)
    fs.write(place, json.dumps(_essence(task)).encode(), durable=False, make=True)


def differs(ctx: Context, task: Task) -> bool:
    """Return whether the gate in the list differs from the copy that was kept at the claim."""
    try:
        kept = json.loads((ctx.root.private / DIRECTORY / safe_name(task.id)).read_bytes())
    except (OSError, ValueError):
        return False
    present = _essence(task)
    # The copy may be of an earlier attempt, or of an older harness, which had other names in it.
    return isinstance(kept, dict) and kept.get("began") == present["began"] and kept != present


def _essence(task: Task) -> dict[str, object]:
    """Return what no attempt may change of its gate, as JSON has it."""
    gate = task.gate
    parts = gate and [
        gate.command,
        gate.cwd,
        gate.protected,
        gate.judges,
        gate.conversion,
        gate.kept,
        [*gate.protect],
        [*gate.programs],
    ]
    return {"began": [task.started_at_commit, task.attempts], "parts": parts}


class Converted(NamedTuple):
    """The git `settings` that an attempt has changed, and the `files` that they would commit differently.

    `ref` keeps these files as they would be committed without that change.
    """

    settings: Strings = ()
    files: Strings = ()
    ref: str = ""


def _conversions(settings: clones.Settings) -> dict[str, str]:
    """Return key → value of those of git's `settings` that convert files; the last value of a key counts."""
    return {key: value for key, value in settings if re.fullmatch(_CONVERTS, key)}


def converted(ctx: Context, task: Task, tree: str) -> Converted:
    """Compare `tree`, just captured from the work tree, with the files under the settings of the claim."""
    git, then = ctx.git, task.gate.conversion if task.gate else None
    if then is None:
        return Converted()
    wanted = json.loads(then)
    now = _conversions(git.settings())
    settings = tuple(sorted(key for key in {*wanted, *now} if wanted.get(key) != now.get(key)))
    if not settings:
        return Converted()
    # All files: a filter can also hide that one was changed.
    entries = {
        path: entry
        for path, entry in trees.entries(git, tree).items()
        if entry[0] in FILES and checkout.mode(git.top, path) in FILES
    }
    if any("=" in key for key in settings):
        # It cannot be tried as it was at the claim, and nobody adds one for a good reason.
        return Converted(settings, settings)
    unconverted = checkout.hashed_by(git, list(entries), wanted, settings)
    edits = {path: (entries[path][0], oid) for path, oid in unconverted.items() if oid != entries[path][1]}
    return Converted(settings, tuple(sorted(edits)), _kept(ctx, task, tree, edits) if edits else "")


def _kept(ctx: Context, task: Task, tree: str, edits: dict[str, trees.Entry]) -> str:
    """Keep `tree` with `edits`, and return the ref."""
    git = ctx.git
    with locks.hold(git):
        content, what = trees.edited(git, tree, edits), f"files of {task.id} as its attempt left them"
        name = rescue_refs.attempt_ref(task, "-unconverted")
        return rescue_refs.keep(git, name, content, git.head(), what)


# Settings that make git run a program at the user's next command; git-config(1) has them.
PROGRAMS = (
    r"filter\..*|alias\..*|core\.(hookspath|fsmonitor|pager|editor|askpass|sshcommand|gitproxy|alternaterefscommand)|sequence\.editor|pager\..*|"
    r"include(if\..*)?\.path|diff\.external|diff\..*\.(command|textconv)|merge\..*\.driver|"
    r"(diff|merge)tool\..*\.(cmd|path)|interactive\.difffilter|credential\.(.*\.)?helper|"
    r"gpg\.(.*\.)?program|remote\..*\.(uploadpack|receivepack|vcs)|uploadpack\.packobjectshook|"
    r"submodule\..*\.update|trailer\..*\.(cmd|command)|(browser|man)\..*\.cmd|tar\..*\.command"
)
REFS = ("refs/heads", "refs/tags")
SHOWN = 20


def note(ctx: Context) -> None:
    """Record the settings, hooks, branches and stashes that exist as an attempt begins in this work tree."""
    if not worktrees.has_clone(ctx.git):
        fs.write(_file(ctx), json.dumps(_present(ctx.git)).encode(), durable=False, make=True)


def left(ctx: Context, task_id: str) -> list[str]:
    """Return a line that names what is new since `note`, and how to remove it; no line for nothing."""
    try:
        before = json.loads(_file(ctx).read_bytes())
    except (OSError, ValueError):
        # Claimed under the legacy protocol, or by an older harness.
        return []
    new = [
        _words(ctx.git, kind, name, before[kind].get(name), value)
        for kind, present in _present(ctx.git).items()
        if kind in before
        for name, value in present.items()
        if before[kind].get(name) != value and name != ctx.git.branch()
    ]
    return [f"{task_id} left in this repository, beside its commits: {some(new, SHOWN)}"] if new else []


def _present(git: Git) -> dict[str, dict[str, str]]:
    """Return the values that exist now, by kind and name."""
    own = _settings(git, "--worktree") if (git.git_dir / "config.worktree").is_file() else {}
    hooks = git.common_dir / "hooks"
    files = [path for path in hooks.iterdir() if path.suffix != ".sample"] if hooks.is_dir() else []
    stashes = git.common_dir / "logs" / "refs" / "stash"
    entries = stashes.read_bytes().splitlines() if stashes.is_file() else []
    return {
        "programs": _settings(git, "--local"),
        "worktree": own,
        "hooks": {path.name: sha256.digest(path.read_bytes()) for path in sorted(files) if path.is_file()},
        # Work moves branches; only new ones are named.
        "refs": dict.fromkeys(
            (name for name, _ in git.refs(*REFS) if not name.startswith(recovery.WAITING)), ""
        ),
        "stashes": {entry.split(b" ")[1].decode(): "" for entry in entries},
    }


def _settings(git: Git, scope: str) -> dict[str, str]:
    """Return the settings of `scope` that run a program."""
    asked = ("config", scope, "-z", "--get-regexp", f"^({PROGRAMS})$")
    found = (record.partition("\n") for record in calls.decode(git.run(*asked, check=False).stdout))
    values: dict[str, list[str]] = {}
    for key, _, value in found:
        # `pager.log=false` and `submodule.x.update=rebase` run none.
        is_switch = key.startswith("pager.") and value in ("", "true", "false")
        if not is_switch and not (key.startswith("submodule.") and not value.startswith("!")):
            values.setdefault(key, []).append(value)
    # Of `include.path` and the like each counts.
    return {key: "\n".join(each) for key, each in values.items()}


def _words(git: Git, kind: str, name: str, old: str | None, new: str) -> str:
    if kind in ("programs", "worktree"):
        words = ("config", *(["--worktree"] if kind == "worktree" else []))
        undo = (name, old) if old is not None else ("--unset-all", name)
        if old is not None and "\n" in old + new:
            # Git does not set one of several, and only a look tells which is new.
            undo = ("--get-all", name)
        return f"{name} ({typed.git(*words, *undo)})"
    if kind == "hooks":
        path = typed.word(git.common_dir / "hooks" / name)
        return f"the hook {name} (rm {path})" if old is None else f"another content of the hook {path}"
    if kind == "stashes":
        return f"a stash ({typed.git('stash', 'show', '-p', name[:12])})"
    what, short = "branch" if name.startswith(recovery.HEADS) else "tag", name.split("/", 2)[2]
    return f"the {what} {short} ({typed.git(what, '-d', short)})"


def _file(ctx: Context) -> Path:
    place = sha256.digest(str(ctx.git.top).encode("utf-8", "surrogateescape"))[:16]
    return ctx.root.private / DIRECTORY / f"side-effects-{place}.json"
