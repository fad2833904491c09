"""Credentials that `hs auth` has stored, and the variables with keys that no tool must see.

There is one list per provider in a source's `.auth.json`. These files are changed by one process at a time,
as whole files, for their owner alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness_lib.errors import ConfigError, EnvSetupError
from harness_lib.loop import disk, processes, trust
from harness_lib.loop.piped import HookError, Json, as_object
from harness_lib.loop.runtime import Runtime, once
from harness_lib.system import flock, fs
from harness_lib.system.processes import environment
from harness_lib.text import words_of

FILE = ".auth.json"
_LOCK = ".auth.lock"


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
    stored = merged(runtime).get(provider)
    entry = stored[0] if isinstance(stored, list) and stored else {}
    return entry if isinstance(entry, dict) else {}


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


def where(runtime: Runtime, provider: str) -> Path:
    """Return the file whose credentials of `provider` are used; home's where there are none."""
    for source in reversed(trust.usable(runtime)):
        path = Path(source, FILE)
        if provider in disk.read_object(path):
            return path
    return runtime.home / FILE


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


def replace_first(runtime: Runtime, path: Path, provider: str, credential: Json) -> None:
    """Replace the first credential of `provider`; a source that is trusted stays trusted."""
    source = str(path.parent)
    credentials = stored(path)
    entries = credentials.get(provider)
    others = entries[1:] if isinstance(entries, list) else []
    write(path, {**credentials, provider: [credential, *others]})
    if trust.project_of_source(runtime, source):
        # It was used, so it was trusted; the user need not review what hs has written itself.
        trust.save(runtime, [source])


def write(path: Path, credentials: Json) -> None:
    """Replace the file `path`."""
    disk.write(path, render(credentials).encode(), durable=True)


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
