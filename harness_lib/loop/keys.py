"""Credentials that `hs auth` has stored, keys and logins, and the variables with keys that no tool must see.

There is one list per provider in a source's `.auth.json`. These files are changed by one process at a time,
as whole files, for their owner alone.
A server that gives a new refresh token with each renewal takes the old one for stolen when it comes again,
so of all processes exactly one renews a login, and the others find what it has stored.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from harness_lib.errors import ConfigError, EnvSetupError
from harness_lib.loop import disk, processes, trust
from harness_lib.loop.piped import HookError, Json, ProviderError, TransientError, as_object
from harness_lib.loop.runtime import Runtime, once
from harness_lib.loop.wires.answer import as_tables
from harness_lib.system import flock, fs
from harness_lib.system.processes import environment
from harness_lib.text import harmless, sentence, words_of

FILE = ".auth.json"
_LOCK = ".auth.lock"
_WANTED = ("authorize_url", "token_url", "client_id")
# Tokens are renewed so many seconds before they expire: a request takes its time.
_EARLY_SECONDS = 300
_SHOWN = 300
_SENT = ("code", "code_verifier", "refresh_token")
_SERVER_ERROR = 500
_TOO_MANY = 429
_MOST_PORTS = 1 << 16


@once
def merged(runtime: Runtime) -> Json:
    """Return the credentials of all sources, the most local last; lists replace each other."""
    credentials: Json = {}
    for source in trust.usable(runtime):
        if stored := disk.read_object(Path(source, FILE)):
            credentials = _merge(credentials, stored)
    return credentials


def first(runtime: Runtime, provider: str) -> Json:
    """Return the first credential of `provider`; empty if there is none."""
    return next(iter(as_tables(merged(runtime).get(provider))), {})


def secret(credential: Json) -> str:
    """Return the key in `credential`, as a header can carry it."""
    return str(credential.get("key") or credential.get("token") or "").strip()


def render(credentials: Json) -> str:
    """Return the content of a file of credentials."""
    return json.dumps(credentials, indent=2, ensure_ascii=False) + "\n"


def _merge(below: Json, above: Json) -> Json:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


@contextmanager
def held(runtime: Runtime) -> Iterator[None]:
    """Let no other process change credentials as long as the block lasts; they are read again in it."""
    try:
        runtime.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = flock.opened(runtime.home / _LOCK)
    except OSError as error:
        message = f"{runtime.home} cannot be written: {error.strerror}."
        raise EnvSetupError(
            message, "Credentials are kept there; HARNESS_HOME names another place."
        ) from error
    try:
        # The kernel lets go of it when its holder dies.
        flock.take(descriptor)
        runtime.found.clear()
        yield
    finally:
        runtime.found.clear()
        os.close(descriptor)


def stored(path: Path) -> Json:
    """Return the credentials in `path`. Raises ConfigError for a broken file: it would be overwritten."""
    try:
        credentials = as_object(path.read_text(encoding="utf-8-sig", errors="replace"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise EnvSetupError(f"{path} cannot be read: {error.strerror}.") from error
    if credentials is None:
        raise ConfigError(f"{path} is not a JSON object.", "Repair it or move it away, then call again.")
    return credentials


def check_writable(path: Path) -> None:
    """Raise EnvSetupError if `path` cannot be written; a token that is issued once would be lost."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not fs.can_write(path.parent):
        raise EnvSetupError(f"{path.parent} cannot be written, and credentials are kept there.")


def write(path: Path, credentials: Json) -> None:
    """Replace the file `path`."""
    disk.write(path, render(credentials).encode(), durable=True)


class Client(Protocol):
    """A provider with a login, and what its `.conf` says of it."""

    @property
    def name(self) -> str: ...

    @property
    def values(self) -> Mapping[str, str]: ...


def check_login(client: Client) -> None:
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


def _is_safe(url: str) -> bool:
    """Return whether what is sent to `url` is encrypted, or stays on this machine."""
    try:
        address = urlsplit(url)
        if address.scheme != "http" or address.hostname == "localhost":
            return address.scheme in {"http", "https"}
        import ipaddress  # noqa: PLC0415 (only where a login is not encrypted)

        return ipaddress.ip_address(address.hostname or "").is_loopback
    except ValueError:
        return False


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


def _ended(client: Client, why: str) -> ProviderError:
    """Return the error for a login that has ended; the user has to log in again."""
    return ProviderError(f"{why} Log in again: hs auth login {client.name}")


def _refresh(client: Client, credential: Json) -> Json:
    """Return `credential` renewed. Raises ProviderError when it cannot be, TransientError when not now."""
    token = str(credential.get("refresh_token") or "")
    if not token:
        raise _ended(client, f"The login at {client.name} has expired.")
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
    for name in _SENT:
        # A server may repeat the field that it refuses.
        if fields.get(name):
            problem = problem.replace(fields[name], "***")
    said = sentence(harmless(problem)[:_SHOWN])
    message = f"The login at {client.name} failed, {url} answered {status}: {said}"
    if status >= _SERVER_ERROR or status == _TOO_MANY:
        raise TransientError(message)
    raise _ended(client, message)


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
        expiry = _claims(str(answer["access_token"])).get("exp")
        seconds = int(expiry) - now if isinstance(expiry, int | float) else 0
    return now + seconds - min(_EARLY_SECONDS, seconds // 2) if seconds > 0 else 0


def _account(client: Client, answer: Json) -> str:
    """Return the account that the tokens name; "" if it is not wanted or not named."""
    path = client.values.get("account_claim", "").split()
    for name in ("id_token", "access_token"):
        claim: object = _claims(str(answer.get(name) or ""))
        for key in path:
            claim = claim.get(key) if isinstance(claim, dict) else None
        if path and isinstance(claim, str) and claim.isascii() and claim.isprintable():
            return claim
    return ""


def _claims(token: str) -> Json:
    """Return the claims of a JWT; none of another token. The signature is not checked."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 (head, claims, signature)
        return {}
    try:
        text = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)).decode()
    except ValueError:
        return {}
    return as_object(text) or {}


def login_of(runtime: Runtime, client: Client) -> Json:
    """Return the stored login at `client`. Raises ProviderError where nobody is logged in."""
    credential = first(runtime, client.name)
    if credential.get("type") != "oauth" or not credential.get("access_token"):
        raise ProviderError(f"Nobody is logged in at {client.name}. Log in: hs auth login {client.name}")
    return credential


def login_headers(
    runtime: Runtime, client: Client, templates: Mapping[str, str], refused: str
) -> dict[str, str]:
    """Return the headers of a request: the token's, and `templates` with the account in them.

    `refused` is a header `authorization` that the host has refused, or "": it is not returned again.
    """
    credential = login_of(runtime, client)
    if is_due(credential) or _authorization(credential) == refused:
        credential = _renewed(runtime, client, refused)
    account = str(credential.get("account_id") or "")
    if not all(text.isascii() and text.isprintable() for text in (_authorization(credential), account)):
        # Later code would print the token.
        raise _ended(client, f"The stored login at {client.name} is damaged.")
    filled = {name: value.replace("{account_id}", account) for name, value in templates.items()}
    return {
        **{name: value for name, value in filled.items() if value},
        "authorization": _authorization(credential),
    }


def _renewed(runtime: Runtime, client: Client, refused: str) -> Json:
    with held(runtime):
        # Another process may have renewed it, or logged out, while this one waited.
        credential = login_of(runtime, client)
        if not is_due(credential) and _authorization(credential) != refused:
            return credential
        path = _where(runtime, client.name)
        check_writable(path)
        # The old refresh token is worth nothing once the server has answered.
        with processes.uninterrupted():
            renewed = _refresh(client, credential)
            credentials = stored(path)
            entries = credentials.get(client.name)
            others = entries[1:] if isinstance(entries, list) else []
            write(path, {**credentials, client.name: [renewed, *others]})
            if trust.project_of_source(runtime, str(path.parent)):
                # It was used, so it was trusted; the user need not review what hs has written itself.
                trust.save(runtime, [str(path.parent)])
    return renewed


def _where(runtime: Runtime, provider: str) -> Path:
    """Return the file whose credentials of `provider` are used; home's where there are none."""
    for source in reversed(trust.usable(runtime)):
        path = Path(source, FILE)
        if provider in disk.read_object(path):
            return path
    return runtime.home / FILE


def _authorization(credential: Json) -> str:
    return f"Bearer {credential.get('access_token')}"


# Names, separated by commas, that the user lets through for tests that need a key; subagents inherit it.
KEPT = "HARNESS_KEEP_ENV"
_WELL_KNOWN = words_of("""
    ANTHROPIC_API_KEY ANTHROPIC_AUTH_HEADER ANTHROPIC_AUTH_TOKEN ANTHROPIC_CUSTOM_HEADERS
    AWS_BEARER_TOKEN_BEDROCK AZURE_API_KEY AZURE_OPENAI_API_KEY CEREBRAS_API_KEY CLAUDE_CODE_OAUTH_TOKEN
    CODEX_API_KEY COHERE_API_KEY COPILOT_GITHUB_TOKEN CURSOR_API_KEY DASHSCOPE_API_KEY DEEPSEEK_API_KEY
    FIREWORKS_API_KEY GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GENERATIVE_AI_API_KEY GROQ_API_KEY KIMI_API_KEY
    LLAMA_API_KEY MISTRAL_API_KEY MOONSHOT_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY PERPLEXITY_API_KEY
    TOGETHER_API_KEY XAI_API_KEY ZAI_API_KEY ZAI_AUTH_TOKEN ZHIPU_API_KEY
""")
# A program's `--env` has a line for each of its variables; most of them are no secret.
_NAMED = r"(?m)^\s*([A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|AUTH|CREDENTIAL)[A-Z0-9_]*)"


@once
def names(runtime: Runtime) -> set[str]:
    """Return the variables that hold keys, of all known providers, in use or not."""

    def ask(program: Path) -> set[str]:
        with suppress(HookError):
            text = processes.printed(str(program), "--env", env=runtime.variables(), cwd=runtime.cwd)
            return set(re.findall(_NAMED, text))
        return set()

    found = set(_WELL_KNOWN)
    for source in trust.usable(runtime, *dict.fromkeys([*runtime.unscoped, *runtime.sources])):
        directory = Path(source, "providers")
        for name in disk.visible_names(str(directory)):
            if name.endswith(".conf"):
                found.add(disk.read_conf(directory / name).get("auth_env", ""))
        for program in disk.programs(str(directory)):
            if not program.endswith(".conf"):
                found |= disk.remembered(runtime.kept, directory / program, ask) or set()
    return found


def without(runtime: Runtime, env: dict[str, str]) -> dict[str, str]:
    """Return `env` without the credentials of any provider that is known here."""
    kept = {name.strip() for name in runtime.env.get(KEPT, "").split(",")}
    hidden = names(runtime) - kept
    return {name: value for name, value in env.items() if name not in hidden}


def hide(runtime: Runtime) -> None:
    """Let no tool read the keys in the environment that this process was started with."""
    environment.blank(names(runtime))
