"""A change of the list by us, and what stands in its file then."""

from __future__ import annotations

import json
from typing import Any

from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root


def rename(store: Store, title: str) -> list[str]:
    """Give the first task another title, and return what is said of that."""
    with store.transaction() as tx:
        tx.replace(tx.state.tasks[0]._replace(title=title))
    return tx.warnings


def document(root: Root) -> Any:
    return json.loads(root.state.read_bytes())
