"""Variants: a host that speaks a wire we have, described by a `.conf` file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import conf, listing, plugins, trust
from harness_lib.loop.names import is_name

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


@dataclass(frozen=True)
class Variant:
    """The file of a variant; what it does not say is empty."""

    name: str
    values: dict[str, str] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        return self.values.get("protocol", "")

    @property
    def auth_env(self) -> str:
        return self.values.get("auth_env", "")

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request, from lines `header.NAME=VALUE`."""
        prefix = "header."
        return {key[len(prefix) :]: value for key, value in self.values.items() if key.startswith(prefix)}


def find(runtime: Runtime, name: str) -> Variant | None:
    """Return the most local variant `name`; a program of that name goes before it."""
    if not is_name(name) or plugins.provider(runtime, name) is not None:
        return None
    for source in reversed(trust.usable(runtime)):
        path = Path(source, "providers", f"{name}.conf")
        if path.is_file():
            return Variant(name, conf.read(path))
    return None


def every(runtime: Runtime) -> list[Variant]:
    """Return the most local variant of each name, by name."""
    by_name: dict[str, Variant] = {}
    for source in trust.usable(runtime):
        for name in in_source(source):
            by_name[name] = Variant(name, conf.read(Path(source, "providers", f"{name}.conf")))
    return [by_name[name] for name in sorted(by_name)]


def in_source(source: str) -> list[str]:
    """Return the names of the variants in `source`."""
    names = listing.names(str(Path(source, "providers")))
    return [name.removesuffix(".conf") for name in names if name.endswith(".conf")]


def protocol_of(runtime: Runtime, provider: str) -> str:
    """Return the wire protocol of `provider`: its variant's, or its own name."""
    variant = find(runtime, provider)
    return variant.protocol if variant else provider
