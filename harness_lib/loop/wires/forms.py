"""One form sent to an authorization server, and its answer."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2

from harness_lib.loop.failures import ProviderError, TransientError
from harness_lib.loop.piped import Json, as_object
from harness_lib.loop.wires import http

_SECONDS = 30.0
_LONGEST = 1024 * 1024


def post(url: str, fields: Mapping[str, str]) -> tuple[int, Json]:
    """Return the status, and the JSON object of the answer, empty where it has none.

    Raises TransientError where the server cannot be reached, ProviderError for an address that is none, and
    what `http.client` raises.
    """
    try:
        with http.client(url, httpx2.Timeout(_SECONDS)) as client:
            response = client.post(url, data=dict(fields), headers={"accept": "application/json"})
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
        raise ProviderError(f"The address of the authorization server is none: {url}.") from error
    except httpx2.TransportError as error:
        why = str(error) or type(error).__name__
        raise TransientError(f"The authorization server at {url} cannot be reached: {why}") from error
    return response.status_code, as_object(response.text[:_LONGEST]) or {}
