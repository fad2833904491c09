"""The ways in which a plugin or a provider can fail.

What is a mistake in the command, a session that is held, or a missing provider is in `harness_lib.errors`.
"""

from __future__ import annotations

from harness_lib.errors import Exit, HarnessError
from harness_lib.loop.piped import Json, Piped, as_object, as_text
from harness_lib.text import sentence

# Characters of what a hook has printed that is no JSON object.
_SHOWN = 500


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
        """What the stage `error` reads: the object that the hook has printed, else what happened to it."""
        printed = as_text(self.result)[:_SHOWN]
        return as_object(self.result) or {"error": ": ".join(filter(None, (self.line, printed)))}


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


class Interrupted(BaseException):
    """The user or the system wants this process to end.

    `printed` is what the tool that was running had printed until then.
    """

    printed = ""


def one_line(error: HarnessError) -> str:
    """Return the message and the hint of `error` in one line."""
    return f"{sentence(error.message)} {error.hint}" if error.hint else error.message
