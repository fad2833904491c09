"""The providers that hs asks itself, and the limits and prices of their models.

A host is named by an environment or a provider config (a `.conf` file), and spoken to by an API adapter. A
source's `models.conf` has a line for each beginning of a model's name, because no host tells it.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast, get_args
from urllib.parse import urlsplit

from harness_lib.loop import context, disk, keys, trust
from harness_lib.loop.piped import ProviderError
from harness_lib.loop.runtime import Runtime, once
from harness_lib.loop.wires.answer import Endpoint, Speaker, WireName, complete

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.plugins import Provider
    from harness_lib.loop.runtime import Plugin
    from harness_lib.loop.wires.answer import Answer


WIRES = get_args(WireName)
MODELS = "models.conf"
_MILLION = 1_000_000
# A limit that every model accepts.
_UNKNOWN_OUTPUT = 8192
# Of the context, the part that is left free; and tokens of an answer that are asked for anyway.
_MARGIN = 20
_LEAST_OUTPUT = 1024
# What HTTP takes as the name and the value of a header.
_HEADER = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+:[ -~]*"
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
    """A host of models that hs asks itself: a built-in provider, or one that a `.conf` describes.

    `values` are those of its `.conf` (docs/agent-loop.md lists them), `protocol` is the built-in provider
    whose API it speaks, and `key` the variable of its key.
    """

    name: str
    values: dict[str, str]
    protocol: Literal["anthropic", "openai"]
    description: str
    default_model: str
    variables: str
    key: str
    needs_key: bool
    # Variables each of which makes it ready.
    ready_by: tuple[str, ...]

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        return self.description

    def ready(self, runtime: Runtime) -> bool:
        """Return whether there is a key or a login for it; one whose `.conf` names neither needs none."""
        needs_nothing = self.values.get("url") and not (self.key or self.values.get("auth"))
        if needs_nothing or any(map(runtime.env.get, self.ready_by)):
            return True
        credential = keys.first(runtime, self.name)
        # A login is renewed when it is used.
        renews = self.values.get("auth") and credential.get("refresh_token")
        return bool(credential and (renews or not keys.is_due(credential)))

    def defaults(self, runtime: Runtime) -> dict[str, str]:  # noqa: ARG002
        return {"model": self.default_model}

    def environment_help(self, runtime: Runtime) -> str:  # noqa: ARG002
        return self.variables

    def speaker(self, runtime: Runtime) -> Speaker:
        """Return how this run's messages are written; no key and no login is needed to assemble them."""
        named = self.values.get("wire", "")
        if named not in {"", *WIRES}:
            raise ProviderError(f"Unknown wire={named}; hs speaks responses and chat.")
        wire: WireName = "anthropic"
        if self.protocol == "openai":
            is_responses = urlsplit(self._url(runtime)).path.rstrip("/").endswith("/responses")
            wire = "responses" if is_responses else "chat"
        return Speaker(cast("WireName", named) or wire, self.name, runtime.model or self.default_model)

    def at(self, runtime: Runtime) -> Endpoint:
        """Return where requests of this run go. Raises ProviderError without the key that is needed."""
        speaker, values = self.speaker(runtime), self.values
        login = None
        if values.get("auth"):
            keys.check_login(self)
            keys.login_of(runtime, self)
            login = partial(keys.login_headers, runtime, self)
        # A line `header.NAME=VALUE` is a header of every request; their names have no case.
        mine = (key for key in values if key.startswith("header."))
        own = {key.removeprefix("header.").lower(): values[key] for key in mine}
        headers = {**self._headers(runtime), **own}
        if values and not values.get("url"):
            # Without this, its key would go to the host of the protocol.
            raise ProviderError(f"The provider {self.name} has no url= in its .conf file.")
        # Checked here: later code would print the key, and ask again.
        wrong = (name for name, value in headers.items() if not re.fullmatch(_HEADER, f"{name}:{value}"))
        if (name := next(wrong, None)) is not None:
            what = f"line header.{name} of" if name in own else "key for"
            raise ProviderError(f"The {what} {self.name} holds a character that no header can carry.")
        name = f"{self.protocol.upper()}_MAX_TOKENS"
        limit = values.get("max_tokens", "") if values else runtime.env.get(name, "")
        most = disk.number(limit)
        if limit and not most:
            named = f"max_tokens of {self.name}" if values else name
            raise ProviderError(f"{named} must be a number of tokens, not {limit}")
        model = model_of(runtime, speaker.model)
        most = most or model.output or _UNKNOWN_OUTPUT
        if model.context:
            # Hosts refuse more than fits into the context.
            room = model.context - model.context // _MARGIN - context.tokens(runtime.session.messages())
            most = min(most, max(room, _LEAST_OUTPUT))
        url, thinking = self._url(runtime), runtime.env.get("HARNESS_THINKING", "")
        return Endpoint(
            **speaker._asdict(),
            url=url,
            headers=headers,
            login=login,
            conf=values,
            max_tokens=most,
            effort={"off": "", "max": "max" if speaker.wire == "anthropic" else "high"}.get(
                thinking, thinking
            ),
            # Hosts that only speak the language of Anthropic may refuse the fields of its cache.
            cached=url.startswith(_ANTHROPIC_HOST) or runtime.env.get("ANTHROPIC_PROMPT_CACHE") == "1",
            session=runtime.session.id,
        )

    def _url(self, runtime: Runtime) -> str:
        values = self.values
        # The environment says where a built-in provider is.
        url = values.get("url", "") if values else runtime.env.get(f"{self.protocol.upper()}_API_URL", "")
        if self.protocol == "anthropic":
            return complete(url or _ANTHROPIC_HOST, "/v1/messages")
        url = url or _OPENAI_HOST
        return complete(url, "/v1/responses" if url.startswith(_OPENAI_HOST) else "/v1/chat/completions")

    def _headers(self, runtime: Runtime) -> dict[str, str]:
        """Return the headers with the key. Raises ProviderError without one where it is needed."""
        env, headers = runtime.env, {}
        if self.protocol == "anthropic":
            headers["anthropic-version"] = env.get("ANTHROPIC_API_VERSION") or "2023-06-01"
            if env.get("ANTHROPIC_BETA"):
                headers["anthropic-beta"] = env["ANTHROPIC_BETA"]
            own = "" if self.values else env.get("ANTHROPIC_AUTH_HEADER", "")
            name, separator, value = own.partition(":")
            if separator:
                return {**headers, name.strip(): value.strip()}
        if self.values.get("auth"):
            # The header of its login comes with each request, and no key is needed beside it.
            return headers
        stored = keys.secret(keys.first(runtime, self.name))
        key = (env.get(self.key, "") or stored).strip()
        if not key and self.needs_key:
            raise ProviderError(f"{self.key} is not set. Set it, or run: hs auth set {self.name}")
        if not key:
            return headers
        name, sent = (
            ("x-api-key", key) if self.protocol == "anthropic" else ("authorization", f"Bearer {key}")
        )
        return {**headers, name: sent}

    def ask(self, runtime: Runtime, payload: Json, *, quiet: bool = False) -> Json:
        from harness_lib.loop.wires import http  # noqa: PLC0415 (its package takes long to import)

        return http.ask(runtime, self.at(runtime), payload, quiet=quiet)


ANTHROPIC = Hosted(
    "anthropic",
    {},
    "anthropic",
    description="Anthropic Messages API",
    default_model="claude-sonnet-4-6",
    variables=_ANTHROPIC_VARIABLES,
    key="ANTHROPIC_API_KEY",
    needs_key=True,
    ready_by=("ANTHROPIC_API_KEY",),
)
OPENAI = Hosted(
    "openai",
    {},
    "openai",
    description="OpenAI Responses, and chat completions of compatible servers",
    default_model="gpt-4o",
    variables=_OPENAI_VARIABLES,
    key="OPENAI_API_KEY",
    needs_key=False,
    ready_by=("OPENAI_API_KEY", "OPENAI_API_URL"),
)
_HOSTED: dict[str, Hosted] = {provider.protocol: provider for provider in (ANTHROPIC, OPENAI)}


def with_own_api(runtime: Runtime) -> Plugin | None:
    """Return the run's provider where it is a program or `claude`; None for one that hs asks itself."""
    plugin = runtime.table.find("providers", protocol_of(runtime, runtime.provider))
    return None if plugin and plugin.is_ours and plugin.name in _HOSTED else plugin


def host(runtime: Runtime) -> Hosted:
    """Return the host of the run's provider. Raises ProviderError where hs does not ask it itself."""
    config = find_config(runtime, runtime.provider)
    if config and config.values.get("protocol") in _HOSTED:
        return config
    if runtime.provider in _HOSTED:
        return _HOSTED[runtime.provider]
    plugin = with_own_api(runtime)
    if not plugin and config:
        known = " or ".join(sorted(_HOSTED))
        raise ProviderError(f"{runtime.provider}.conf has no protocol= of {known}.")
    if not plugin:
        raise ProviderError(f"There is no provider {runtime.provider}; hs help lists them.")
    if plugin.is_ours:
        raise ProviderError(f"{runtime.provider} keeps the conversation itself.")
    raise ProviderError(
        f"The provider {runtime.provider} speaks a language of its own: "
        "it needs the hooks assemble/10-messages and receive/10-save beside it."
    )


@once
def find_config(runtime: Runtime, name: str) -> Hosted | None:
    """Return the provider that the most local `.conf` of that name describes; a program goes before it.

    It is that of its protocol, with other words, key and model.
    """
    if not disk.is_name(name) or runtime.table.find("providers", name):
        return None
    files = (Path(source, "providers", f"{name}.conf") for source in reversed(trust.usable(runtime)))
    path = next((each for each in files if each.is_file()), None)
    if not path:
        return None
    values = disk.read_conf(path)
    key = values.get("auth_env", "")
    variables = f"{key}  API key" if key else "(no key)"
    if values.get("auth"):
        variables = f"(a login: hs auth login {name})"
    protocol = _HOSTED.get(values.get("protocol", ""), OPENAI)
    return protocol._replace(
        name=name,
        values=values,
        description=values.get("description", ""),
        default_model=values.get("model") or protocol.default_model,
        variables=variables,
        key=key,
        needs_key=bool(key and not values.get("auth")),
        ready_by=(key,) if key else (),
    )


def protocol_of(runtime: Runtime, provider: str) -> str:
    """Return the protocol of `provider`: that of its config, or its own name."""
    config = find_config(runtime, provider)
    return config.values.get("protocol", "") if config else provider


def find_provider(runtime: Runtime, name: str) -> Provider | None:
    """Return the provider `name`: built-in, a program, or a `.conf`; None if there is none."""
    plugin = runtime.table.find("providers", name)
    return cast("Provider", plugin.target) if plugin else find_config(runtime, name)


class Model(NamedTuple):
    """A model's limits in tokens, 0 where unknown, and its prices in US dollars per million."""

    context: int = 0
    output: int = 0
    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None
    price_write: float | None = None

    def spent(self, answer: Answer) -> dict[str, str]:
        """Return the cost of an answer as the field of a message; none without a price or counted tokens."""
        if self.price_in is None or self.price_out is None or not answer.tokens_in:
            return {}
        cached = self.price_in if self.price_cached is None else self.price_cached
        written = self.price_in if self.price_write is None else self.price_write
        plain = max(0, answer.tokens_in - answer.tokens_cached - answer.tokens_cache_write)
        spent = plain * self.price_in + answer.tokens_cached * cached + answer.tokens_cache_write * written
        return {"cost": f"{(spent + answer.tokens_out * self.price_out) / _MILLION:.6f}"}


@once
def model_of(runtime: Runtime, name: str = "") -> Model:
    """Return the run's model, or the model `name` of its provider.

    The longest beginning of its name counts, of equal ones the most local, and before all of them what the
    provider's own `.conf` says of its model.
    """
    model = name or runtime.model
    lines: dict[str, dict[str, str]] = {}
    for source in trust.usable(runtime):
        for prefix, said in by_prefix(source).items():
            lines[prefix] = {**lines.get(prefix, {}), **said}
    longest = max((prefix for prefix in lines if model.startswith(prefix)), key=len, default="")
    config = find_config(runtime, runtime.provider)
    own = config.values if config and config.values.get("model") == model else {}
    values = {**lines.get(longest, {}), **own}
    limits, prices = Model._fields[:2], Model._fields[2:]
    return Model(
        *(disk.number(values.get(key, "")) for key in limits),
        *(context.amount(values.get(key, "")) for key in prices),
    )


def by_prefix(source: str) -> dict[str, dict[str, str]]:
    """Return what the `models.conf` of `source` says of models, by the prefixes of their names."""
    found: dict[str, dict[str, str]] = {}
    for line in disk.read_text(Path(source, MODELS)).splitlines():
        prefix, *pairs = line.split() or [""]
        if prefix and not prefix.startswith("#"):
            found[prefix] = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    return found
