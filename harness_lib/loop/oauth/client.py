"""What a provider's `.conf` says of its login."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from harness_lib.loop.failures import ProviderError

if TYPE_CHECKING:
    from harness_lib.loop.provider_files.variants import Variant

_WANTED = ("authorize_url", "token_url", "client_id")


@dataclass(frozen=True)
class Client:
    """A client of an authorization server, known there by `client_id`; it has no secret of its own."""

    name: str
    authorize_url: str
    token_url: str
    client_id: str
    scope: str = ""
    # Port 0: any that is free, as servers allow for programs of a person's own machine.
    redirect_port: int = 0
    redirect_host: str = "127.0.0.1"
    redirect_path: str = "/callback"
    # Further parameters of the address that is opened.
    parameters: tuple[tuple[str, str], ...] = ()
    # Where the tokens say whose account it is: names of claims, one inside the other.
    account_claim: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What a person types to log in."""
        return f"hs auth login {self.name}"

    def redirect_uri(self, port: int) -> str:
        """Return where the browser ends up, with the `port` that is listened at."""
        return f"http://{self.redirect_host}:{port}{self.redirect_path}"


def is_used(variant: Variant) -> bool:
    """Return whether the provider has a login. Raises ProviderError for another way that we do not know."""
    auth = variant.values.get("auth", "")
    if auth not in {"", "oauth"}:
        raise ProviderError(f"auth={auth} in the .conf file of {variant.name} is none that hs knows: oauth.")
    return auth == "oauth"


def of(variant: Variant) -> Client:
    """Return the client that `variant` describes. Raises ProviderError naming what is missing or wrong."""
    values = variant.values
    missing = [key for key in _WANTED if not values.get(key)]
    if missing:
        raise ProviderError(f"The provider {variant.name} has no {missing[0]}= in its .conf file.")
    for key in ("authorize_url", "token_url"):
        if not _is_safe(values[key]):
            message = f"{key}={values[key]} of {variant.name} would send a login unencrypted; it wants https."
            raise ProviderError(message)
    port = values.get("redirect_port", "0")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise ProviderError(f"redirect_port={port} of {variant.name} is no port.")
    return Client(
        name=variant.name,
        authorize_url=values["authorize_url"],
        token_url=values["token_url"],
        client_id=values["client_id"],
        scope=values.get("scope", ""),
        redirect_port=int(port),
        redirect_host=values.get("redirect_host", "127.0.0.1"),
        redirect_path=values.get("redirect_path", "/callback"),
        parameters=tuple(parse_qsl(values.get("authorize_params", ""))),
        account_claim=tuple(values.get("account_claim", "").split()),
    )


def _is_safe(url: str) -> bool:
    address = urlsplit(url)
    return address.scheme == "https" or (address.scheme == "http" and _is_here(address.hostname or ""))


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
