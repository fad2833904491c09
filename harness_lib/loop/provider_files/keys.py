"""Credentials that `hs auth` has stored: one list per provider in a source's `.auth.json`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import trust
from harness_lib.loop.piped import Json, as_object

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

FILE = ".auth.json"


def merged(runtime: Runtime) -> Json:
    """Return the credentials of all sources, the most local last; lists replace each other."""
    credentials: Json = {}
    for source in trust.usable(runtime):
        credentials = _merge(credentials, load(Path(source, FILE)))
    return credentials


def load(path: Path) -> Json:
    """Return what the file `path` holds; nothing if there is none or it is no JSON object."""
    try:
        return as_object(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError):
        return {}


def first(runtime: Runtime, provider: str) -> Json:
    """Return the first credential of `provider`; empty if there is none."""
    stored = merged(runtime).get(provider)
    entry = stored[0] if isinstance(stored, list) and stored else {}
    return entry if isinstance(entry, dict) else {}


def is_fresh(credential: Json) -> bool:
    """Return whether `credential` is one and has not expired."""
    expires = str(credential.get("expires_at") or "0")
    return bool(credential) and (expires == "0" or not expires.isdigit() or int(expires) > time.time())


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
