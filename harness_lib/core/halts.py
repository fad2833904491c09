"""Record what stops a session until a person has acted, so that the Stop hook lets its agent go.

Source: docs/design.md, "The Stop hook".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness_lib.core import sessions
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, EnvSetupError, HarnessError, RefusedError
from harness_lib.rules import halting
from harness_lib.rules.halting import Halt
from harness_lib.state.api import Tx
from harness_lib.task import Category, Session

STUCK = (ConfigError, EnvSetupError, RefusedError)


@contextmanager
def halting_on_error(ctx: Context, session: Session, task_id: str | None = None) -> Iterator[None]:
    """Pass every error on; for one that a person must see to, log it and halt this worker's session first."""
    try:
        yield
    except STUCK as error:
        with ctx.store.transaction() as tx:
            _log(tx, error, session, task_id)
            current = sessions.mine(tx, ctx)
            if current:
                sessions.halt(tx, current, Halt(halting.of_error(error), f"{error.kind}: {error.message}"))
        raise


def _log(tx: Tx, error: HarnessError, session: Session, task_id: str | None) -> None:
    if isinstance(error, RefusedError):
        tx.log("WARN", f"refused: {error.message}", session=session.number, task=task_id)
        return
    category: Category = "CONFIG" if isinstance(error, ConfigError) else "ENV_SETUP"
    tx.log("ERROR", error.message, session=session.number, task=task_id, category=category)
