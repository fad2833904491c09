"""Switch the hooks off by themselves when nothing is left to hold an agent for."""

from __future__ import annotations

from harness_lib.state.api import Store, Tx


def lower_when_finished(tx: Tx, store: Store) -> None:
    """Switch the hooks off with this transaction if it leaves nothing to hold an agent for."""
    if not tx.holds_agents():
        tx.on_commit(lambda: store.switch_hooks(on=False))
