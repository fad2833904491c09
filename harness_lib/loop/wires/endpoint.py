"""Where a request goes and how: everything about a host that its wire has to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import urlsplit

Wire = Literal["anthropic", "responses", "chat"]

# What a `.conf` says as `max_tokens_field` where its host takes no limit at all.
NO_FIELD = "none"


class Login(Protocol):
    """A person's login at a host, which makes the headers of each request."""

    @property
    def advice(self) -> str:
        """What a person does when the login is not taken."""
        ...

    def headers(self, templates: Mapping[str, str], refused: str = "") -> dict[str, str]:
        """Return the headers of a request, `templates` among them, and none that the host has `refused`."""
        ...


@dataclass(frozen=True)
class Endpoint:
    """A host of models. `key` never leaves this object but as a header."""

    provider: str
    wire: Wire
    url: str
    model: str
    max_tokens: int
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    max_tokens_field: str = ""
    reasoning_field: str = ""
    effort: str = ""
    cached: bool = False
    session: str = ""
    # Whoever is logged in: its headers are made at each request, as its tokens are renewed.
    login: Login | None = field(default=None, repr=False, compare=False)


def complete(url: str, path: str) -> str:
    """Return `url` with `path` (as `/v1/messages`) where it names only a host or a version."""
    own_path = urlsplit(url).path.rstrip("/")
    if not own_path:
        return url.rstrip("/") + path
    return url.rstrip("/") + path.removeprefix("/v1") if own_path.endswith("/v1") else url
