"""A request over HTTP and its answer, over whichever API, or an error that says what to do.

What streams in goes to the session's events. What may pass is asked again: with the pause that the host asks
for, or growing ones, and not for ever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from random import random
from time import sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from harness_lib.loop.piped import (
    ContextError,
    Json,
    ProviderError,
    TransientError,
    UnauthorizedError,
    are_objects,
    as_object,
    dumps,
    parse_object,
    writable,
)
from harness_lib.loop.session import Stream
from harness_lib.loop.wires.answer import END, TOO_LARGE, adapter, broken_off, is_overflow, may_pass, shown
from harness_lib.text import sentence

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime
    from harness_lib.loop.wires.answer import Endpoint

ATTEMPTS = 6
LONGEST_PAUSE = 60.0
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 300.0
EVENT_LIMIT = 64 * 1024 * 1024
# The longest answers of any model are a small part of it.
ANSWER_LIMIT = 256 * 1024 * 1024
_REFUSED = (
    "Where a field is refused, a line in the provider's .conf may give it another name or leave it out "
    "(max_tokens_field, reasoning_field, stream_options, wire); otherwise try another model (--model)."
)
_NO_CREDIT = "Add credit with the provider, or check its plan."
# OpenAI says so with 429, as of a limit that passes by itself, and Anthropic with 400, as of a wrong field.
_OF_CREDIT = ("insufficient_quota", "credit balance is too low")
_ADVICE = {
    400: _REFUSED,
    422: _REFUSED,
    402: _NO_CREDIT,
    403: "Check the key and what it may use.",
    407: "Check the user and the password of the proxy (HTTP_PROXY, ALL_PROXY).",
}
_SHOWN = 500
# Characters of a key that is one.
_SHORTEST = 6
NO_PROXY = (
    "The proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used: "
    "hs speaks with HTTP proxies only. "
    "Name one of those, or unset the variable; NO_PROXY lists hosts that are asked without."
)
# Errors that a proxy may be the cause of.
_OF_PROXIES = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
NO_CERTIFICATES = (
    "The certificates of this machine cannot be read: {error}. "
    "Check that SSL_CERT_FILE and SSL_CERT_DIR point to existing files, or unset them."
)
NOT_TRUSTED = (
    "The certificate of the {who} at {url} is not trusted: {why}. "
    "If it is your own, name the file of its authority in SSL_CERT_FILE."
)
_FORM_SECONDS = 30.0


def ask(runtime: Runtime, endpoint: Endpoint, payload: Json, *, quiet: bool = False) -> Json:
    """Return the whole native answer to `payload`; `quiet`: it is not streamed. Raises ProviderError.

    After a TransientError the host is asked again, and the user told; the last one is raised.
    """
    for key in ("messages", "tools"):
        if not are_objects(payload.get(key) or []):
            # A hook has made it.
            message = f"The stage assemble ended with {key} that are not a list of objects."
            raise ProviderError(f"{message} See hs hooks assemble.")
    # A hook may have chosen another model.
    endpoint = endpoint._replace(model=str(payload.get("model") or endpoint.model))
    body = {**adapter(endpoint.wire).body(payload, endpoint), "stream": True}
    for again in range(1, ATTEMPTS):
        try:
            return _authorized(runtime, endpoint, body, quiet=quiet)
        except TransientError as error:
            # Clients that were refused together must not come back together.
            pause = 2.0 ** (again - 1) + random() if error.after is None else error.after  # noqa: S311
            # Do not wait for hours.
            if pause > LONGEST_PAUSE:
                raise
            said = f"{error} Asking again in {pause:.0f} s ({again} of {ATTEMPTS - 1})."
        runtime.log(f"hs: {said}")
        runtime.stream.emit("retry", message=said)
        sleep(pause)
    return _authorized(runtime, endpoint, body, quiet=quiet)


def _authorized(runtime: Runtime, endpoint: Endpoint, body: Json, *, quiet: bool) -> Json:
    """Ask with the headers of a login, and once more with renewed ones where those are refused."""
    login, refused = endpoint.login, ""
    while True:
        headers = login(endpoint.headers, refused) if login else endpoint.headers
        try:
            return _once(runtime, endpoint._replace(headers=headers), body, quiet=quiet)
        except UnauthorizedError as error:
            if not login or refused:
                advice = f"Log in again: hs auth login {endpoint.provider}" if login else "Check the key."
                raise ProviderError(f"{error} {advice}") from error
        refused = headers["authorization"]


def _once(runtime: Runtime, endpoint: Endpoint, body: Json, *, quiet: bool) -> Json:
    """Ask, and show what comes in; the text of an answer that fails is kept in the session."""
    reader, stream = adapter(endpoint.wire).Reader(), Stream() if quiet else runtime.stream
    texts: list[str] = []
    held = ""
    try:
        for data in events(runtime.kept, endpoint.url, endpoint.headers, body):
            if isinstance(data, dict):
                return writable(data)
            is_end = data.strip() == "[DONE]"
            event = END if is_end else parse_object(data)
            for shown in reader.feed(event) if event else ():
                values = shown.values
                if shown.kind == "text":
                    held, values = _without_half(held, values["text"])
                    texts.append(values["text"])
                stream.emit(shown.kind, **writable(values))
            if is_end:
                break
        native = reader.native()
        if native is None:
            raise TransientError("The provider's answer was cut off.")
    except ProviderError as error:
        # What breaks behind the end of an answer does not take it back.
        native = reader.native() if isinstance(error, TransientError) else None
        if native is None:
            if not quiet and (text := "".join(texts)):
                # No engine replays a message of this role.
                fields = {"model": endpoint.model, "provider": endpoint.provider, "stop": "error"}
                runtime.session.append("error", {**fields, "error": str(error)}, text)
            raise
    return writable(native)


def _without_half(held: str, text: str) -> tuple[str, Json]:
    """Return the half of a surrogate pair that `text` ends with, or "", and what can be shown by now."""
    text = held + text
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return half, writable({"text": text.removesuffix(half)})


def events(kept: dict[str, Any], url: str, headers: Mapping[str, str], body: Json) -> Iterator[str | Json]:
    """Post `body`; yield the data of each event, or the whole answer where the host does not stream.

    Raises TransientError for what may pass, ProviderError for what does not.
    """
    with (
        _failures("provider", url),
        _client(kept, url).sse(
            url,
            method="POST",
            content=dumps(body).encode(),
            headers={**headers, "content-type": "application/json"},
            max_event_size=EVENT_LIMIT,
        ) as source,
    ):
        response = source.response
        if response.status_code != httpx2.codes.OK:
            raise _refused(response, headers)
        kind = response.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() == "application/json":
            yield _whole(response)
            return
        # Events are always UTF-8, and a byte order mark before them is no part of the first.
        response.encoding = "utf-8-sig"
        for event in source:
            yield event.data


@contextmanager
def _failures(who: str, url: str) -> Iterator[None]:
    """Turn an error of the package about `url`, the address of `who`, into one of ours."""
    try:
        yield
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
        raise ProviderError(f"Invalid {who} URL: {shown(url)} ({error}).") from error
    except httpx2.SSEError as error:
        raise ProviderError(f"The {who} at {shown(url)} sent no stream of events: {error}") from error
    except (httpx2.TransportError, httpx2.DecodingError) as error:
        why = (str(error) or type(error).__name__).rstrip(".")
        if "CERTIFICATE_VERIFY_FAILED" in why:
            raise ProviderError(NOT_TRUSTED.format(who=who, url=shown(url), why=why)) from error
        if isinstance(error, httpx2.ReadTimeout):
            why = f"it said nothing for {error.request.extensions['timeout']['read']:.0f} seconds"
        elif isinstance(error, _OF_PROXIES) and (proxy := _proxy(url)):
            why += f", by way of the proxy {shown(proxy)}"
        # A proxy that refuses says its status.
        lasts = isinstance(error, httpx2.ProxyError) and why.startswith("4")
        kind = ProviderError if lasts else TransientError
        raise kind(f"The {who} at {shown(url)} cannot be reached: {why}.") from error


def _proxy(url: str) -> str:
    """Return the proxy that the environment names for `url`; "" for none."""
    address, proxies = urlsplit(url), getproxies()
    named = proxies.get(address.scheme) or proxies.get("all", "")
    return "" if proxy_bypass(address.hostname or "") else named


def forget(kept: dict[str, Any]) -> None:
    """Close the run's connections to hosts: a request that was interrupted may have left one half read."""
    clients: dict[Any, Any] = kept.get("clients", {})
    for key in [key for key, client in clients.items() if isinstance(client, httpx2.Client)]:
        clients.pop(key).close()


def _client(kept: dict[str, Any], url: str) -> httpx2.Client:
    """Return the client in `kept` for such addresses: connections stay open from one request to the next.

    It follows no redirect, which would carry the key to wherever it leads.
    Raises ProviderError for a proxy or certificates that cannot be used.
    """
    clients: dict[Any, httpx2.Client] = kept.setdefault("clients", {})
    # A connection without TLS needs no certificates, and loading them takes as long as a whole request. A
    # proxy that cannot be used concerns no host that is asked without one.
    key = secure, by_proxy = not url.startswith("http://"), bool(_proxy(url))
    if key not in clients:
        try:
            clients[key] = httpx2.Client(
                timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
                follow_redirects=False,
                verify=httpx2.create_ssl_context() if secure else False,
                trust_env=by_proxy,
                event_hooks={"response": [_bound]},
            )
        except OSError as error:
            raise ProviderError(NO_CERTIFICATES.format(error=error.strerror or error)) from error
        except (ImportError, ValueError) as error:
            raise ProviderError(NO_PROXY) from error
    return clients[key]


def _bound(response: httpx2.Response) -> None:
    """Limit what is read of `response`, counted as it is unpacked; comments between events count, too."""
    unbound = response.iter_bytes

    def iter_bytes(chunk_size: int | None = None) -> Iterator[bytes]:
        size = 0
        for chunk in unbound(chunk_size):
            size += len(chunk)
            if size > ANSWER_LIMIT:
                problem = f"The provider sent more than {ANSWER_LIMIT} bytes without an end; hs hung up."
                raise ProviderError(problem)
            yield chunk

    response.iter_bytes = iter_bytes  # type: ignore[method-assign]


def _read(response: httpx2.Response) -> str:
    return response.read().decode("utf-8", "replace")


def _whole(response: httpx2.Response) -> Json:
    answer = parse_object(_read(response))
    if answer is None:
        raise ProviderError("The provider's answer is not a JSON object.")
    if answer.get("error"):
        raise broken_off(answer["error"])
    return answer


def _refused(response: httpx2.Response, headers: Mapping[str, str]) -> ProviderError:
    """Return the error for an answer with another status than 200, and what the user can do about it."""
    status, text = response.status_code, _read(response)
    # Gemini puts it into a list.
    body = as_object(text.strip("[]\n "))
    reason = _message(body) if body else " ".join(text.split())[:_SHOWN]
    said = sentence(_without_secrets(reason, headers)) if reason else "(nothing)"
    message = f"The provider answered {status}: {said}"
    if status == httpx2.codes.UNAUTHORIZED:
        return UnauthorizedError(message)
    if status != httpx2.codes.TOO_MANY_REQUESTS and is_overflow(text, status):
        return ContextError(f"{message} The request is too large." if status == TOO_LARGE else message)
    lacks_credit = any(words in text for words in _OF_CREDIT)
    if may_pass(status) and not lacks_credit:
        after = _retry_after(response.headers.get("retry-after", ""))
        # The caller has to know how long to wait.
        return TransientError(f"{message} Retry after {after:.0f} s." if after else message, after)
    advice = _NO_CREDIT if lacks_credit else _ADVICE.get(status, "")
    if response.is_redirect and (where := response.headers.get("location", "")):
        advice = f"It redirects to {where}; name that address if it is the right one."
    elif status in {httpx2.codes.NOT_FOUND, httpx2.codes.METHOD_NOT_ALLOWED}:
        advice = f"Check the address and the model. The request went to {shown(str(response.url))}."
    return ProviderError(f"{message} {advice}".rstrip())


def _without_secrets(text: str, headers: Mapping[str, str]) -> str:
    """Return `text` of a host without the key, which it may repeat; a short one is any word, as `x`."""
    for name, value in headers.items():
        secret = value.rpartition(" ")[2]
        if len(secret) >= _SHORTEST and ("auth" in name.lower() or "key" in name.lower()):
            text = text.replace(secret, "***")
    return text


def _message(body: Json) -> str:
    error = body.get("error", body)
    reason = error.get("message") if isinstance(error, dict) else error
    return str(reason or dumps(body))[:_SHOWN]


def _retry_after(text: str) -> float | None:
    """Return the seconds that a header `Retry-After` asks for; it may be a number or a date."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
    # Where the clock here is fast, the date is past; and without a pause, all attempts are over at once.
    return seconds if 0 < seconds < math.inf else None


def post_form(url: str, fields: Mapping[str, str]) -> tuple[int, Json]:
    """Return the status, and the JSON object of the answer, empty where it has none.

    Raises TransientError where the server cannot be reached, ProviderError where it never can be.
    """
    with _failures("authorization server", url), _client({}, url) as client:
        accepted = {"accept": "application/json"}
        response = client.post(url, data=dict(fields), headers=accepted, timeout=_FORM_SECONDS)
    return response.status_code, as_object(response.text) or {}
