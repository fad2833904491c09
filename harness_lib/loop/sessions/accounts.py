"""Add up what messages have cost: tokens always, money where a price is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness_lib.loop.sessions.message import Message


@dataclass(frozen=True)
class Account:
    """A sum. `cost` is in US dollars; None: unknown, because an answer in it has no price."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0

    def shown(self) -> str:
        """Return the cost for people."""
        return "unknown" if self.cost is None else f"{self.cost:.6f}".rstrip("0").rstrip(".")


def fields(account: Account) -> dict[str, str]:
    """Return `account` as it stands in the file of a message."""
    tokens = {"tokens_in": str(account.tokens_in), "tokens_out": str(account.tokens_out)}
    return tokens if account.cost is None else {**tokens, "cost": f"{account.cost:.6f}"}


def total(messages: Iterable[Message]) -> Account:
    """Return the sum of all answers in `messages`, those of subagents included."""
    tokens_in = tokens_out = 0
    cost: float | None = 0.0
    for message in messages:
        if "tokens_in" not in message.fields and message.role != "assistant":
            continue
        tokens_in += _count(message.fields.get("tokens_in", ""))
        tokens_out += _count(message.fields.get("tokens_out", ""))
        spent = _amount(message.fields.get("cost", ""))
        cost = None if cost is None or spent is None else cost + spent
    return Account(tokens_in, tokens_out, cost)


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _amount(text: str) -> float | None:
    try:
        amount = float(text)
    except ValueError:
        return None
    return amount if 0 <= amount < float("inf") else None
