"""Try what a remote takes when a machine joins a list, and say what will leave the machine.

One ref of each kind is pushed and deleted again, several at once: a merge needs that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from harness_lib import typed
from harness_lib.attempts import leaving, remote, snapshots
from harness_lib.attempts.leaving import Leaving
from harness_lib.attempts.remote import Answer, There
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError, HeldError
from harness_lib.system.git.repository import Git
from harness_lib.text import without_credentials

KINDS = ("wip", "ready", "rescue")
# Git says so of a remote that takes one ref at a time.
NO_ATOMIC = "does not support --atomic"


def prepare(git: Git, wanted: Leaving) -> None:
    """Keep what may leave this machine.

    Raises UsageError: there is no such remote; EnvSetupError: the clone lacks its history.
    """
    if git.text("rev-parse", "--is-shallow-repository") == "true":
        raise EnvSetupError(
            "This clone is shallow: without its history nobody can tell what is on the branch.",
            f"Fetch it: {typed.git('fetch', '--unshallow')}",
        )
    leaving.save(git, wanted)


def told(ctx: Context) -> list[str]:
    """Try the remotes, and return what the user should know, a sentence each."""
    try:
        there = remote.of(ctx)
        remote.require(ctx, there)
    except HarnessError as error:
        return [f"{error.message} What its remote takes was not tried. {error.hint}"]
    return [*_tried(ctx, there), *_another(ctx, there), _leaves(there)]


def _tried(ctx: Context, there: There) -> Iterator[str]:
    """Try the remotes; keep that they take branches only, if that is so."""
    refusals = [each for each in _pushed(ctx, there) if not each.done]
    if refusals and not any(NO_ATOMIC in each.why for each in refusals):
        branches = there._replace(leaving=there.leaving._replace(refs=leaving.HEADS))
        if all(each.done for each in _pushed(ctx, branches)):
            leaving.save(there.git, branches.leaving)
            refusals = []
            yield (
                f"{there.remote} takes branches only, so what machines share is below "
                f"{branches.ref()}. Let no job of the host run for these branches."
            )
            if remote.listed(ctx, there, there.remote, there.ref("turn", "*")):
                yield (
                    f"Other machines have used refs below {there.ref()}: what they push there is not seen "
                    "here, until all of them join again and find the same."
                )
    for each in refusals:
        needs = "A merge pushes two refs at once. " if NO_ATOMIC in each.why else ""
        yield f"Work cannot be shared yet: {each.why}. {needs}What a host must allow: docs/many-machines.md"


def _pushed(ctx: Context, there: There) -> Iterator[Answer]:
    """Push a ref of each kind, and delete it again; yield how that went, for each remote."""
    with suppress(HeldError):
        # If a remote does not answer, the first push says so.
        snapshots.drop_probes(ctx, there)
    probe = snapshots.probe(ctx)
    commit = there.git.commit(there.git.empty_tree(), [], "harness: try what this remote takes\n")
    unfinished = [there.ref(kind, probe, "0") for kind in KINDS]
    turn = [there.ref("turn", probe)]
    if there.work == there.remote:
        yield _once(ctx, there, there.remote, [*turn, *unfinished], commit)
    else:
        # What moves the branch goes there with a second ref.
        yield _once(ctx, there, there.remote, [*turn, f"{turn[0]}-too"], commit)
        yield _once(ctx, there, there.work, unfinished, commit)


def _once(ctx: Context, there: There, name: str, refs: Sequence[str], commit: str) -> Answer:
    made = remote.push(ctx, there, "--atomic", name, *(f"{commit}:{ref}" for ref in refs))
    if not made.done:
        return Answer(done=False, why=f"{name} refuses refs below {there.ref()}: {made.why}")
    gone = remote.push(ctx, there, name, *(f":{ref}" for ref in refs))
    return gone if gone.done else Answer(done=False, why=f"{name} lets nobody delete a ref: {gone.why}")


def _another(ctx: Context, there: There) -> Iterator[str]:
    """Say so if the branch lacks what the list says that is on it: it may be that of a fork."""
    tasks = (task for task in ctx.store.ask().search("completed") if task.machine and task.completed_commit)
    last = max(tasks, key=lambda task: task.completed_at or "", default=None)
    tip = there.tip
    commit = last.completed_commit if last else None
    if last is None or commit is None or tip is None:
        return
    if not there.git.exists(commit) or not there.git.is_ancestor(commit, tip):
        yield (
            f"{there.shown} lacks {commit[:12]}, the finished work of {last.id} by {last.machine}. If this "
            "remote is a fork, name the one that the other machines push to: --target-remote"
        )


def _leaves(there: There) -> str:
    name, settings = there.work, there.leaving
    address = without_credentials(there.git.text("remote", "get-url", name))
    finished = f"What leaves this machine: finished work, to {there.shown}"
    if not settings.snapshots:
        return f"{finished}; unfinished work stays here."
    return (
        f"{finished}; and about each minute the work so far, up to {settings.most} MB of an attempt, with "
        f"files that git does not know yet and without what it ignores, to {name} ({address}). "
        "To keep that here: --no-snapshots"
    )
