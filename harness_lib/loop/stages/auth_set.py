"""The stage `auth-set`: ask a person for a credential."""

from __future__ import annotations

import os

from harness_lib.loop.failures import HookError, ProviderError
from harness_lib.loop.oauth import client
from harness_lib.loop.piped import Piped, as_object
from harness_lib.loop.provider_files import variants
from harness_lib.loop.runtime import Runtime


def log_in(runtime: Runtime, piped: Piped) -> Piped:
    """Log in where the provider's `.conf` says `auth=oauth`, unless there is a credential already."""
    credential = as_object(piped) or {}
    name = runtime.env.get("HARNESS_AUTH_PROVIDER", "")
    if name == "claude" and not credential.get("type"):
        message = "Claude Code keeps its login itself: start claude and type /login"
        raise HookError(message, {"error": message})
    variant = variants.find(runtime, name)
    try:
        if credential.get("type") or variant is None or not client.is_used(variant):
            return credential
        # Imported here: only who logs in needs a server and a browser.
        from harness_lib.loop.oauth import login  # noqa: PLC0415

        return login.log_in(client.of(variant))
    except ProviderError as error:
        raise HookError(str(error), {"error": str(error)}) from error


def ask(runtime: Runtime, piped: Piped) -> Piped:
    """Read a key from the terminal without showing it, unless a hook before this one has a credential."""
    credential = as_object(piped) or {}
    if credential.get("type"):
        return credential
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        message = "there is no terminal to read the key from"
        raise HookError(message, {"error": message}) from error
    import getpass  # noqa: PLC0415 (only where a key is typed)

    key = getpass.getpass(f"Key for {runtime.env.get('HARNESS_AUTH_PROVIDER', '')}: ").strip()
    if not key or not key.isprintable():
        message = "that is no key"
        raise HookError(message, {"error": message})
    return {"type": "api_key", "key": key}
