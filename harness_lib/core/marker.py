"""Switch the hooks off by themselves when nothing is left to hold an agent for."""

from __future__ import annotations

from harness_lib.state.api import Store, Tx


def lower_when_finished(tx: Tx, store: Store) -> None:
    """Switch the hooks off with this transaction if it leaves no work."""
    if not tx.work_remains():
        tx.on_commit(lambda: store.switch_hooks(on=False))
