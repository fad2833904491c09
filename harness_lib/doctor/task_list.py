"""The list and who works on it, as `harness doctor` looks at them. Never writes and takes no lock."""

from __future__ import annotations

import os
from itertools import islice

from harness_lib import typed
from harness_lib.core import init_script, sessions, trust_policy
from harness_lib.core.context import Context
from harness_lib.doctor.diagnosis import Diagnoses, Diagnosis, failed, ok, warn
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.rules.selection import UNPROVEN
from harness_lib.state.api import Questions

SHOWN = 5
LARGE_LOG_BYTES = 100 * 1024 * 1024


def examine(ctx: Context) -> Diagnoses:
    """Say whether the list can be read, and if so what is unusual about it."""
    try:
        questions = ctx.store.ask()
    except HarnessError as error:
        yield failed(error)
        return
    for warning in questions.warnings:
        yield warn(warning, "harness check --repair")
    if not questions.warnings:
        yield ok(f"the list can be read ({questions.counts().total} tasks)")
    for part in (_trust, _marker, _sessions, _leases, _halts, _unproven):
        yield from part(ctx, questions)


def _trust(ctx: Context, questions: Questions) -> Diagnoses:
    try:
        if not trust_policy.runs_nothing(ctx, questions) and not trust_policy.is_trusted(ctx, questions):
            yield warn(
                "the commands of this list have not been trusted on this machine",
                "look at them: harness check; then: harness trust",
            )
        if ctx.git.is_tracked(ctx.store.list_file):
            yield warn(
                f"{ctx.store.list_file.name} is tracked by git, so what changes its commands is asked about",
                "after a pull: harness check, then harness trust",
            )
    except EnvSetupError:
        # Said before, about the repository.
        return


def _marker(ctx: Context, questions: Questions) -> Diagnoses:
    remains = questions.holds_agents()
    if not ctx.store.hooks_are_on():
        if questions.sessions():
            other = sessions.holder(questions, ctx)
            where = f", typed by {other.worker}, who holds the list" if other else ""
            yield warn("a session is open, but the hooks are off (no marker)", f"harness start{where}")
        return
    if not remains:
        yield warn("the hooks are on, but nothing is left to do", "harness pause")
    elif questions.has_had_sessions and not questions.sessions():
        more = typed.harness("edit", rest="--max-sessions N")
        cure = more if sessions.are_used_up(questions, ctx) else sessions.START
        yield warn("the hooks are on, but no session is open: they hold nobody", cure)
    else:
        yield ok("the hooks are on")


def _sessions(ctx: Context, questions: Questions) -> Diagnoses:
    dead = (session for session in questions.sessions() if not sessions.is_live(session, ctx))
    for session in islice(dead, SHOWN):
        yield warn(
            f"session {session.number} of {session.worker} is open, but process {session.pid} is gone",
            f"harness start, or: {typed.harness('stop', '--session', session.number)}",
        )


def _leases(_ctx: Context, questions: Questions) -> Diagnoses:
    for task in questions.expired()[:SHOWN]:
        yield warn(f"the lease of {task.id} ended at {task.lease_expires_at}", "harness recover")


def _halts(_ctx: Context, questions: Questions) -> Diagnoses:
    for task in questions.halted()[:SHOWN]:
        yield warn(f"{task.id} is halted: {task.halt}", typed.harness("show", task.id))


def _unproven(_ctx: Context, questions: Questions) -> Diagnoses:
    for task in questions.unproven()[:SHOWN]:
        yield warn(f"{task.id}: {UNPROVEN}", "harness start, which has its check run")


def files(ctx: Context) -> Diagnoses:
    """Say what is unusual about the files beside the list."""
    script = ctx.root.init_script
    if init_script.exists(ctx) and not os.access(script, os.X_OK):
        yield warn(f"{script.name} is not executable, so `sh` runs it", f"chmod +x {script}")


def store(ctx: Context) -> Diagnoses:
    """Say what is unusual about how the list is kept and locked."""
    for oddity in ctx.store.oddities():
        yield Diagnosis(*oddity)
