"""`harness check --repair`: what can be mended without asking anybody, and a word about each thing mended.

A list that parses but breaks the contract is a person's edit and stays as it is.
"""

from __future__ import annotations

from harness_lib.core import ownership, rights
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import RefusedError


def run(ctx: Context) -> Reply:
    """Restore a broken or missing list, end a torn log, sweep temporary files, make anew what is ours.

    Raises ContractError (a person must edit), StateUnreadableError (nothing good is left), HeldError.
    """
    ownership.refuse_supervised(ctx, "harness check --repair")
    done, warnings = ctx.store.repair()
    return Reply(
        "check",
        "\n".join(done) or "Nothing needed repair.",
        next="harness check",
        warnings=tuple(warnings),
        extra={"repaired": done},
    )


def put_back(ctx: Context) -> Reply:
    """Put the last good list in the place of one that breaks the contract, as a person has decided.

    Raises RefusedError (the list is fine, or an agent asks), StateUnreadableError (nothing good is left).
    """
    agent = rights.known_agent(ctx)
    if agent is not None:
        raise RefusedError(
            f"Only a person can decide that an edit of the list is given up; this is a session of {agent}.",
            "Tell the user what is wrong (harness check), and that this puts the last good list back:"
            " harness check --restore",
        )
    if not ctx.store.examine().problems:
        raise RefusedError(f"{ctx.store.list_file} is as it must be.", "Look at it with: harness status")
    done = ctx.store.restore()
    return Reply("check", "\n".join(done), next="harness check", extra={"repaired": list(done)})
