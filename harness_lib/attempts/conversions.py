"""Notice an attempt that lets git commit another content than the check sees: with a filter, for instance.

What a person configured before the claim (LFS, line ends) converts as it always did, and is no finding.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from harness_lib.attempts import rescue_refs
from harness_lib.core.context import Context
from harness_lib.system.git import locks, raw_files, trees
from harness_lib.system.git.repository import Git
from harness_lib.task import Task

FILES = ("100644", "100755")


class Converted(NamedTuple):
    """What an attempt has changed of git's `settings`, and the `files` that they let git commit otherwise.

    `ref` keeps these files as they would be committed without that change.
    """

    settings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    ref: str = ""


def recorded(git: Git) -> str:
    """Return the settings that convert files, as a claim records them."""
    return json.dumps(raw_files.conversion_settings(git), sort_keys=True)


def find(ctx: Context, task: Task, tree: str) -> Converted:
    """Compare `tree`, just captured from the work tree, with the files under the settings of the claim."""
    git, then = ctx.git, task.gate.conversion if task.gate else None
    if then is None:
        return Converted()
    wanted = json.loads(then)
    settings = tuple(raw_files.changed_settings(wanted, raw_files.conversion_settings(git)))
    if not settings:
        return Converted()
    # All files: a filter can also hide that one was changed.
    entries = {
        path: entry
        for path, entry in trees.entries(git, tree).items()
        if entry[0] in FILES and raw_files.mode(git.top, path) in FILES
    }
    if any("=" in key for key in settings):
        # Such a one cannot be tried as it was, and nobody has one for a good reason.
        return Converted(settings, settings)
    unconverted = raw_files.hashed_by(git, list(entries), wanted, settings)
    edits = {path: (entries[path][0], oid) for path, oid in unconverted.items() if oid != entries[path][1]}
    return Converted(settings, tuple(sorted(edits)), _kept(ctx, task, tree, edits) if edits else "")


def _kept(ctx: Context, task: Task, tree: str, edits: dict[str, trees.Entry]) -> str:
    """Keep `tree` with `edits`, and return the ref."""
    git = ctx.git
    with locks.hold(git):
        head, ref = git.head(), rescue_refs.free_ref(git, task, suffix="-unconverted")
        message = f"harness: files of {task.id} as its attempt left them\n"
        content = trees.edited(git, tree, edits)
        git.set_ref(ref, trees.commit(git, content, [head] if head else [], message))
    return ref
