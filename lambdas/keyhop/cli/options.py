"""Numbers on the command line; each parser raises ArgumentTypeError with one sentence."""

import argparse
from collections.abc import Callable

LEAST_RATE = 0.01
"""One page of 0.5 read units every 50 seconds."""


def whole(least: int, most: int) -> Callable[[str], int]:
    """A parser of whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {least:,} to {most:,}"
            )
        return number

    return parse


def positive(text: str) -> float:
    """A number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def rate(text: str) -> float:
    """A rate of at least LEAST_RATE units a second."""
    found = positive(text)
    if found < LEAST_RATE:
        raise argparse.ArgumentTypeError(f"{text!r} is less than {LEAST_RATE:g} units a second")
    return found


def share(text: str) -> float:
    """A share above 0, up to 1."""
    found = positive(text)
    if found > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0 and up to 1")
    return found
