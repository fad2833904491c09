"""The provider `anthropic`: the Messages API."""

from __future__ import annotations

from harness_lib.loop.failures import ProviderError
from harness_lib.loop.providers.hosted import Hosted, number
from harness_lib.loop.wires.endpoint import Endpoint, complete

_HOST = "https://api.anthropic.com/"
_VARIABLES = """\
ANTHROPIC_API_KEY      API key (required)
ANTHROPIC_API_URL      API endpoint (https://api.anthropic.com/v1/messages)
ANTHROPIC_API_VERSION  API version (2023-06-01)
ANTHROPIC_MAX_TOKENS   max response tokens (the model's)
"""


def _ready(env: dict[str, str]) -> bool:
    return bool(env.get("ANTHROPIC_API_KEY"))


def _endpoint(env: dict[str, str], stored: str) -> Endpoint:
    url = complete(env.get("ANTHROPIC_API_URL") or f"{_HOST}v1/messages", "/v1/messages")
    return Endpoint(
        provider="anthropic",
        wire="anthropic",
        url=url,
        model="",
        max_tokens=number(env, "ANTHROPIC_MAX_TOKENS"),
        headers=_headers(env, stored),
        # Hosts that only speak its language may refuse the fields of its cache.
        cached=url.startswith(_HOST) or env.get("ANTHROPIC_PROMPT_CACHE") == "1",
    )


def _headers(env: dict[str, str], stored: str) -> dict[str, str]:
    headers = {"anthropic-version": env.get("ANTHROPIC_API_VERSION") or "2023-06-01"}
    if env.get("ANTHROPIC_BETA"):
        headers["anthropic-beta"] = env["ANTHROPIC_BETA"]
    name, separator, value = env.get("ANTHROPIC_AUTH_HEADER", "").partition(":")
    if separator:
        return {**headers, name.strip(): value.strip()}
    key = (env.get("ANTHROPIC_API_KEY") or stored).strip()
    if not key:
        raise ProviderError("ANTHROPIC_API_KEY is not set. Set it, or run: hs auth set anthropic")
    return {**headers, "x-api-key": key}


PROVIDER = Hosted(
    name="anthropic",
    description="Anthropic Messages API",
    default_model="claude-sonnet-4-6",
    variables=_VARIABLES,
    is_ready=_ready,
    endpoint=_endpoint,
)
