"""The built-in providers: a host is named by an environment or a config, and spoken to by an API adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast, get_args
from urllib.parse import urlsplit

from harness_lib.loop import disk
from harness_lib.loop.failures import ProviderError
from harness_lib.loop.providers import keys, models
from harness_lib.loop.providers.models import ProviderConfig
from harness_lib.loop.wires import exchange
from harness_lib.loop.wires.answer import Endpoint, Speaker, WireName, complete

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lib.loop.piped import Json
    from harness_lib.loop.plugins import Provider
    from harness_lib.loop.providers.tokens import Login
    from harness_lib.loop.runtime import Plugin, Runtime


WIRES = get_args(WireName)
# A limit that every model accepts.
_UNKNOWN_OUTPUT = 8192
_ANTHROPIC_HOST = "https://api.anthropic.com/"
_ANTHROPIC_VARIABLES = """\
ANTHROPIC_API_KEY      API key (required)
ANTHROPIC_API_URL      API endpoint (https://api.anthropic.com/v1/messages)
ANTHROPIC_API_VERSION  API version (2023-06-01)
ANTHROPIC_MAX_TOKENS   max response tokens (the model's)
"""
_OPENAI_HOST = "https://api.openai.com/"
_OPENAI_VARIABLES = """\
OPENAI_API_KEY      API key (required for OpenAI, optional for local servers)
OPENAI_API_URL      API endpoint (https://api.openai.com/v1/responses; elsewhere chat completions)
OPENAI_MAX_TOKENS   max response tokens (the model's)
"""


class Hosted(NamedTuple):
    """A built-in provider, or a config of one. `endpoint` makes the address from an environment and a key."""

    name: str
    description: str
    default_model: str
    variables: str
    # Variables each of which makes it ready.
    ready_by: tuple[str, ...]
    endpoint: Callable[[dict[str, str], str], Endpoint]
    config: ProviderConfig | None = None

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        return self.description

    def ready(self, runtime: Runtime) -> bool:
        """Return whether there is a key or a login for it."""
        if any(map(runtime.env.get, self.ready_by)):
            return True
        credential = keys.first(runtime, self.config.name if self.config else self.name)
        # A login is renewed when it is used.
        may_renew = self.config and self.config.values.get("auth") and credential.get("refresh_token")
        return keys.is_fresh(credential) or bool(may_renew)

    def defaults(self, runtime: Runtime) -> dict[str, str]:  # noqa: ARG002
        return {"model": self.default_model}

    def environment_help(self, runtime: Runtime) -> str:  # noqa: ARG002
        return self.variables

    def speaker(self, runtime: Runtime) -> Speaker:
        """Return how this run's messages are written; no key and no login is needed to assemble them."""
        values = self.config.values if self.config else {}
        named = values.get("wire", "")
        if named not in {"", *WIRES}:
            raise ProviderError(f"Unknown wire={named}; hs speaks responses and chat.")
        url = {f"{self.name.upper()}_API_URL": values.get("url", "")} if self.config else {}
        wire = cast("WireName", named) or self.endpoint({**runtime.env, **url}, "(no key)").wire
        provider = self.config.name if self.config else self.name
        model = runtime.model or self.default_model or _HOSTED[self.name].default_model
        return Speaker(wire, provider, model)

    def at(self, runtime: Runtime) -> Endpoint:
        """Return where requests of this run go. Raises ProviderError without the key that is needed."""
        config = self.config
        login = _login(runtime, config) if config and config.values.get("auth") else None
        env = _environment(runtime, self.name, config, login) if config else runtime.env
        speaker, values = self.speaker(runtime), config.values if config else {}
        endpoint = self.endpoint(env, keys.secret(keys.first(runtime, speaker.provider)))
        headers = {**endpoint.headers, **(config.headers if config else {})}
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            # Checked here: later code would print the key.
            raise ProviderError(f"The key for {runtime.provider} holds a character that no header can carry.")
        return endpoint._replace(
            login=login,
            headers=headers,
            **speaker._asdict(),
            max_tokens_field=values.get("max_tokens_field", ""),
            reasoning_field=values.get("reasoning_field", ""),
            max_tokens=endpoint.max_tokens or models.of(runtime, speaker.model).output or _UNKNOWN_OUTPUT,
            effort=effort(env),
            session=runtime.session.id if runtime.session else "",
        )

    def ask(self, runtime: Runtime, payload: Json) -> Json:
        plugin = with_own_api(runtime)
        if plugin is None:
            return exchange.ask(runtime, host(runtime).at(runtime), payload)
        return cast("Json", plugin.target.ask(runtime, payload))


def effort(env: dict[str, str]) -> str:
    """Return the effort of reasoning that was asked for; "" for none."""
    thinking = env.get("HARNESS_THINKING", "")
    return "" if thinking == "off" else thinking


def number(env: dict[str, str], name: str) -> int:
    """Return the whole number in the variable `name`; 0 if it is unset. Raises ProviderError."""
    text = env.get(name, "")
    tokens = disk.number(text)
    if text and not tokens:
        raise ProviderError(f"{name} must be a number of tokens, not {text}")
    return tokens


def _login(runtime: Runtime, config: ProviderConfig) -> Login:
    """Return the login of a provider config. Raises ProviderError where the user is not logged in."""
    # Imported here: only a login needs it.
    from harness_lib.loop.providers import tokens  # noqa: PLC0415

    login = tokens.Login(runtime, tokens.client_of(config))
    login.check()
    return login


def _environment(
    runtime: Runtime, protocol: str, config: ProviderConfig, login: Login | None
) -> dict[str, str]:
    """Return the environment of a provider config: that of its protocol with other values."""
    prefix = protocol.upper()
    values = config.values
    key = runtime.env.get(config.auth_env, "") if config.auth_env else ""
    key = key or keys.secret(keys.first(runtime, config.name))
    if config.auth_env and not key and login is None:
        raise ProviderError(f"{config.auth_env} is not set. Set it, or run: hs auth set {config.name}")
    if not values.get("url"):
        # Without this, its key would go to the host of the protocol.
        raise ProviderError(f"The provider {config.name} has no url= in its .conf file.")
    changed = {
        f"{prefix}_API_URL": values["url"],
        f"{prefix}_MAX_TOKENS": values.get("max_tokens", ""),
        f"{prefix}_API_KEY": key,
        # The login replaces it at each request.
        f"{prefix}_AUTH_HEADER": "authorization: (login)" if login else "",
    }
    return {**runtime.env, **changed}


def _anthropic_endpoint(env: dict[str, str], stored: str) -> Endpoint:
    url = complete(env.get("ANTHROPIC_API_URL") or f"{_ANTHROPIC_HOST}v1/messages", "/v1/messages")
    return Endpoint(
        provider="anthropic",
        wire="anthropic",
        url=url,
        model="",
        max_tokens=number(env, "ANTHROPIC_MAX_TOKENS"),
        headers=_anthropic_headers(env, stored),
        # Hosts that only speak its language may refuse the fields of its cache.
        cached=url.startswith(_ANTHROPIC_HOST) or env.get("ANTHROPIC_PROMPT_CACHE") == "1",
    )


def _anthropic_headers(env: dict[str, str], stored: str) -> dict[str, str]:
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


ANTHROPIC = Hosted(
    name="anthropic",
    description="Anthropic Messages API",
    default_model="claude-sonnet-4-6",
    variables=_ANTHROPIC_VARIABLES,
    ready_by=("ANTHROPIC_API_KEY",),
    endpoint=_anthropic_endpoint,
)


def _openai_endpoint(env: dict[str, str], stored: str) -> Endpoint:
    named = env.get("OPENAI_API_URL") or f"{_OPENAI_HOST}v1/responses"
    url = complete(named, "/v1/responses" if named.startswith(_OPENAI_HOST) else "/v1/chat/completions")
    key = (env.get("OPENAI_API_KEY") or stored).strip()
    return Endpoint(
        provider="openai",
        wire="responses" if urlsplit(url).path.rstrip("/").endswith("/responses") else "chat",
        url=url,
        model="",
        max_tokens=number(env, "OPENAI_MAX_TOKENS"),
        headers={"authorization": f"Bearer {key}"} if key else {},
    )


OPENAI = Hosted(
    name="openai",
    description="OpenAI Responses, and chat completions of compatible servers",
    default_model="gpt-4o",
    variables=_OPENAI_VARIABLES,
    ready_by=("OPENAI_API_KEY", "OPENAI_API_URL"),
    endpoint=_openai_endpoint,
)


_HOSTED: dict[str, Hosted] = {provider.name: provider for provider in (ANTHROPIC, OPENAI)}


def with_own_api(runtime: Runtime) -> Plugin | None:
    """Return the run's provider where it is a program or `claude`; None for one that hs asks itself."""
    plugin = runtime.table.find("providers", models.protocol_of(runtime, runtime.provider))
    return None if plugin and plugin.is_ours and plugin.name in _HOSTED else plugin


def host(runtime: Runtime) -> Hosted:
    """Return the host of the run's provider. Raises ProviderError where hs does not ask it itself."""
    config = models.find_config(runtime, runtime.provider)
    if config is not None and config.protocol in _HOSTED:
        return _described(config)
    if runtime.provider in _HOSTED:
        return _HOSTED[runtime.provider]
    plugin = with_own_api(runtime)
    if plugin is None:
        raise ProviderError(f"There is no provider {runtime.provider}; hs help lists them.")
    if plugin.is_ours:
        raise ProviderError(f"{runtime.provider} keeps the conversation itself.")
    raise ProviderError(
        f"The provider {runtime.provider} speaks a language of its own: "
        "it needs the hooks assemble/10-messages and receive/10-save beside it."
    )


def _described(config: ProviderConfig) -> Hosted:
    """Return the provider of `config`: that of its protocol, with other words, key and model."""
    variables = f"{config.auth_env}  API key" if config.auth_env else "(no key)"
    if config.values.get("auth"):
        variables = f"(a login: hs auth login {config.name})"
    return _HOSTED.get(config.protocol, OPENAI)._replace(
        description=config.values.get("description", ""),
        default_model=config.values.get("model", ""),
        variables=variables,
        ready_by=(config.auth_env,) if config.auth_env else (),
        config=config,
    )


def find_provider(runtime: Runtime, name: str) -> Provider | None:
    """Return the provider `name`: built-in, a program, or a `.conf`; None if there is none."""
    plugin = runtime.table.find("providers", name)
    if plugin is not None:
        return cast("Provider", plugin.target)
    config = models.find_config(runtime, name)
    return _described(config) if config else None
