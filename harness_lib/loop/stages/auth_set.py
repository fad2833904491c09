"""The stage `auth-set`: ask a person for a credential."""

from __future__ import annotations

import getpass
import os

from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import Piped, as_object
from harness_lib.loop.runtime import Runtime


def ask(runtime: Runtime, piped: Piped) -> Piped:
    """Read a key from the terminal without showing it, unless a hook before this one has a credential."""
    found = as_object(piped) or {}
    if found.get("type"):
        return found
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        message = "there is no terminal to read the key from"
        raise HookError(message, {"error": message}) from error
    key = getpass.getpass(f"Key for {runtime.env.get('HARNESS_AUTH_PROVIDER', '')}: ").strip()
    if not key or not key.isprintable():
        message = "that is no key"
        raise HookError(message, {"error": message})
    return {"type": "api_key", "key": key}
