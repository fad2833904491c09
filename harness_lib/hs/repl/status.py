"""The line that says where a session stands: its model, its context, its tokens, its cost."""

from __future__ import annotations

from harness_lib.loop.provider_files import models
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import accounts, context

_THOUSAND = 1000


def status(runtime: Runtime) -> str:
    """Return the line."""
    messages = runtime.session.messages() if runtime.session else []
    account = accounts.total(messages)
    limit = models.of(runtime).context
    used = f"{short(context.tokens(messages))}{f' of {short(limit)}' if limit else ''}"
    cost = account.shown() if account.cost is None else f"${account.shown()}"
    tokens = f"{short(account.tokens_in)} in, {short(account.tokens_out)} out"
    return f" {runtime.model}  context {used}  tokens {tokens}  cost {cost} "


def short(number: int) -> str:
    """Return `number` in a few characters: 999, 12.3k, 1.2M."""
    if number < _THOUSAND:
        return str(number)
    value, unit = (number / _THOUSAND, "k") if number < _THOUSAND**2 else (number / _THOUSAND**2, "M")
    return f"{value:.1f}".removesuffix(".0") + unit
