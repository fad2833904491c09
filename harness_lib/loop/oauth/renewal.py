"""The headers of a login: its tokens, renewed before they expire and when a host takes them no more.

A server that gives a new refresh token with each renewal takes the old one for stolen when it comes again, so
of all processes exactly one renews, under the lock of the credentials; the others find what it has stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness_lib.loop import processes
from harness_lib.loop.failures import ProviderError
from harness_lib.loop.oauth import tokens
from harness_lib.loop.oauth.client import Client
from harness_lib.loop.piped import Json
from harness_lib.loop.provider_files import key_store, keys

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


@dataclass(frozen=True)
class Login:
    """A person's login at `client`, as it is stored."""

    runtime: Runtime = field(repr=False)
    client: Client

    @property
    def advice(self) -> str:
        """What a person does when the login is not taken."""
        return f"Log in again: {self.client.command}"

    def check(self) -> None:
        """Raise ProviderError where nobody is logged in."""
        if not self._credential().get("access_token"):
            name = self.client.name
            raise ProviderError(f"Nobody is logged in at {name}. Log in: {self.client.command}")

    def headers(self, templates: Mapping[str, str], refused: str = "") -> dict[str, str]:
        """Return the headers of a request: the token's, and `templates` with the account in them.

        `refused` is a header `authorization` that the host has refused: it is not returned again.
        """
        self.check()
        credential = self._credential()
        if tokens.is_due(credential) or _authorization(credential) == refused:
            credential = self._renewed(refused)
        account = str(credential.get("account_id") or "")
        if not all(text.isascii() and text.isprintable() for text in (_authorization(credential), account)):
            # Whoever meets it later would print the token.
            raise ProviderError(f"The stored login at {self.client.name} is damaged. {self.advice}")
        filled = {name: value.replace("{account_id}", account) for name, value in templates.items()}
        return {
            **{name: value for name, value in filled.items() if value},
            "authorization": _authorization(credential),
        }

    def _renewed(self, refused: str) -> Json:
        name = self.client.name
        with key_store.held(self.runtime):
            # Somebody else may have renewed it, or logged out, while we waited.
            self.check()
            credential = self._credential()
            if not tokens.is_due(credential) and _authorization(credential) != refused:
                return credential
            path = key_store.where(self.runtime, name)
            key_store.check_writable(path)
            # The old refresh token is worth nothing once the server has answered.
            with processes.uninterrupted():
                renewed = tokens.refresh(self.client, credential)
                key_store.replace_first(self.runtime, path, name, renewed)
        return renewed

    def _credential(self) -> Json:
        credential = keys.first(self.runtime, self.client.name)
        return credential if credential.get("type") == "oauth" else {}


def _authorization(credential: Json) -> str:
    return f"Bearer {credential.get('access_token')}"
