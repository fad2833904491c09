"""What is known of a model: how much it takes in and gives out, and what that costs.

A source's `models.conf` has a line for each beginning of a name, because no host tells it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import remembered, trust
from harness_lib.loop.provider_files import variants

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

FILE = "models.conf"
_MILLION = 1_000_000


@dataclass(frozen=True)
class Usage:
    """Tokens of an answer; `tokens_in` counts those of the cache too."""

    tokens_in: int
    tokens_out: int
    cached: int = 0
    written: int = 0


@dataclass(frozen=True)
class Model:
    """A model's limits in tokens, 0 where unknown, and its prices in US dollars per million."""

    context: int = 0
    output: int = 0
    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None
    price_write: float | None = None

    def cost(self, used: Usage) -> float | None:
        """Return what an answer has cost; None where a price is missing, or its host has counted nothing."""
        if self.price_in is None or self.price_out is None or not used.tokens_in:
            return None
        cached = self.price_in if self.price_cached is None else self.price_cached
        written = self.price_in if self.price_write is None else self.price_write
        plain = max(0, used.tokens_in - used.cached - used.written)
        spent = plain * self.price_in + used.cached * cached + used.written * written
        return (spent + used.tokens_out * self.price_out) / _MILLION


def of(runtime: Runtime, name: str = "") -> Model:
    """Return the run's model, or the model `name` of its provider.

    The longest beginning of its name counts, of equal ones the most local, and before all of them what the
    provider's own `.conf` says of its model.
    """
    model = name or runtime.model
    lines: dict[str, dict[str, str]] = {}
    for source in trust.usable(runtime):
        for prefix, values in _lines(runtime, source).items():
            lines[prefix] = {**lines.get(prefix, {}), **values}
    longest = max((prefix for prefix in lines if model.startswith(prefix)), key=len, default="")
    return _model({**lines.get(longest, {}), **_own(runtime, model)})


def beginnings(runtime: Runtime, source: str) -> list[str]:
    """Return the beginnings of names that the `models.conf` of `source` knows."""
    return list(_lines(runtime, source))


def names(runtime: Runtime, source: str) -> list[str]:
    """Return those of them that may be whole names."""
    return [beginning for beginning in beginnings(runtime, source) if not beginning.endswith(("-", "."))]


def _lines(runtime: Runtime, source: str) -> dict[str, dict[str, str]]:
    return remembered.of(runtime.kept, Path(source, FILE), _read) or {}


def _own(runtime: Runtime, model: str) -> dict[str, str]:
    variant = variants.find(runtime, runtime.provider)
    return variant.values if variant and variant.values.get("model") == model else {}


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    by_prefix: dict[str, dict[str, str]] = {}
    for line in lines:
        prefix, *pairs = line.split() or [""]
        if prefix and not prefix.startswith("#"):
            by_prefix[prefix] = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    return by_prefix


def _model(values: dict[str, str]) -> Model:
    return Model(
        context=_tokens(values.get("context", "")),
        output=_tokens(values.get("output", "")),
        price_in=_price(values.get("price_in", "")),
        price_out=_price(values.get("price_out", "")),
        price_cached=_price(values.get("price_cached", "")),
        price_write=_price(values.get("price_write", "")),
    )


def _tokens(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _price(text: str) -> float | None:
    """Return a price; None for what is none, so that a slip of the pen makes nothing free."""
    try:
        price = float(text)
    except ValueError:
        return None
    return price if 0 <= price < float("inf") else None
