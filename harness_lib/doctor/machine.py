"""The machine, the repository and the state root, as `harness doctor` looks at them. Never writes."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from harness_lib.core import git_access
from harness_lib.core.context import Context
from harness_lib.doctor.diagnosis import Diagnoses, Diagnosis, bad, failed, has_root, ok, warn
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.rules import leases
from harness_lib.runs import worker_pool
from harness_lib.system.files import tree_ops
from harness_lib.system.git import calls, locks, worktrees
from harness_lib.system.git.repository import Git, to_end
from harness_lib.system.place import find_root
from harness_lib.system.processes import owner

LOW_BYTES = 200 * 1024 * 1024
PACKAGES = ("filelock", "jsonschema", "rich", "tomlkit")


def python(_ctx: Context) -> Diagnoses:
    """Say which Python runs us, and with which packages."""
    yield ok(f"Python {platform.python_version()} ({sys.executable})")
    installed = [f"{name} {number}" for name in PACKAGES if (number := _version(name))]
    lacking = [name for name in PACKAGES if not _version(name)]
    if lacking:
        cure = "where a package registry is in reach, type: harness --version"
        yield bad(f"not installed: {', '.join(lacking)}", cure)
    else:
        yield ok(", ".join(installed))


def worker(ctx: Context) -> Diagnoses:
    """Say whether a worker of `harness run` can start, by starting one in the same way."""
    cause = worker_pool.rehearse(ctx)
    if cause is None:
        yield ok("a worker of `harness run` can start")
    else:
        yield bad(f"a worker of `harness run` cannot start: {cause}", "Install harness again.")


def _version(package: str) -> str | None:
    from importlib import metadata  # noqa: PLC0415 (every verb is loaded with this one, and pays for it)

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def ignored(ctx: Context) -> Diagnoses:
    """Say which lines the rules for ignoring lack."""
    if ctx.git_at_cwd is not None and (offer := git_access.offer(ctx.git_at_cwd)):
        yield warn(offer, git_access.CURE)


def git(ctx: Context) -> Diagnoses:
    """Say whether git is there and new enough."""
    try:
        reported = calls.reported(ctx.cwd)
    except EnvSetupError as error:
        yield failed(error)
        return
    if calls.is_older(reported, calls.OLDEST):
        yield bad(f"{reported} is too old", "Install git {}.{} or newer.".format(*calls.OLDEST))
    elif calls.is_older(reported, calls.OLDEST_FOR_RUNS):
        yield warn(f"{reported}: {calls.FOR_RUNS}", calls.CURE_FOR_RUNS)
    else:
        yield ok(reported)


def repository(ctx: Context) -> Diagnoses:
    """Say whether there is a repository that attempts can be committed to and rolled back in."""
    try:
        tree = _work_tree(ctx)
    except EnvSetupError as error:
        yield failed(error)
        return
    head = tree.head()
    if head is None:
        yield bad(f"{tree.top} has no commit yet, so no attempt could be rolled back", "harness init --git")
    else:
        yield ok(f"repository {tree.top} at {head[:12]} on {tree.branch() or 'no branch'}")
    if tree.git_dir == tree.common_dir and worktrees.is_bare(tree):
        problem = "core.bare is set, so your own git commands refuse this checkout; harness works on"
        yield warn(problem, "git config core.bare false")
    yield _identity(tree)
    under_way = tree.under_way()
    if under_way:
        yield warn(f"a {under_way} is under way in {tree.top}", f"finish it: {to_end(under_way)}")
    for lock in locks.leftover_locks(tree):
        age = max(0, int(ctx.clock.now().timestamp() - lock.stat().st_mtime))
        cure = "let the git command that made it end; if none is running, delete that one file"
        yield warn(f"git's lock {lock} stands since {age} s", cure)


def _work_tree(ctx: Context) -> Git:
    """Return the list's work tree, or the one around here where there is no list."""
    return ctx.git if has_root(ctx) else Git.open(ctx.cwd)


def _identity(tree: Git) -> Diagnosis:
    names = (tree.run("config", key, check=False).stdout.decode("utf-8", "replace").strip() for key in _WHO)
    name, email = names
    if name and email:
        return ok(f"commits as {name} <{email}>")
    cure = 'git config --global user.name "NAME"; git config --global user.email ADDRESS'
    return warn("git does not know who commits; harness commits as `harness`", cure)


_WHO = ("user.name", "user.email")


def environment(ctx: Context) -> Diagnoses:
    """Say who the caller is, and which variables change what harness does."""
    me = ctx.owner
    agent = owner.in_agent(ctx.env)
    yield ok(f"you are {me.worker} (process {me.pid}{f', inside {agent}' if agent else ''})")
    try:
        leases.seconds(ctx.env.get(leases.VARIABLE))
    except UsageError as error:
        yield failed(error)
    if find_root.switched_off(ctx.env):
        yield warn("HARNESS_DISABLED is set and switches all hooks off", "unset HARNESS_DISABLED")


def root(ctx: Context) -> Diagnoses:
    """Say where the list lies, how it was found, and whether it can be written there."""
    try:
        path = ctx.root.path
    except UsageError as error:
        yield warn(error.message, error.hint)
        return
    except EnvSetupError as error:
        yield failed(error)
        return
    yield ok(f"state root {path}, found {_how(ctx, path)}")
    for place in (path, ctx.root.private, ctx.store.list_file, ctx.store.log_file):
        if place.exists() and not os.access(place, os.W_OK):
            if tree_ops.is_read_only(place):
                cure = f"mount its file system for writing: findmnt -T {place}"
            else:
                cure = f"give yourself the right: ls -ld {place}"
            yield bad(f"{place} cannot be written by you", cure)
    free = tree_ops.free_bytes(path)
    if free < LOW_BYTES:
        yield bad(f"only {free // 2**20} MB are free on the disk of {path}", "Make room there.")
    else:
        yield ok(f"{free // 2**20} MB are free there")


def _how(ctx: Context, path: Path) -> str:
    if ctx.env.get("HARNESS_STATE_ROOT"):
        return "through HARNESS_STATE_ROOT"
    for name, start in (
        ("CLAUDE_PROJECT_DIR", ctx.env.get("CLAUDE_PROJECT_DIR")),
        ("the current directory", str(ctx.cwd)),
    ):
        directory = Path(os.path.realpath(start)) if start else None
        if directory is not None and (path == directory or path in directory.parents):
            return f"at {name}" if path == directory else f"above {name}"
    return "through the repository of this linked worktree"
