"""The provider `openai`: Responses at the vendor's host, chat completions everywhere else."""

from __future__ import annotations

from urllib.parse import urlsplit

from harness_lib.loop.providers.hosted import Hosted, number
from harness_lib.loop.wires.endpoint import Endpoint, Wire, complete

_HOST = "https://api.openai.com/"
_VARIABLES = """\
OPENAI_API_KEY      API key (required for OpenAI, optional for local servers)
OPENAI_API_URL      API endpoint (https://api.openai.com/v1/responses; elsewhere chat completions)
OPENAI_MAX_TOKENS   max response tokens (the model's)
"""


def _ready(env: dict[str, str]) -> bool:
    return bool(env.get("OPENAI_API_KEY") or env.get("OPENAI_API_URL"))


def _endpoint(env: dict[str, str], stored: str) -> Endpoint:
    named = env.get("OPENAI_API_URL") or f"{_HOST}v1/responses"
    url = complete(named, "/v1/responses" if named.startswith(_HOST) else "/v1/chat/completions")
    key = (env.get("OPENAI_API_KEY") or stored).strip()
    return Endpoint(
        provider="openai",
        wire=_wire(url),
        url=url,
        model="",
        max_tokens=number(env, "OPENAI_MAX_TOKENS"),
        headers={"authorization": f"Bearer {key}"} if key else {},
    )


def _wire(url: str) -> Wire:
    return "responses" if urlsplit(url).path.rstrip("/").endswith("/responses") else "chat"


PROVIDER = Hosted(
    name="openai",
    description="OpenAI Responses, and chat completions of compatible servers",
    default_model="gpt-4o",
    variables=_VARIABLES,
    is_ready=_ready,
    endpoint=_endpoint,
)
