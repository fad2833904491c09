"""Examine the hooks of the agents that are used here, and the list of the project."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from harness_lib import typed
from harness_lib.agents.adapter import Host
from harness_lib.agents.registry import HOSTS, WITHOUT_HOOKS
from harness_lib.attempts import remote_check
from harness_lib.core import project, sessions, trust
from harness_lib.core.context import Context
from harness_lib.doctor import Diagnoses, bad, failed, has_root, ok, warn
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.hookinstall import host_files
from harness_lib.rules.selection import UNPROVEN
from harness_lib.state.api import Questions
from harness_lib.system.git.repository import Git
from harness_lib.system.place import roots
from harness_lib.text import counted

SHOWN = 5


def loaded(ctx: Context) -> Diagnoses:
    """Report how each agent on this machine loads the hooks, and what prevents it."""
    agent = ctx.agent
    used = [host for host in HOSTS.values() if host.name == agent or host_files.is_here(ctx, host)]
    for host in used:
        readable = host_files.readable(ctx, host)
        if isinstance(readable, HarnessError):
            yield failed(readable)
        elif readable:
            yield from _ways(ctx, host, readable)
        elif host.name == agent:
            yield warn(f"{host.title} does not load the hooks: it may stop early", _install(host))
        else:
            yield ok(f"{host.title} is used on this machine without the hooks", _install(host))
    if agent and agent in WITHOUT_HOOKS:
        yield ok(WITHOUT_HOOKS[agent].split(";")[0])


def _ways(ctx: Context, host: Host, readable: list[host_files.Route]) -> Diagnoses:
    for route in readable:
        if route.missing:
            yield warn(f"a hook of {host.title} is gone: {route.missing[0]}", _install(host))
        elif route.doubt:
            yield warn(f"{route.title}: {route.doubt}", f"start {host.name} here and trust the folder")
    working = [route for route in readable if not route.missing]
    if len(working) > 1:
        ways = " and ".join(route.title for route in working)
        in_files = [route for route in working if not route.is_plugin]
        scope = in_files[-1].title.split(" ", 1)[0] if in_files else ""
        yield warn(
            f"{host.title} loads the hooks twice: {ways}",
            typed.harness("hooks", "uninstall", "--agent", host.name, "--scope", scope),
        )
    untrusted = [route for route in working if host_files.lacks_trust(ctx, host, route)]
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


def worktree(ctx: Context) -> Diagnoses:
    """Report a list in the main work tree that this linked work tree does not find."""
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


def task_list(ctx: Context) -> Diagnoses:
    """Report whether the list can be read, and what is unusual about it."""
    try:
        questions = ctx.ask()
    except HarnessError as error:
        yield failed(error)
        return
    for warning in questions.warnings:
        yield warn(warning, "harness check --repair")
    if not questions.warnings:
        yield ok(f"the list can be read ({counted(questions.counts().total, 'task')})")
    for part in (_trust, _active_flag, _sessions, _tasks):
        yield from part(ctx, questions)


def _trust(ctx: Context, questions: Questions) -> Diagnoses:
    try:
        if not trust.runs_nothing(ctx, questions) and not trust.is_trusted(ctx, questions):
            yield warn(
                "the commands of this list have not been trusted on this machine",
                "look at them: harness check; then: harness trust",
            )
        elif untrusted := trust.waiting(ctx, questions):
            yield warn(
                f"{counted(len(untrusted), 'task')} left to other machines, with {trust.UNTRUSTED}",
                "look at them: harness check; then: harness trust",
            )
        if ctx.git.is_tracked(ctx.store.list_file):
            yield warn(
                f"{ctx.store.list_file.name} is tracked by git: harness asks again when its commands change",
                "after a pull: harness check, then harness trust",
            )
    except EnvSetupError:
        # Already reported for the repository.
        return


def _active_flag(ctx: Context, questions: Questions) -> Diagnoses:
    remains = questions.holds_agents()
    if not ctx.store.hooks_are_on():
        if questions.sessions():
            other = sessions.holder(questions, ctx)
            where = f", typed by {other.worker}, who holds the list" if other else ""
            problem = "a session is open, but the hooks are off (no .harness-active)"
            yield warn(problem, f"harness start{where}")
        return
    if not remains:
        yield warn("the hooks are on, but nothing is left to do", "harness pause")
    elif questions.has_had_sessions and not questions.sessions():
        more = typed.harness("edit", rest="--max-sessions N")
        cure = more if sessions.are_used_up(questions, ctx) else sessions.START
        yield warn("the hooks are on, but no session is open: no agent is held", cure)
    else:
        yield ok("the hooks are on")


def _sessions(ctx: Context, questions: Questions) -> Diagnoses:
    opened = questions.sessions()
    dead = (session for session in opened if not sessions.is_live(session, questions, ctx))
    for session in islice(dead, SHOWN):
        yield warn(
            f"session {session.number} of {session.worker} is open, but process {session.pid} is gone",
            f"harness start, or: {typed.harness('stop', '--session', session.number)}",
        )


def _tasks(_ctx: Context, questions: Questions) -> Diagnoses:
    for task in questions.expired()[:SHOWN]:
        yield warn(f"the lease of {task.id} ended at {task.lease_expires_at}", "harness recover")
    for task in questions.halted()[:SHOWN]:
        yield warn(f"{task.id} is halted: {task.halt}", typed.harness("show", task.id))
    for task in questions.unproven()[:SHOWN]:
        yield warn(f"{task.id}: {UNPROVEN}", "harness start, which has its check run")


def files(ctx: Context) -> Diagnoses:
    """Report what is unusual about the files beside the list."""
    script = ctx.root.init_script
    if project.has_init_script(ctx) and not os.access(script, os.X_OK):
        yield warn(f"{script.name} is not executable, so `sh` runs it", f"chmod +x {script}")


def store(ctx: Context) -> Diagnoses:
    """Report what is unusual about the files and locks of the list, and about the remote of its machines."""
    yield from ctx.store.oddities()
    if not ctx.shared:
        return
    try:
        crowded = remote_check.too_many_refs(ctx)
    except HarnessError as error:
        yield failed(error)
        return
    if crowded:
        yield warn(f"{crowded}.", "Remove old ones: harness store check --repair")
