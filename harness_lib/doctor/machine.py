"""Examine the machine, the repository, the project directory and hs."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

from harness_lib.core import project
from harness_lib.core.context import Context
from harness_lib.doctor import Diagnoses, bad, failed, has_root, ok, warn
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.rules import recovery
from harness_lib.runs import worker_pool
from harness_lib.state.api import Oddity
from harness_lib.system.git import calls, locks, status, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.system.install import launcher
from harness_lib.system.place import find_root
from harness_lib.system.processes import child
from harness_lib.system.processes.environment import find as find_program

LOW_BYTES = 200 * 1024 * 1024
# What a package is called that has another name than its module.
_PACKAGES = {"markdown_it": "markdown-it-py"}


def python(_ctx: Context) -> Diagnoses:
    """Report the running Python and its packages."""
    yield ok(f"Python {platform.python_version()} ({sys.executable})")
    names = [_PACKAGES.get(module, module) for module in launcher.DEPENDENCIES]
    versions = {name: _version(name) for name in names}
    lacking = [name for name, version in versions.items() if not version]
    least = _least_versions()
    old = [
        f"{name} {version} (harness needs {least[name]})"
        for name, version in versions.items()
        if version and name in least and _numbers(version) < _numbers(least[name])
    ]
    if lacking:
        cure = "where a package registry is in reach, type: harness --version"
        yield bad(f"not installed: {', '.join(lacking)}", cure)
    elif old:
        cure = "install harness again, best in an environment of its own (pipx, uv tool install)"
        yield bad(f"too old: {', '.join(old)}", cure)
    else:
        yield ok(", ".join(f"{name} {version}" for name, version in versions.items()))


def worker(ctx: Context) -> Diagnoses:
    """Report whether a worker of `harness run` can start, by starting one."""
    cause = worker_pool.rehearse(ctx)
    if cause is None:
        yield ok("a worker of `harness run` can start")
    else:
        yield bad(f"a worker of `harness run` cannot start: {cause}", "Install harness again.")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _least_versions() -> dict[str, str]:
    """Return the oldest version of each package that an installed harness works with, by its name.

    Empty for a checkout, which brings exact versions: nobody else puts an older one beside them.
    """
    try:
        needed = metadata.requires("harness-skill") or []
    except metadata.PackageNotFoundError:
        return {}
    found = (re.match(r"([\w.-]+)>=([\d.]+)", each) for each in needed)
    return {match[1]: match[2] for match in found if match}


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def ignored(ctx: Context) -> Diagnoses:
    """Report missing lines in the ignore rules."""
    if ctx.git_at_cwd and (offer := project.offer_ignored(ctx.git_at_cwd)):
        yield warn(offer, project.CURE_IGNORED)


def git(ctx: Context) -> Diagnoses:
    """Report whether git is installed and new enough."""
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
    """Report whether a repository exists in which attempts can be committed and rolled back."""
    try:
        tree = ctx.git if has_root(ctx) else Git.open(ctx.cwd)
    except EnvSetupError as error:
        yield failed(error)
        return
    head = tree.head()
    if head is None:
        yield bad(f"{tree.top} has no commit yet, so no attempt could be rolled back", "harness init --git")
    else:
        yield ok(f"repository {tree.top} at {head[:12]} on {tree.branch() or 'no branch'}")
    if tree.git_dir == tree.common_dir and worktrees.is_bare(tree):
        problem = "core.bare is set, so your own git commands refuse this checkout; harness still works"
        yield warn(problem, "git config core.bare false")
    yield _identity(tree)
    under_way = status.under_way(tree)
    if under_way:
        yield warn(f"a {under_way} is under way in {tree.top}", f"finish it: {status.to_end(under_way)}")
    for lock in locks.leftover_locks(tree):
        age = max(0, int(ctx.clock.time() - lock.stat().st_mtime))
        cure = "let the git command that made it end; if none is running, delete that one file"
        yield warn(f"git's lock {lock} has been there for {age} s", cure)


def _identity(tree: Git) -> Oddity:
    answers = (tree.run("config", key, check=False).stdout for key in ("user.name", "user.email"))
    name, email = (answer.decode("utf-8", "replace").strip() for answer in answers)
    if name and email:
        return ok(f"commits as {name} <{email}>")
    cure = 'git config --global user.name "NAME"; git config --global user.email ADDRESS'
    return warn("git does not know who commits; harness commits as `harness`", cure)


def environment(ctx: Context) -> Diagnoses:
    """Report the caller and the environment variables that change how harness behaves."""
    me = ctx.owner
    agent = ctx.agent
    yield ok(f"you are {me.worker} (process {me.pid}{f', inside {agent}' if agent else ''})")
    try:
        recovery.seconds(ctx.env.get(recovery.VARIABLE))
    except UsageError as error:
        yield failed(error)
    if find_root.switched_off(ctx.env):
        yield warn("HARNESS_DISABLED is set and switches all hooks off", "unset HARNESS_DISABLED")


def root(ctx: Context) -> Diagnoses:
    """Report where the list is, and whether it can be written."""
    try:
        path = ctx.root.path
    except UsageError as error:
        yield warn(error.message, error.hint)
        return
    except EnvSetupError as error:
        yield failed(error)
        return
    yield ok(f"state root {path}")
    for place in (path, ctx.root.private, ctx.store.list_file, ctx.store.log_file):
        if place.exists() and not os.access(place, os.W_OK):
            if os.statvfs(place).f_flag & os.ST_RDONLY:
                cure = f"mount its file system for writing: findmnt -T {place}"
            else:
                cure = f"give yourself write permission: ls -ld {place}"
            yield bad(f"{place} cannot be written by you", cure)
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    if free < LOW_BYTES:
        yield bad(f"only {free // 2**20} MB are free on the disk of {path}", "Make room there.")
    else:
        yield ok(f"{free // 2**20} MB are free there")


# As hooks are started.
_TEST = ("-I", "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 10))")
_TEST_SECONDS = 20.0


def python_of_hooks(ctx: Context) -> Diagnoses:
    """Report whether the `python3` that starts the hooks is new enough."""
    python3 = find_program("python3", ctx.env.get("PATH", os.defpath))
    if python3 is None:
        yield warn("python3 is not on the PATH, so no hook can run", "Install Python 3.10 or newer.")
        return
    try:
        code = child.ask([python3, *_TEST], env=ctx.env, cwd=Path(), seconds=_TEST_SECONDS).code
        problem = "is older than 3.10, or does not run" if code else ""
    except OSError as error:
        problem = f"does not run ({error})"
    if problem:
        cure = "Put Python 3.10 or newer first on the PATH that the agent is started with."
        yield bad(f"{python3}, which starts the hooks, {problem}: no agent is held", cure)


def sandbox(ctx: Context) -> Diagnoses:
    """Report whether this process may write to the git directory; the sandbox of Codex forbids it."""
    try:
        git = ctx.git if has_root(ctx) else Git.open(ctx.cwd)
    except EnvSetupError:
        return
    place = project.closed_git(git)
    if place:
        problem = f"nothing can be committed: {place} cannot be written from here"
        yield bad(problem, project.cure_closed_git(ctx, git, place))


def hs(ctx: Context) -> Diagnoses:
    """Report whether hs has its packages and a provider, broken plugins, and who can read its keys."""
    place = launcher.beside("hs")
    if place is None or not launcher.has_packages(ctx.env):
        yield ok("hs: not in use yet; its first call fetches its packages")
        return
    answer = _ask(place, ctx)
    if answer is None:
        yield warn("hs does not answer: `hs doctor` fails", f"{place} doctor")
        return
    for each in answer:
        finding, cure = f"hs: {each.get('what')}", str(each.get("cure") or "")
        if cure and each.get("about") != "provider":
            yield warn(finding, cure)
        else:
            # Users of another agent need no provider.
            yield ok(finding)


def _ask(place: str, ctx: Context) -> list[dict[str, object]] | None:
    try:
        env = {**ctx.env, "HARNESS_LOG": "/dev/null"}
        answer = json.loads(child.ask([place, "doctor", "--json"], env=env, cwd=ctx.cwd, seconds=60.0).output)
    except (OSError, ValueError):
        return None
    return [each for each in answer if isinstance(each, dict)] if isinstance(answer, list) else None
