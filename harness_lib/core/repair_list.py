"""`harness check --repair`: what can be mended without asking anybody, and a word about each thing mended.

A list that parses but breaks the contract is a person's edit and stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from harness_lib.core import ownership, rights
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import RefusedError
from harness_lib.state import summary
from harness_lib.state.api import Tx
from harness_lib.system.files import atomic
from harness_lib.system.place.roots import Root


def run(ctx: Context) -> Reply:
    """Restore a broken or missing list, end a torn log, sweep temporary files, make anew what is ours.

    Raises ContractError (a person must edit), StateUnreadableError (nothing good is left), HeldError.
    """
    ownership.refuse_supervised(ctx, "harness check --repair")
    root = ctx.root
    is_lost = ctx.store.examine().is_lost
    done: list[str] = []
    with ctx.store.transaction() as tx:
        if is_lost:
            done, tx.warnings = tx.warnings, []
        if _is_torn(root.log):
            # The writer begins a new line by itself.
            tx.log("WARN", "the line above was left unfinished", session=tx.session_count)
            done.append(f"{root.log.name}: its unfinished last line is ended")
        done += _renew(tx, root)
    done += _sweep(root)
    return Reply(
        "check",
        "\n".join(done) or "Nothing needed repair.",
        next="harness check",
        warnings=tuple(tx.warnings),
        extra={"repaired": done},
    )


def put_back(ctx: Context) -> Reply:
    """Put the last good list in the place of one that breaks the contract, as a person has decided.

    Raises RefusedError (the list is fine, or an agent asks), StateUnreadableError (nothing good is left).
    """
    agent = rights.acting_agent(ctx)
    if agent is not None:
        raise RefusedError(
            f"Only a person can decide that an edit of the list is given up; this is a session of {agent}.",
            "Tell the user what is wrong (harness check), and that this puts the last good list back:"
            " harness check --restore",
        )
    if not ctx.store.examine().problems:
        raise RefusedError(f"{ctx.root.state} is as it must be.", "Look at it with: harness status")
    done = ctx.store.restore()
    return Reply("check", "\n".join(done), next="harness check", extra={"repaired": list(done)})


def _renew(tx: Tx, root: Root) -> Iterator[str]:
    """Write the list once more where what belongs to a write of ours is missing."""
    has_generation = any(root.generations.glob("*.json"))
    if summary.read(root) is not None and has_generation:
        return
    tx.rewrite()
    yield f"{root.private.name}/: generation and summary of the list are made anew"


def _sweep(root: Root) -> Iterator[str]:
    """Remove temporary files that dead writers left; a young one may have a living writer."""
    for directory, name in (
        (root.path, root.state.name),
        (root.path, root.backup.name),
        (root.private, "*"),
        (root.generations, "*"),
    ):
        before = _temporaries(directory, name)
        atomic.sweep(directory, name)
        gone = before - _temporaries(directory, name)
        if gone:
            yield f"{directory}: {len(gone)} temporary files of dead writers removed"


def _temporaries(directory: Path, name: str) -> set[Path]:
    return set(directory.glob(f".{name}.*.tmp"))


def _is_torn(path: Path) -> bool:
    """Say whether the last line of the log lacks its end."""
    try:
        with path.open("rb") as stream:
            if stream.seek(0, os.SEEK_END) == 0:
                return False
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except FileNotFoundError:
        return False
