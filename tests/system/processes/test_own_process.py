"""A signal comes to what was said, once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from harness_lib.system.processes import own_process


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {
        number: signal.getsignal(number)
        for number in (own_process.INTERRUPT, own_process.END, own_process.HANG_UP)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_second_signal_does_not_break_what_the_first_one_set_off() -> None:
    own_process.raise_once(own_process.END, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        own_process.send(os.getpid(), own_process.END)
    own_process.send(os.getpid(), own_process.END)


def test_inside_signals_are_noted_and_nothing_else() -> None:
    noted: list[int] = []
    with own_process.noted(noted.append):
        os.kill(os.getpid(), own_process.INTERRUPT)
        own_process.send(os.getpid(), own_process.END)
    assert noted == [own_process.INTERRUPT, own_process.END]


def test_who_ignores_that_the_terminal_is_closed_goes_on_doing_so() -> None:
    noted: list[int] = []
    own_process.ignore(own_process.HANG_UP)
    with own_process.noted(noted.append):
        os.kill(os.getpid(), own_process.HANG_UP)
    assert noted == []
    own_process.raise_once(own_process.HANG_UP, KeyboardInterrupt)
    os.kill(os.getpid(), own_process.HANG_UP)
