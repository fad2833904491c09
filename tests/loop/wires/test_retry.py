"""The pauses between two requests: as long as the host says, or growing by chance, and not for ever."""

from __future__ import annotations

import time

import pytest

from harness_lib.loop.failures import TransientError
from harness_lib.loop.piped import Json
from harness_lib.loop.wires import retry


class Host:
    """Fails as often as it is asked; of it is known how long was paused before each further request."""

    def __init__(self, after: float | None = None) -> None:
        self.after = after
        self.asked = 0
        self.pauses: list[float] = []
        self.notices: list[str] = []

    def ask(self) -> Json:
        self.asked += 1
        raise TransientError("overloaded", self.after)

    def fails(self, monkeypatch: pytest.MonkeyPatch) -> Host:
        monkeypatch.setattr(time, "sleep", self.pauses.append)
        with pytest.raises(TransientError, match="overloaded"):
            retry.until_answered(self.ask, self.notices.append)
        return self


def test_without_a_word_of_the_host_pauses_grow_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Host().fails(monkeypatch), Host().fails(monkeypatch)

    for host in (first, second):
        assert host.asked == 6
        assert len(host.pauses) == 5
        assert max(host.pauses) <= retry.LONGEST_PAUSE
        assert host.pauses[-1] > host.pauses[0]
    # Who was refused together must not come back together.
    assert first.pauses != second.pauses


def test_a_pause_that_the_host_names_is_kept_and_each_one_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(after=7.0).fails(monkeypatch)

    assert host.asked == 6
    assert all(pause >= host.after for pause in host.pauses if host.after)
    assert host.notices == [f"overloaded Asking again in 7 s ({number} of 5)." for number in range(1, 6)]
