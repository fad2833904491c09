"""A signal comes to what was said, once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from harness_lib.system.processes import signals


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {
        number: signal.getsignal(number) for number in (signals.INTERRUPT, signals.END, signals.HANG_UP)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_second_signal_does_not_break_what_the_first_one_set_off() -> None:
    signals.raise_once(signals.END, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        signals.send(os.getpid(), signals.END)
    signals.send(os.getpid(), signals.END)


def test_inside_signals_are_noted_and_nothing_else() -> None:
    noted: list[int] = []
    with signals.noted(noted.append):
        os.kill(os.getpid(), signals.INTERRUPT)
        signals.send(os.getpid(), signals.END)
    assert noted == [signals.INTERRUPT, signals.END]


def test_who_ignores_that_the_terminal_is_closed_goes_on_doing_so() -> None:
    noted: list[int] = []
    signals.ignore(signals.HANG_UP)
    with signals.noted(noted.append):
        os.kill(os.getpid(), signals.HANG_UP)
    assert noted == []
    signals.raise_once(signals.HANG_UP, KeyboardInterrupt)
    os.kill(os.getpid(), signals.HANG_UP)
