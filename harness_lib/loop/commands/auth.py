"""`hs auth`: credentials of providers, kept in a source's `.auth.json` that only its owner can read."""

from __future__ import annotations

from pathlib import Path

from harness_lib.errors import ConfigError, EnvSetupError, UsageError
from harness_lib.loop import pipeline
from harness_lib.loop.commands.base import Builtin
from harness_lib.loop.failures import HookError
from harness_lib.loop.names import is_name
from harness_lib.loop.piped import Json, as_object
from harness_lib.loop.providers import keys
from harness_lib.loop.runtime import Runtime
from harness_lib.system import atomic

_USAGE = "hs auth set PROVIDER [--local] | list [PROVIDER] | rm PROVIDER INDEX [--local]"
_SHORT = 8
_SHOWN = 4


def _auth(runtime: Runtime, args: list[str]) -> int:
    local = "--local" in args
    words = [word for word in args if word != "--local"]
    if words[:1] == ["set"] and len(words) == 2 and is_name(words[1]):  # noqa: PLR2004 (set PROVIDER)
        return _set(runtime, words[1], _file(runtime, local=local))
    if words[:1] == ["rm"] and len(words) == 3 and words[2].isdigit():  # noqa: PLR2004 (rm PROVIDER INDEX)
        return _remove(words[1], int(words[2]), _file(runtime, local=local))
    if (words or ["list"])[0] == "list" and len(words) <= 2 and not local:  # noqa: PLR2004 (list PROVIDER)
        return _list(runtime, words[1:])
    raise UsageError(f"hs auth does not understand: {' '.join(args)}.", f"Usage: {_USAGE}")


def _set(runtime: Runtime, provider: str, path: Path) -> int:
    runtime.env["HARNESS_AUTH_PROVIDER"] = provider
    try:
        found = as_object(pipeline.call(runtime, "auth-set", {})) or {}
    except HookError as failure:
        raise EnvSetupError(f"No credential for {provider}: {failure}.") from failure
    if not found.get("type"):
        raise EnvSetupError(f"No credential for {provider}: the stage auth-set gave none with a type.")
    _write(path, {**_stored(path), provider: [found]})
    return 0


def _remove(provider: str, index: int, path: Path) -> int:
    stored = _stored(path)
    entries = stored.get(provider)
    if isinstance(entries, list) and index < len(entries):
        left = entries[:index] + entries[index + 1 :]
        _write(
            path, {**stored, provider: left} if left else {k: v for k, v in stored.items() if k != provider}
        )
    return 0


def _list(runtime: Runtime, only: list[str]) -> int:
    for provider, entries in sorted(keys.merged(runtime).items()):
        if only and provider not in only:
            continue
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict):
                print(f"{provider} [{index}] type={entry.get('type', '')} key={_shown(entry)}")
    return 0


def _shown(entry: Json) -> str:
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


def _stored(path: Path) -> Json:
    """Return the credentials in `path`. Raises ConfigError for a broken file: it would be overwritten."""
    if not path.exists():
        return {}
    found = as_object(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise ConfigError(f"{path} is no JSON object.", "Repair it or move it away, then call again.")
    return found


def _write(path: Path, credentials: Json) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic.write(path, keys.render(credentials).encode(), mode=0o600)


COMMAND = Builtin(f"Keep credentials: {_USAGE}", _auth)
