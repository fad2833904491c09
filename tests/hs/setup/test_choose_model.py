"""Which provider a model is asked of, where only its name is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.hs.setup import choose_model
from harness_lib.loop import discovery
from harness_lib.loop.runtime import start

MANY = "protocol=openai\nmodel=many/one\nurl=http://127.0.0.1:9/v1/chat/completions\n"


@pytest.mark.parametrize(
    ("provider", "name", "meant"),
    [
        ("openai", "gpt-5", "openai/gpt-5"),
        ("openai", "claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("openai", "whatever", "openai/whatever"),
        ("openai", "anthropic/whatever", "anthropic/whatever"),
        ("openai", "groq/whatever", "groq/whatever"),
        ("openai", "big-one", "ours/big-one"),
        ("openai", "many/one", "many/many/one"),
        ("anthropic", "gpt-5", "openai/gpt-5"),
        ("anthropic", "glm-9", "anthropic/glm-9"),
        # A host of ours with models of those names keeps them.
        ("ours", "gpt-4o", "ours/gpt-4o"),
        ("ours", "claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("ours", "ours/claude-opus-4-5", "ours/claude-opus-4-5"),
        # Where models are called VENDOR/MODEL, the first part names no provider of ours.
        ("many", "anthropic/claude-opus-4-5", "many/anthropic/claude-opus-4-5"),
        ("many", "many/one", "many/many/one"),
    ],
)
def test_whose_a_model_is(home: Path, project: Path, provider: str, name: str, meant: str) -> None:
    providers = home / ".harness" / "providers"
    providers.mkdir(parents=True)
    (providers / "ours.conf").write_text(
        MANY.replace("many/one", "big-one") + "auth_env=OURS\n", encoding="utf-8"
    )
    (providers / "many.conf").write_text(MANY + "auth_env=OURS\n", encoding="utf-8")
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OURS": "k"}
    run = start({"HOME": str(home), **keys, "HARNESS_PROVIDER": provider, "HARNESS_MODEL": "m"}, project)
    discovery.refresh(run)

    assert str(choose_model.meant(run, name)) == meant


def test_a_model_stays_where_its_own_provider_is_not_ready(home: Path, project: Path) -> None:
    env = {"HOME": str(home), "OPENAI_API_KEY": "k", "HARNESS_PROVIDER": "openai", "HARNESS_MODEL": "m"}
    run = start(env, project)
    discovery.refresh(run)

    assert str(choose_model.meant(run, "claude-opus-4-5")) == "openai/claude-opus-4-5"
    assert not [name for name in choose_model.names(run) if name.startswith("claude")]
