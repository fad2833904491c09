"""The marker `.harness-active`: without it every hook is a silent no-op."""

from __future__ import annotations

from harness_lib.state.api import Tx
from harness_lib.system.files import atomic
from harness_lib.system.place import roots


def raise_it(root: roots.Root) -> None:
    """Switch the hooks on."""
    atomic.touch(root.marker)


def lower_it(root: roots.Root) -> None:
    """Switch the hooks off."""
    atomic.remove(root.marker)


def lower_when_finished(tx: Tx, root: roots.Root) -> None:
    """Switch the hooks off with this transaction if it leaves no work."""
    if not tx.work_remains():
        tx.on_commit(lambda: lower_it(root))
