"""What goes from plugin to plugin: JSON objects between built-in hooks, text to and from programs, failures.

What is a mistake in the command, a session that is held, or a missing provider is in `harness_lib.errors`.
"""

from __future__ import annotations

import json
import math
from typing import Any

from harness_lib.errors import Exit, HarnessError

Json = dict[str, Any]
Piped = Json | str
# Characters of what a hook has printed that is no JSON object.
_SHOWN = 500


def as_object(piped: Piped) -> Json | None:
    """Return the JSON object; None if it is not one, also for NaN and Infinity, which no host reads."""
    if isinstance(piped, dict):
        return piped
    value = parse_object(piped, _STRICT)
    return value if value is None or "\\u" not in piped else writable(value)


def parse_object(text: str, decoder: json.JSONDecoder | None = None) -> Json | None:
    """Return the JSON object in `text`, or None; half surrogate pairs stay as they are, for `writable`."""
    try:
        value = (decoder or _LENIENT).decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def are_objects(value: object) -> bool:
    """Return whether `value` is a list of objects."""
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        message = f"{text} is no number of JSON"
        raise ValueError(message)
    return float(text)


_LENIENT = json.JSONDecoder()
_STRICT = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)


def writable(value: Json) -> Json:
    """Return `value` so that UTF-8 can encode it: join halves of surrogate pairs, replace single ones."""
    if "\\ud" not in json.dumps(value):
        return value
    return dict(json.loads(dumps(value)))


def as_text(piped: Piped) -> str:
    """Return the text without the line breaks at its end."""
    return piped.rstrip("\n") if isinstance(piped, str) else dumps(piped)


def dumps(value: object) -> str:
    """Return compact JSON in the order of the keys, as foreign readers of `.stream` compare it.

    Models write halves of surrogate pairs, which UTF-8 cannot encode: they are replaced.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class HookError(Exception):
    """A hook of a stage failed: `result` is what it printed, and the input of the stage `error`.

    `line` names the hook, its stage and the failure.
    """

    line = ""

    def __init__(self, message: str, result: Piped | None = None) -> None:
        super().__init__(message)
        self.result: Piped = {"error": message} if result is None else result

    @property
    def reason(self) -> Json:
        """What the stage `error` reads: the object that the hook has printed, with an error in any case."""
        printed = as_object(self.result)
        said = "" if printed else as_text(self.result)[:_SHOWN]
        return {"error": ": ".join(filter(None, (self.line, said))), **(printed or {})}


class GarbageError(HookError):
    """A foreign hook printed something other than a JSON object; the message names the hook."""


class HookFailedError(HarnessError):
    """A hook failed before the turn began."""

    exit_code = Exit.CHECK_FAILED


class ProviderError(HookError):
    """A provider gave no answer: the message has its status, its message, and what to do."""


class TransientError(ProviderError):
    """The request may succeed later; `after` is the pause in seconds, None if the host named none."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class UnauthorizedError(ProviderError):
    """The host refuses the key or the token of the request."""


class ContextError(ProviderError):
    """The request was longer than the model's context."""
