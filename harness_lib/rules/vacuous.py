"""Recognise checks that cannot fail, files that are named like secrets, and texts that look like keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from harness_lib import typed

# Programs that end with 0 whatever their arguments are.
_ALWAYS = frozenset(["true", ":", "echo", "printf"])
_PAGERS = frozenset(["cat", "tee", "tail", "head", "sed", "tr", "cut", "sort", "uniq", "wc", "column"])
_AFTER_ANOTHER = (";", "\n")
# Words that may end a check before its last command.
_ENDS_EARLY = frozenset(["exit", "return", "exec", "errexit"])
_GREP = 3


def why(command: str, has: Callable[[str, str], bool] = lambda _word, _file: False) -> str | None:
    """Return why `command` cannot fail, as a phrase; None if that is not certain.

    `has` tells whether a file of the project contains a text already.
    """
    *before, (last, end) = typed.simple_commands(command)
    while before and not last and before[-1][1] in _AFTER_ANOTHER:
        *before, (last, _) = before
    operator = before[-1][1] if before else ""
    # Before any other, such as `&&`, a failure still counts.
    decides = not end and operator in ("", "|", "||", *_AFTER_ANOTHER)
    words = [word for each, _ in before for word in each]
    set_e = (word == "set" and re.match(r"-\w*e", flag) for word, flag in pairwise(words))
    if not last or not decides or not _ENDS_EARLY.isdisjoint(words) or any(set_e):
        return None
    name = last[0].rpartition("/")[2]
    if last[:2] == ["exit", "0"] or name in _ALWAYS:
        return (
            f"it ends with `{' '.join(last[:2])}`, which never fails" if operator else f"`{name}` never fails"
        )
    if operator == "|" and name in _PAGERS and "pipefail" not in command:
        return f"of a pipe only its last program counts, and `{name}` does not fail"
    if not operator and name == "grep" and (found := _searched(last)) and has(*found):
        return f"{found[1]} has {found[0]!r} already"
    return None


def _searched(words: list[str]) -> tuple[str, str] | None:
    """Return the text and the file of a plain `grep -q TEXT FILE`."""
    plain = [word for word in words[1:] if not word.startswith("-")]
    inverted = any(word.startswith("-") and set("vLc") & set(word) for word in words[1:])
    return (plain[0], plain[1]) if len(words) >= _GREP and len(plain) == len("ab") and not inverted else None


# In a file name these words say that the values are made up.
_EXAMPLES = frozenset(
    ("example", "examples", "sample", "template", "tmpl", "tpl", "dist", "default", "defaults", "schema")
)
_NAMES = r"""(?xi)
    \.env (\..*)?
    | .* \.pem
    | id_ [^.]*                                             # an SSH key; a source file has an ending
    | id_ (rsa|dsa|ecdsa|ed25519) [^.]* \. (?!pub$) .*
    | credentials .* \.json
    | \.netrc
    """
# A variable of the environment (`${NPM_TOKEN}`) is not a token, and neither is an empty value.
_NPM_TOKEN = rb"(?i)(?:_authToken|_auth|_password)\s*=[ \t]*(?!\$\{)\S"
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
    if not re.fullmatch(_NAMES, name) or not _EXAMPLES.isdisjoint(name.lower().split(".")):
        return None
    # A program may be called id_list; nobody executes a key.
    return None if executable and name.lower().startswith("id_") else path


def has_npm_token(content: bytes) -> bool:
    """Return whether the `content` of an `.npmrc` has a token or a password in it."""
    return re.search(_NPM_TOKEN, content) is not None


def key_in(content: bytes) -> str | None:
    """Return the kind of key that `content` seems to have; None for none."""
    return next((kind for kind, pattern in _KEYS.items() if pattern.search(content)), None)
