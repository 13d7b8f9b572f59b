"""Retries: tenacity, configured in one place."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 20.0
DEFAULT_PATIENCE_SECONDS = 300.0
"""How long to retry while every request fails."""


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
    try:
        return attempt()  # it nearly always succeeds, and a policy takes time to make
    except Exception as error:
        if not may_help(error):
            raise
        failures = [error]
    # Imported late, so that commands start faster. Most of them never need it.
    from tenacity import Retrying, retry_if_exception, wait_random_exponential

    def next_attempt() -> T:
        if failures:
            raise failures.pop()  # the failure above counts as the first attempt
        return attempt()

    policy = Retrying(
        retry=retry_if_exception(may_help),
        wait=wait_random_exponential(first, longest),
        stop=lambda state: is_enough(_failure(state), state.attempt_number),
        before_sleep=lambda state: failed(_failure(state)),
        sleep=sleep,
        reraise=True,
    )
    return policy(next_attempt)


def _failure(state: Any) -> BaseException:
    error: BaseException | None = state.outcome.exception() if state.outcome else None
    assert error is not None
    return error
