"""Ask again what may pass: with the pause that the host asks for, or growing ones, and not for ever."""

from __future__ import annotations

from collections.abc import Callable

from harness_lib.loop.failures import TransientError
from harness_lib.loop.piped import Json

ATTEMPTS = 6
LONGEST_PAUSE = 60.0


def until_answered(ask: Callable[[], Json], report: Callable[[str], None]) -> Json:
    """Return what `ask` returns; after a TransientError ask again, and tell. The last error is raised."""
    try:
        return ask()
    except TransientError as error:
        failed: TransientError | None = error
    # Imported here: most requests are answered, and it takes long to import.
    import stamina  # noqa: PLC0415
    from stamina.instrumentation import RetryDetails, set_on_retry_hooks  # noqa: PLC0415

    def show(details: RetryDetails) -> None:
        report(
            f"{details.caused_by} Asking again in {details.wait_for:.0f} s "
            f"({details.retry_num} of {ATTEMPTS - 1})."
        )

    set_on_retry_hooks([show])
    for attempt in stamina.retry_context(
        _pause, attempts=ATTEMPTS, timeout=None, wait_initial=1.0, wait_max=LONGEST_PAUSE
    ):
        with attempt:
            if failed is not None:
                first, failed = failed, None
                raise first
            return ask()
    raise AssertionError


def _pause(error: Exception) -> bool | float:
    if not isinstance(error, TransientError):
        return False
    if error.after is None:
        return True
    # A limit that lasts for hours is nothing to sit through here.
    return error.after if error.after <= LONGEST_PAUSE else False
