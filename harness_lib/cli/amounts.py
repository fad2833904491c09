"""Numbers as they are typed behind an option: what is no amount of anything is refused there."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError


def amount(text: str) -> float:
    """Return `text` as a number of 0 or more; argparse says what is wrong with any other."""
    number = _number(text)
    if not 0 <= number < math.inf:
        raise ArgumentTypeError(f"{text!r} is no number of 0 or more")
    return number


def whole(text: str) -> int:
    """Return `text` as a whole number of 0 or more."""
    number = amount(text)
    if number != int(number):
        raise ArgumentTypeError(f"{text!r} is no whole number")
    return int(number)


def more_than_nothing(text: str) -> float:
    """Return `text` as a number above 0."""
    number = amount(text)
    if number == 0:
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no number") from None
