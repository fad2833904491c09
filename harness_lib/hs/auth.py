"""`hs auth`: credentials of providers, kept in a source's `.auth.json` that only its owner can read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness_lib.errors import EnvSetupError, RefusedError, UsageError
from harness_lib.hs.terminal import complain, show
from harness_lib.loop import discovery, disk, hosted, keys, piped, plugins
from harness_lib.loop.runtime import Runtime
from harness_lib.system import fs
from harness_lib.system.place import own_files

USAGE = "hs auth set|login|logout PROVIDER [--local] | list [PROVIDER] | rm PROVIDER INDEX [--local]"
_SHORT = 8
_SHOWN = 4


def run(runtime: Runtime, args: list[str]) -> int:
    """Keep, list or forget credentials."""
    local = "--local" in args
    words = [word for word in args if word != "--local"]
    if runtime.provider:
        # A credential may be of any provider; the packs of those that are not in use are left out.
        runtime.provider = ""
        discovery.refresh(runtime)
    match words:
        case [] | ["list"] | ["list", _] if not local:
            return _list(runtime, words[1:])
        case ["set" | "login", provider] if disk.is_name(provider):
            _check_name(runtime, provider)
            _set(runtime, provider, _file(runtime, local=local))
        case ["logout", provider]:
            _remove(runtime, provider, _file(runtime, local=local))
        case ["rm", provider, index] if index == "0" or disk.number(index):
            _remove(runtime, provider, _file(runtime, local=local), disk.number(index))
        case _:
            raise UsageError(f"hs auth does not understand: {' '.join(args)}.", f"Usage: {USAGE}")
    # Provider programs read a cache of the credentials, which this updates.
    discovery.refresh(runtime)
    return 0


def _check_name(runtime: Runtime, name: str) -> None:
    """Tell the user, before they type a key, that only a plugin could look for it under `name`."""
    if name not in discovery.candidates(runtime) and not hosted.find_provider(runtime, name):
        complain(f"hs: There is no provider {name} (hs help); the key is kept for plugins of that name.")


def _set(runtime: Runtime, provider: str, path: Path) -> None:
    runtime.env["HARNESS_AUTH_PROVIDER"] = provider
    # Find out before the user logs in whether the credential can be stored.
    if path.parent != runtime.home:
        _keep_from_git(path.parent)
    keys.stored(path)
    keys.check_writable(path)
    try:
        credential = plugins.call(runtime, "auth-set", {})
    except piped.HookError as failure:
        raise EnvSetupError(f"No credential for {provider}: {failure}.") from failure
    if not credential.get("type"):
        raise EnvSetupError(f"No credential for {provider}: the stage auth-set gave none with a type.")
    with keys.held(runtime):
        keys.write(path, {**keys.stored(path), provider: [credential]})
    if credential["type"] == "oauth":
        print(f"hs: logged in at {provider}", file=sys.stderr)


def _remove(runtime: Runtime, provider: str, path: Path, index: int | None = None) -> None:
    """Forget the credential of `provider` at `index`, or all of them."""
    with keys.held(runtime):
        stored = keys.stored(path)
        entries = stored.pop(provider, None)
        if index is None:
            said = "logged out of" if entries is not None else "nobody is logged in at"
            print(f"hs: {said} {provider}", file=sys.stderr)
        elif not isinstance(entries, list):
            return
        elif left := entries[:index] + entries[index + 1 :]:
            stored[provider] = left
        if entries is not None:
            keys.write(path, stored)


def _list(runtime: Runtime, only: list[str]) -> int:
    for provider, entries in sorted(keys.merged(runtime).items()):
        if only and provider not in only:
            continue
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict):
                show(f"{provider} [{index}] type={entry.get('type', '')} key={_shown(entry)}")
    return 0


def _shown(entry: piped.Json) -> str:
    secret = keys.secret(entry) or str(entry.get("access_token") or "")
    return "****" if len(secret) <= _SHORT else f"{secret[:_SHOWN]}...{secret[-_SHOWN:]}"


def _file(runtime: Runtime, *, local: bool) -> Path:
    """Return home's file, or that of the nearest `.harness` which is not home."""
    if not local:
        return runtime.home / keys.FILE
    for directory in (runtime.cwd, *runtime.cwd.parents):
        source = directory / ".harness"
        if source.is_dir() and source != runtime.home:
            return source / keys.FILE
    raise UsageError("There is no .harness directory from here upwards.", "Make one, or leave out --local.")


def _keep_from_git(source: Path) -> None:
    """Let git ignore the credentials in a project's `source`. Raises RefusedError where that is a link."""
    if source.is_symlink():
        raise RefusedError(
            f"No key is kept in {source}: it is a symbolic link.",
            "Leave out --local to keep it in your home.",
        )
    ignore = source / ".gitignore"
    try:
        rules = own_files.read(os.fspath(ignore))
    except FileNotFoundError:
        rules = own_files.RULES
    # Behind all that is there: the last rule that fits counts.
    rule = f"\n/{keys.FILE}\n".encode()
    is_kept = rules == own_files.RULES or (b"\n" + rules).endswith(rule)
    if not is_kept or not ignore.exists():
        fs.write(ignore, rules if is_kept else rules.rstrip(b"\n") + rule, durable=False)
