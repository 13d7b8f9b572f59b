"""Retries with growing random waits."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 20.0
DEFAULT_PATIENCE_SECONDS = 300.0
"""The default time of retries while every request fails."""


def repeat(
    attempt: Callable[[], T],
    may_help: Callable[[BaseException], bool],
    *,
    first: float = FIRST_SECONDS,
    longest: float = LONGEST_SECONDS,
    failed: Callable[[BaseException], None] = lambda error: None,
    is_enough: Callable[[BaseException, int], bool] = lambda error, attempts: False,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Call `attempt` until it succeeds, and return its result.

    The waits have full jitter: up to `first` seconds, and then up to twice as long each time, at
    most `longest`. The last error is raised unchanged.

    Args:
        may_help: Decides whether a retry can help after an error.
        failed: Is called with each error before the wait. An exception that it raises ends the
            attempts.
        is_enough: Decides by an error and its number, which begins with 1, whether to give up.
    """
    ceiling, attempts = min(first, longest), 0
    while True:
        attempts += 1
        try:
            return attempt()
        except Exception as error:
            if not may_help(error) or is_enough(error, attempts):
                raise
            failed(error)
        sleep(random.uniform(0.0, ceiling))
        ceiling = min(2 * ceiling, longest)
