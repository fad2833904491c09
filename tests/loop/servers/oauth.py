"""An authorization server on 127.0.0.1, as strict as RFC 6749 and 7636 let one be.

Codes work once and for the client, address and challenge that they were made for; refresh tokens are given
anew with each renewal, and one that comes a second time ends the whole login, as a thief's would.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.loop.servers.script import Quiet

CLIENT = "client-of-a-test"
SCOPE = "openid offline_access"
ACCOUNT = "account-7"


@dataclass
class Granted:
    """What a code was given for."""

    redirect_uri: str
    challenge: str


class AuthServer(ThreadingHTTPServer):
    """`/authorize` lets everybody in who asks rightly; `/token` exchanges and renews."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.codes: dict[str, Granted] = {}
        self.refresh_token = ""
        self.used: set[str] = set()
        self.access_tokens: list[str] = []
        # How long access tokens last, in seconds; what the user says.
        self.lasts: int | None = 3600
        self.denied = False
        # So many requests for tokens fail first.
        self.ill = 0
        self.gate = threading.Event()
        self.gate.set()
        # Every form that came to /token, and what was wrong with a request.
        self.forms: list[dict[str, str]] = []
        self.refusals: list[str] = []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def renewals(self) -> list[dict[str, str]]:
        return [form for form in self.forms if form.get("grant_type") == "refresh_token"]

    def secrets_given(self) -> list[str]:
        """Return everything that nobody but the client may ever see."""
        return [*self.access_tokens, self.refresh_token, *self.used]

    def is_good(self, authorization: str) -> bool:
        """Return whether a host of models would take this header."""
        return bool(self.access_tokens) and authorization == f"Bearer {self.access_tokens[-1]}"


class _Handler(Quiet):
    server: AuthServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = dict(parse_qsl(url.query))
        must = {"response_type": "code", "client_id": CLIENT, "scope": SCOPE, "code_challenge_method": "S256"}
        problem = next((key for key, value in must.items() if asked.get(key) != value), "")
        back = urlsplit(asked.get("redirect_uri", ""))
        if problem or url.path != "/authorize" or back.hostname not in {"127.0.0.1", "localhost"}:
            self._refuse(f"authorize: {problem or back.hostname or url.path}")
            return
        if len(asked.get("state", "")) < 20 or len(asked.get("code_challenge", "")) != 43:
            self._refuse("authorize: state or challenge can be guessed")
            return
        if self.server.denied:
            answer = {"error": "access_denied", "error_description": "The user\x1b[2J said no."}
        else:
            code = secrets.token_urlsafe(16)
            self.server.codes[code] = Granted(asked["redirect_uri"], asked["code_challenge"])
            answer = {"code": code}
        self.send_response(302)
        self.send_header(
            "location", f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state']})}"
        )
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = self.body().decode()
        if self.headers.get("content-type") != "application/x-www-form-urlencoded":
            self._refuse("token: no form")
            return
        form = dict(parse_qsl(body))
        with self.server.lock:
            self.server.forms.append(form)
        self.server.gate.wait(30)
        if self.server.ill:
            self.server.ill -= 1
            self.reply(503, {"error": "server_error"})
            return
        with self.server.lock:
            problem = self._problem(form)
            if problem:
                self.server.refusals.append(problem)
                # As careless a server as there may be: it repeats what it was sent.
                self.reply(400, {"error": "invalid_grant", "error_description": f"{problem}: {body}"})
                return
            self.reply(200, self._given())

    def _problem(self, form: dict[str, str]) -> str:
        if form.get("client_id") != CLIENT:
            return "client_id"
        if form.get("grant_type") == "refresh_token":
            token = form.get("refresh_token", "")
            if token in self.server.used:
                self.server.refresh_token = ""
                return "this refresh token was used before"
            return "" if token and token == self.server.refresh_token else "unknown refresh token"
        granted = self.server.codes.pop(form.get("code", ""), None)
        if form.get("grant_type") != "authorization_code" or granted is None:
            return "unknown code"
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != granted.challenge:
            return "code_verifier does not fit"
        return "" if form.get("redirect_uri") == granted.redirect_uri else "redirect_uri is another"

    def _given(self) -> dict[str, object]:
        server = self.server
        if server.refresh_token:
            server.used.add(server.refresh_token)
        server.refresh_token = f"refresh-{secrets.token_urlsafe(16)}"
        server.access_tokens.append(f"access-{secrets.token_urlsafe(16)}")
        tokens: dict[str, object] = {
            "access_token": server.access_tokens[-1],
            "refresh_token": server.refresh_token,
            "token_type": "Bearer",
            "id_token": jwt({"https://api.openai.com/auth": {"chatgpt_account_id": ACCOUNT}}),
        }
        return tokens if server.lasts is None else {**tokens, "expires_in": server.lasts}

    def _refuse(self, problem: str) -> None:
        self.server.refusals.append(problem)
        self.reply(400, {"error": "invalid_request", "error_description": problem})


def jwt(claims: dict[str, object]) -> str:
    """Return a token that says `claims`; nobody checks who signed it."""
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "sig"])
