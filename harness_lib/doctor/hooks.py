"""The hooks and what keeps them from working, as `harness doctor` looks at them. Never writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness_lib import typed
from harness_lib.agents.adapter import Host
from harness_lib.agents.registry import HOSTS, WITHOUT_HOOKS
from harness_lib.core import git_access
from harness_lib.core.context import Context
from harness_lib.doctor.diagnosis import Diagnoses, Diagnosis, bad, failed, has_root, ok, warn
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.hookinstall import routes
from harness_lib.hookinstall.routes import Route
from harness_lib.system.git.repository import Git
from harness_lib.system.install import interpreter
from harness_lib.system.place import roots
from harness_lib.system.processes import owner


def loaded(ctx: Context) -> Diagnoses:
    """Say of each agent that is used here on which way it gets the hooks, and what stands in that way."""
    agent = owner.in_agent(ctx.env)
    used = [host for host in HOSTS.values() if host.name == agent or routes.is_here(ctx, host)]
    for host in used:
        readable = routes.readable(ctx, host)
        if isinstance(readable, HarnessError):
            yield failed(readable)
        elif readable:
            yield from _ways(ctx, host, readable)
        elif host.name == agent:
            yield warn(f"{host.title} does not load the hooks: it may stop early", _install(host))
        else:
            yield Diagnosis("ok", f"{host.title} is used on this machine without the hooks", _install(host))
    if agent and agent in WITHOUT_HOOKS:
        yield ok(WITHOUT_HOOKS[agent].split(";")[0])


def _ways(ctx: Context, host: Host, readable: list[Route]) -> Iterator[Diagnosis]:
    for route in readable:
        if route.missing:
            yield warn(f"a hook of {host.title} is gone: {route.missing[0]}", _install(host))
        elif route.doubt:
            yield warn(f"{route.title}: {route.doubt}", f"start {host.name} here and trust the folder")
    working = [route for route in readable if not route.missing]
    if len(working) > 1:
        ways = " and ".join(route.title for route in working)
        yield warn(f"{host.title} loads the hooks twice: {ways}", _less(host, working))
    untrusted = [route for route in working if routes.lacks_trust(ctx, host, route)]
    for route in untrusted:
        yield warn(
            f"{host.title} has not been told to trust the hooks of the {route.title}, "
            "and skips them silently",
            "start codex, type /hooks, trust them",
        )
    if len(working) == 1 and not untrusted and not working[0].doubt:
        yield ok(f"{host.title} loads the hooks: {working[0].title}")


def _install(host: Host) -> str:
    return typed.harness("hooks", "install", "--agent", host.name)


def _less(host: Host, working: list[Route]) -> str:
    in_files = [route for route in working if not route.is_plugin]
    scope = in_files[-1].title.split(" ", 1)[0] if in_files else ""
    return typed.harness("hooks", "uninstall", "--agent", host.name, "--scope", scope)


def python(ctx: Context) -> Diagnoses:
    """Say whether the `python3` that hooks are started with is new enough."""
    executable = interpreter.python3(ctx.env)
    if executable is None:
        yield warn("python3 is not on the PATH, so no hook can run", "Install Python 3.10 or newer.")
        return
    problem = interpreter.problem(executable, ctx.env)
    if problem:
        cure = "Put Python 3.10 or newer first on the PATH that the agent is started with."
        yield bad(f"{executable}, which starts the hooks, {problem}: they hold nobody", cure)


def sandbox(ctx: Context) -> Diagnoses:
    """Say whether this process may write where git keeps commits; Codex's sandbox forbids it."""
    try:
        git = ctx.git if has_root(ctx) else Git.open(ctx.cwd)
    except EnvSetupError:
        return
    place = git_access.closed(git)
    if place is not None:
        problem = f"nothing can be committed: {place} cannot be written from here"
        yield bad(problem, git_access.cure(ctx, git, place))


def worktree(ctx: Context) -> Diagnoses:
    """Say so where the main work tree has a list that a linked one does not find."""
    if has_root(ctx) or ctx.env.get("HARNESS_STATE_ROOT"):
        return
    try:
        git = Git.open(ctx.cwd)
    except EnvSetupError:
        return
    main = Path(git.common_dir).parent
    if git.git_dir != git.common_dir and roots.has_list(main):
        yield bad(
            f"the list of {main} is not found from this linked worktree",
            f"{typed.harness('init', main)} (it keeps what is there), "
            f"or set HARNESS_STATE_ROOT={typed.word(main)}",
        )
