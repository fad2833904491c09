"""What a tool must not see: the variables that hold the keys of providers, in use or not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import disk, trust
from harness_lib.loop.processes import answer_to_flag
from harness_lib.loop.providers import models
from harness_lib.system.processes import environment

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

# Names by commas that a person lets through, for tests that need a key; subagents are told of them, too.
KEPT = "HARNESS_KEEP_ENV"
_WELL_KNOWN = frozenset(
    (
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_HEADER", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
        *("AWS_BEARER_TOKEN_BEDROCK", "AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "CEREBRAS_API_KEY"),
        *("CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "COHERE_API_KEY", "COPILOT_GITHUB_TOKEN"),
        *("CURSOR_API_KEY", "DASHSCOPE_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY"),
        *("GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "KIMI_API_KEY", "LLAMA_API_KEY"),
        *(
            "MISTRAL_API_KEY",
            "MOONSHOT_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "PERPLEXITY_API_KEY",
        ),
        *("TOGETHER_API_KEY", "XAI_API_KEY", "ZAI_API_KEY", "ZAI_AUTH_TOKEN", "ZHIPU_API_KEY"),
    )
)
# A program's `--env` has a line for each of its variables; most of them are no secret.
_NAMED = re.compile(
    r"^\s*([A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|AUTH|CREDENTIAL)[A-Z0-9_]*)", re.MULTILINE
)


def names(runtime: Runtime) -> set[str]:
    """Return the variables that hold keys, of every provider that is known: packs not in use, too."""
    found = set(_WELL_KNOWN)
    for source in dict.fromkeys([*runtime.unscoped, *runtime.sources]):
        if trust.is_usable(runtime, source):
            files = (Path(source, "providers", f"{name}.conf") for name in models.variants_in(source))
            found |= {disk.read_conf(file).get("auth_env", "") for file in files}
            found |= _of_programs(runtime, source)
    return found


def without(runtime: Runtime, env: dict[str, str]) -> dict[str, str]:
    """Return `env` without the credentials of any provider that is known here."""
    kept = {name.strip() for name in runtime.env.get(KEPT, "").split(",")}
    hidden = names(runtime) - kept
    return {name: value for name, value in env.items() if name not in hidden}


def hide(runtime: Runtime) -> None:
    """Let no tool read the keys in the environment that this process was started with."""
    environment.blank(names(runtime))


def _of_programs(runtime: Runtime, source: str) -> set[str]:
    """Return what the programs in `source` say of themselves, each asked once."""
    directory = str(Path(source, "providers"))
    programs = [name for name in disk.programs(directory) if not name.endswith(".conf")]
    said: dict[str, str] = runtime.kept.setdefault("variables of programs", {})
    for path in (str(Path(directory, name)) for name in programs):
        if path not in said:
            said[path] = answer_to_flag(path, "--env", runtime.variables(), runtime.cwd) or ""
    return {
        name for path, text in said.items() if path.startswith(directory) for name in _NAMED.findall(text)
    }
