"""Tokens: a code is exchanged for them, and they are renewed before they expire."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping

from harness_lib.loop.failures import ProviderError, TransientError
from harness_lib.loop.oauth.client import Client
from harness_lib.loop.piped import Json, as_object
from harness_lib.text import harmless

# Tokens are renewed so many seconds before they expire: a request takes its time.
_EARLY_SECONDS = 300
_SHOWN = 300
_SECRET = ("code", "code_verifier", "refresh_token")
_SERVER_ERROR = 500
_TOO_MANY = 429


class LoginEndedError(ProviderError):
    """The server takes the login no more; only a person can make another one."""


def exchange(client: Client, code: str, redirect_uri: str, verifier: str) -> Json:
    """Return the credential that `code` is good for. Raises ProviderError."""
    fields = {
        "grant_type": "authorization_code",
        "client_id": client.client_id,
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
    }
    return _credential(client, _ask(client, fields), {})


def refresh(client: Client, credential: Json) -> Json:
    """Return `credential` renewed. Raises LoginEndedError when it cannot be, TransientError when not now."""
    token = str(credential.get("refresh_token") or "")
    if not token:
        raise LoginEndedError(f"The login at {client.name} has expired. Log in again: {client.command}")
    fields = {"grant_type": "refresh_token", "client_id": client.client_id, "refresh_token": token}
    return _credential(client, _ask(client, fields), credential)


def is_due(credential: Json) -> bool:
    """Return whether `credential` is to be renewed before it is used; one without a moment never is."""
    expires = str(credential.get("expires_at") or "0")
    return expires.isdigit() and 0 < int(expires) <= time.time()


def _ask(client: Client, fields: Mapping[str, str]) -> Json:
    from harness_lib.loop.wires import forms  # noqa: PLC0415 (its package takes long to import)

    status, answer = forms.post(client.token_url, fields)
    if status == 200 and isinstance(answer.get("access_token"), str):  # noqa: PLR2004 (OK)
        return answer
    problem = str(answer.get("error_description") or answer.get("error") or "(nothing)")
    for name in _SECRET:
        # A server may repeat what it does not like.
        if fields.get(name):
            problem = problem.replace(fields[name], "***")
    message = f"The login at {client.name} failed, {client.token_url} answered {status}: "
    message += harmless(problem)[:_SHOWN]
    if status >= _SERVER_ERROR or status == _TOO_MANY:
        raise TransientError(message)
    raise LoginEndedError(f"{message} Log in again: {client.command}")


def _credential(client: Client, answer: Json, before: Json) -> Json:
    """Return what is kept; a server that gives no new refresh token means the one that there is."""
    credential: Json = {**before, "type": "oauth", "access_token": _token(answer, "access_token")}
    if answer.get("refresh_token"):
        credential["refresh_token"] = _token(answer, "refresh_token")
    credential["expires_at"] = str(_expires(answer))
    account = _account(client, answer)
    return {**credential, "account_id": account} if account else credential


def _token(answer: Json, name: str) -> str:
    token = str(answer[name])
    if not token or not token.isascii() or not token.isprintable():
        # Said here: whoever meets it later would print the token.
        raise ProviderError(f"The authorization server gave a {name} that no header can carry.")
    return token


def _expires(answer: Json) -> int:
    """Return the second at which the tokens are to be renewed; 0: it is unknown, the host will say so."""
    now = int(time.time())
    lasts = answer.get("expires_in")
    seconds = int(lasts) if isinstance(lasts, int | float | str) and str(lasts).isdigit() else 0
    if not seconds:
        expiry = claims(str(answer["access_token"])).get("exp")
        seconds = int(expiry) - now if isinstance(expiry, int | float) else 0
    return now + seconds - min(_EARLY_SECONDS, seconds // 2) if seconds > 0 else 0


def _account(client: Client, answer: Json) -> str:
    """Return whose account it is, as the tokens say it; "" where that is not asked for, or not said."""
    for name in ("id_token", "access_token"):
        claim: object = claims(str(answer.get(name) or ""))
        for key in client.account_claim:
            claim = claim.get(key) if isinstance(claim, dict) else None
        if client.account_claim and isinstance(claim, str) and claim.isascii() and claim.isprintable():
            return claim
    return ""


def claims(token: str) -> Json:
    """Return what a JWT says; nothing of another token. Who has signed it is not looked at."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 (head, claims, signature)
        return {}
    try:
        text = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return {}
    return as_object(text) or {}
