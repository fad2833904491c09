"""Provider configs (`.conf` files that describe hosts), and the limits and prices of models.

A source's `models.conf` has a line for each beginning of a model's name, because no host tells it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness_lib.loop import disk, trust
from harness_lib.loop.disk import is_name
from harness_lib.loop.runtime import Runtime, once
from harness_lib.loop.sessions import context

if TYPE_CHECKING:
    from harness_lib.loop.wires.answer import Answer


FILE = "models.conf"
_MILLION = 1_000_000


class ProviderConfig(NamedTuple):
    """A provider config: its `values` by their keys; docs/agent-loop.md lists them."""

    name: str
    values: dict[str, str]


@once
def find_config(runtime: Runtime, name: str) -> ProviderConfig | None:
    """Return the most local provider config `name`; a program of that name goes before it."""
    if not is_name(name) or runtime.table.find("providers", name) is not None:
        return None
    for source in reversed(trust.usable(runtime)):
        path = Path(source, "providers", f"{name}.conf")
        if path.is_file():
            return ProviderConfig(name, disk.read_conf(path))
    return None


def every_config(runtime: Runtime) -> list[ProviderConfig]:
    """Return the most local provider config of each name, by name."""
    files = (
        path for source in trust.usable(runtime) for path in Path(source, "providers").glob("[!.]*.conf")
    )
    configs = (find_config(runtime, name) for name in sorted({path.stem for path in files}))
    return [config for config in configs if config]


def protocol_of(runtime: Runtime, provider: str) -> str:
    """Return the protocol of `provider`: that of its config, or its own name."""
    config = find_config(runtime, provider)
    return config.values.get("protocol", "") if config else provider


class Model(NamedTuple):
    """A model's limits in tokens, 0 where unknown, and its prices in US dollars per million."""

    context: int = 0
    output: int = 0
    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None
    price_write: float | None = None

    def spent(self, answer: Answer) -> dict[str, str]:
        """Return the cost of an answer as the field of a message; none without a price or counted tokens."""
        if self.price_in is None or self.price_out is None or not answer.tokens_in:
            return {}
        cached = self.price_in if self.price_cached is None else self.price_cached
        written = self.price_in if self.price_write is None else self.price_write
        plain = max(0, answer.tokens_in - answer.tokens_cached - answer.tokens_cache_write)
        spent = plain * self.price_in + answer.tokens_cached * cached + answer.tokens_cache_write * written
        return {"cost": f"{(spent + answer.tokens_out * self.price_out) / _MILLION:.6f}"}


@once
def of(runtime: Runtime, name: str = "") -> Model:
    """Return the run's model, or the model `name` of its provider.

    The longest beginning of its name counts, of equal ones the most local, and before all of them what the
    provider's own `.conf` says of its model.
    """
    model = name or runtime.model
    lines: dict[str, dict[str, str]] = {}
    for source in trust.usable(runtime):
        for prefix, said in by_prefix(source).items():
            lines[prefix] = {**lines.get(prefix, {}), **said}
    longest = max((prefix for prefix in lines if model.startswith(prefix)), key=len, default="")
    config = find_config(runtime, runtime.provider)
    own = config.values if config and config.values.get("model") == model else {}
    values = {**lines.get(longest, {}), **own}
    limits = [disk.number(values.get(key, "")) for key in ("context", "output")]
    prices = ("price_in", "price_out", "price_cached", "price_write")
    return Model(*limits, *(context.amount(values.get(key, "")) for key in prices))


def by_prefix(source: str) -> dict[str, dict[str, str]]:
    """Return what the `models.conf` of `source` says of models, by the prefixes of their names."""
    found: dict[str, dict[str, str]] = {}
    for line in disk.read_text(Path(source, FILE)).splitlines():
        prefix, *pairs = line.split() or [""]
        if prefix and not prefix.startswith("#"):
            found[prefix] = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    return found
