"""Recognise files that are named like secrets, and texts that look like keys."""

from __future__ import annotations

import re

# In a file name these words say that the values are made up.
_EXAMPLES = frozenset(
    ("example", "examples", "sample", "template", "tmpl", "tpl", "dist", "default", "defaults", "schema")
)
_NAMES = re.compile(
    r"""
    \.env (\..*)?
    | .* \.pem
    | id_ [^.]*                                             # an SSH key; a source file has an ending
    | id_ (rsa|dsa|ecdsa|ed25519) [^.]* \. (?!pub$) .*
    | credentials .* \.json
    | \.netrc
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A variable of the environment (`${NPM_TOKEN}`) is not a token, and neither is an empty value.
_NPM_TOKEN = re.compile(rb"(?:_authToken|_auth|_password)\s*=[ \t]*(?!\$\{)\S", re.IGNORECASE)
NPM = ".npmrc"

_KEYS = {
    "a private key": re.compile(rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    "an AWS key": re.compile(rb"\bAKIA[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60})"),
    "a Slack token": re.compile(rb"\bxox[abeoprs]-[A-Za-z0-9-]{10}"),
    "a key of a model's provider": re.compile(rb"\bsk-[A-Za-z0-9_-]{20}"),
}


def secret(path: str, *, executable: bool = False) -> str | None:
    """Return `path` if it is named like a secret, or the directory `.env` that it is in; else None.

    The content of an `.npmrc` decides, see `has_npm_token`.
    """
    *above, name = path.split("/")
    if ".env" in above:
        return "/".join((*above[: above.index(".env")], ".env"))
    if not _NAMES.fullmatch(name) or not _EXAMPLES.isdisjoint(name.lower().split(".")):
        return None
    # A program may be called id_list; nobody executes a key.
    return None if executable and name.lower().startswith("id_") else path


def has_npm_token(content: bytes) -> bool:
    """Return whether the `content` of an `.npmrc` has a token or a password in it."""
    return _NPM_TOKEN.search(content) is not None


def key_in(content: bytes) -> str | None:
    """Return the kind of key that `content` seems to have; None for none."""
    return next((kind for kind, pattern in _KEYS.items() if pattern.search(content)), None)
