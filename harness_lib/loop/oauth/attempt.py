"""One login under way: the address that is opened, and the code in what comes back.

The verifier stays in this process, so a code that somebody else gets to see is worth nothing to them; the
state tells our browser's answer from one that another page has made up.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from harness_lib.loop.failures import ProviderError
from harness_lib.loop.oauth.client import Client
from harness_lib.text import harmless

_SHOWN = 300


@dataclass(frozen=True)
class Attempt:
    """What nobody can guess: `state` goes through the browser, `verifier` straight to the server."""

    client: Client
    redirect_uri: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)

    @property
    def url(self) -> str:
        """The address at which the person logs in."""
        challenge = hashlib.sha256(self.verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": self.redirect_uri,
            **({"scope": self.client.scope} if self.client.scope else {}),
            "state": self.state,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **dict(self.client.parameters),
        }
        separator = "&" if urlsplit(self.client.authorize_url).query else "?"
        return f"{self.client.authorize_url}{separator}{urlencode(parameters)}"

    def is_ours(self, parameters: dict[str, str]) -> bool:
        """Return whether `parameters` answer this login."""
        return hmac.compare_digest(parameters.get("state", "").encode(), self.state.encode())

    def code(self, parameters: dict[str, str]) -> str:
        """Return the code in an answer of ours. Raises ProviderError with what the server says instead."""
        if parameters.get("error"):
            problem = parameters.get("error_description") or parameters["error"]
            raise ProviderError(f"The login was refused: {harmless(problem)[:_SHOWN]}")
        if not parameters.get("code"):
            raise ProviderError("The login came back without a code.")
        return parameters["code"]

    def pasted(self, text: str) -> str:
        """Return the code in what a person has pasted: the code, `CODE#STATE`, or the whole address.

        Raises ProviderError where it is none, or belongs to another login.
        """
        text = text.strip()
        if "?" in text or "code=" in text or "error=" in text:
            parameters = dict(parse_qsl(urlsplit(text).query or text))
        else:
            code, _, state = text.partition("#")
            # Who types the code alone has seen which login it belongs to.
            parameters = {"code": code, "state": state or self.state}
        if not self.is_ours(parameters):
            raise ProviderError("This belongs to another login.")
        return self.code(parameters)
