"""The login of a provider: what its `.conf` says of it, its tokens, and the headers made of them.

A server that gives a new refresh token with each renewal takes the old one for stolen when it comes again,
so of all processes exactly one renews, under the lock of the credentials; the others find what it has
stored.
"""

from __future__ import annotations

import base64
import ipaddress
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from harness_lib.loop import disk, processes
from harness_lib.loop.piped import Json, ProviderError, TransientError, as_object
from harness_lib.loop.providers import keys
from harness_lib.text import harmless

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


_WANTED = ("authorize_url", "token_url", "client_id")
# Tokens are renewed so many seconds before they expire: a request takes its time.
_EARLY_SECONDS = 300
_SHOWN = 300
_SECRET = ("code", "code_verifier", "refresh_token")
_SERVER_ERROR = 500
_TOO_MANY = 429
_MOST_PORTS = 1 << 16


class Client(Protocol):
    """A provider with a login, and what its `.conf` says of it."""

    @property
    def name(self) -> str: ...

    @property
    def values(self) -> Mapping[str, str]: ...


def check(client: Client) -> None:
    """Raise ProviderError naming what is missing or wrong in the login that `client` describes."""
    name, values = client.name, client.values
    if (auth := values.get("auth")) != "oauth":
        raise ProviderError(f"Unknown auth={auth} in the .conf file of {name}; hs knows auth=oauth.")
    missing = [key for key in _WANTED if not values.get(key)]
    if missing:
        raise ProviderError(f"The provider {name} has no {missing[0]}= in its .conf file.")
    for key in ("authorize_url", "token_url"):
        if not _is_safe(values[key]):
            message = f"{key}={values[key]} of {name} would send a login unencrypted; it wants https."
            raise ProviderError(message)
    port = values.get("redirect_port", "0")
    if disk.number(port, _MOST_PORTS) >= _MOST_PORTS:
        raise ProviderError(f"Invalid redirect_port={port} of {name}.")


def command(client: Client) -> str:
    """Return the command with which the user logs in."""
    return f"hs auth login {client.name}"


def _is_safe(url: str) -> bool:
    """Return whether what is sent to `url` is encrypted, or stays on this machine."""
    try:
        address = urlsplit(url)
        if address.scheme != "http" or address.hostname == "localhost":
            return address.scheme in {"http", "https"}
        return ipaddress.ip_address(address.hostname or "").is_loopback
    except ValueError:
        return False


class LoginEndedError(ProviderError):
    """The server refuses the login for good; the user has to log in again."""


def exchange(client: Client, code: str, redirect_uri: str, verifier: str) -> Json:
    """Return the credential that `code` is good for. Raises ProviderError."""
    fields = {
        "grant_type": "authorization_code",
        "client_id": client.values["client_id"],
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
    }
    return _credential(client, _ask(client, fields), {})


def refresh(client: Client, credential: Json) -> Json:
    """Return `credential` renewed. Raises LoginEndedError when it cannot be, TransientError when not now."""
    token = str(credential.get("refresh_token") or "")
    if not token:
        raise LoginEndedError(f"The login at {client.name} has expired. Log in again: {command(client)}")
    fields = {"grant_type": "refresh_token", "client_id": client.values["client_id"], "refresh_token": token}
    return _credential(client, _ask(client, fields), credential)


def is_due(credential: Json) -> bool:
    """Return whether `credential` has to be renewed before its use; without `expires_at` never."""
    return 0 < disk.number(str(credential.get("expires_at"))) <= time.time()


def _ask(client: Client, fields: Mapping[str, str]) -> Json:
    from harness_lib.loop.wires import http  # noqa: PLC0415 (its package takes long to import)

    url = client.values["token_url"]
    status, answer = http.post_form(url, fields)
    if status == 200 and isinstance(answer.get("access_token"), str):  # noqa: PLR2004 (OK)
        return answer
    problem = str(answer.get("error_description") or answer.get("error") or "(nothing)")
    for name in _SECRET:
        # A server may repeat the field that it refuses.
        if fields.get(name):
            problem = problem.replace(fields[name], "***")
    message = f"The login at {client.name} failed, {url} answered {status}: "
    message += harmless(problem)[:_SHOWN]
    if status >= _SERVER_ERROR or status == _TOO_MANY:
        raise TransientError(message)
    raise LoginEndedError(f"{message} Log in again: {command(client)}")


def _credential(client: Client, answer: Json, before: Json) -> Json:
    """Return the credential to store; without a new refresh token the old one stays."""
    credential: Json = {**before, "type": "oauth", "access_token": answer["access_token"]}
    if answer.get("refresh_token"):
        credential["refresh_token"] = str(answer["refresh_token"])
    credential["expires_at"] = str(_expires(answer))
    account = _account(client, answer)
    return {**credential, "account_id": account} if account else credential


def _expires(answer: Json) -> int:
    """Return the second at which the tokens are to be renewed; 0 if it is unknown."""
    now = int(time.time())
    seconds = disk.number(str(answer.get("expires_in")))
    if not seconds:
        expiry = claims(str(answer["access_token"])).get("exp")
        seconds = int(expiry) - now if isinstance(expiry, int | float) else 0
    return now + seconds - min(_EARLY_SECONDS, seconds // 2) if seconds > 0 else 0


def _account(client: Client, answer: Json) -> str:
    """Return the account that the tokens name; "" if it is not wanted or not named."""
    path = client.values.get("account_claim", "").split()
    for name in ("id_token", "access_token"):
        claim: object = claims(str(answer.get(name) or ""))
        for key in path:
            claim = claim.get(key) if isinstance(claim, dict) else None
        if path and isinstance(claim, str) and claim.isascii() and claim.isprintable():
            return claim
    return ""


def claims(token: str) -> Json:
    """Return the claims of a JWT; none of another token. The signature is not checked."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 (head, claims, signature)
        return {}
    try:
        text = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)).decode()
    except ValueError:
        return {}
    return as_object(text) or {}


def check_stored(runtime: Runtime, client: Client) -> Json:
    """Return the stored login at `client`. Raises ProviderError where nobody is logged in."""
    credential = keys.first(runtime, client.name)
    if credential.get("type") != "oauth" or not credential.get("access_token"):
        raise ProviderError(f"Nobody is logged in at {client.name}. Log in: {command(client)}")
    return credential


def headers(runtime: Runtime, client: Client, templates: Mapping[str, str], refused: str) -> dict[str, str]:
    """Return the headers of a request: the token's, and `templates` with the account in them.

    `refused` is a header `authorization` that the host has refused, or "": it is not returned again.
    """
    credential = check_stored(runtime, client)
    if is_due(credential) or _authorization(credential) == refused:
        credential = _renewed(runtime, client, refused)
    account = str(credential.get("account_id") or "")
    if not all(text.isascii() and text.isprintable() for text in (_authorization(credential), account)):
        # Later code would print the token.
        message = f"The stored login at {client.name} is damaged. Log in again: {command(client)}"
        raise ProviderError(message)
    filled = {name: value.replace("{account_id}", account) for name, value in templates.items()}
    return {
        **{name: value for name, value in filled.items() if value},
        "authorization": _authorization(credential),
    }


def _renewed(runtime: Runtime, client: Client, refused: str) -> Json:
    with keys.held(runtime):
        # Another process may have renewed it, or logged out, while this one waited.
        credential = check_stored(runtime, client)
        if not is_due(credential) and _authorization(credential) != refused:
            return credential
        path = keys.where(runtime, client.name)
        keys.check_writable(path)
        # The old refresh token is worth nothing once the server has answered.
        with processes.uninterrupted():
            renewed = refresh(client, credential)
            keys.replace_first(runtime, path, client.name, renewed)
    return renewed


def _authorization(credential: Json) -> str:
    return f"Bearer {credential.get('access_token')}"
