"""Leave notes, checkpoints and proposed tasks for the run in the work tree, where a sandbox allows it.

What the agent types cannot reach the list, so it is left in the work tree.
The other end is `attempts/inbox.py`.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from harness_lib.core import ownership
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import EnvSetupError
from harness_lib.system.files import atomic

NAME = "mail"


def directory_of(ctx: Context) -> Path | None:
    """Return where letters lie in this work tree, which is a worker's; None in any other."""
    private = ctx.private_here
    return None if private is None or ctx.git.top == ctx.root.path else private / NAME


def is_linked(directory: Path) -> bool:
    """Return whether a symbolic link of a commit would lead letters elsewhere."""
    return directory.is_symlink() or directory.parent.is_symlink()


def leave(ctx: Context, refused: EnvSetupError | OSError, verb: str, task_id: str, *words: str) -> Reply:
    """Leave a letter for the worker, because the list cannot be written from here; `refused` says so.

    Raises `refused` if nobody looks after this agent, or a letter cannot be written either.
    """
    directory = directory_of(ctx)
    if not ctx.env.get(ownership.SUPERVISED) or directory is None:
        raise refused
    if is_linked(directory):
        raise refused
    task = ownership.require_task(ctx.store.ask(), task_id)
    # In the order in which they were written.
    name = f"{time.time_ns():020}-{os.urandom(4).hex()}.json"
    letter = json.dumps({"verb": verb, "task": task_id, "words": words})
    try:
        atomic.write(directory / name, letter.encode(), durable=False, make=True)
    except OSError:
        raise refused from None
    return Reply(verb, f"{verb} for {task.id}: left for the run, which records it.", task=task)
