"""Doing a thing again while that can help: tenacity, configured once."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 20.0
DEFAULT_PATIENCE_SECONDS = 300.0
"""For failures while nothing succeeds."""


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
    """What `attempt` returns; it is made again after failures of which `may_help` says so.

    Waits with full jitter: up to `first` seconds, then up to twice as long each time, at most
    `longest`. failed: called at each failure, before the wait; what it raises ends the attempts.
    is_enough: whether the failure of this number (1 is the first) is the last one to be borne.
    Raises the last failure as it is.
    """
    try:
        return attempt()  # nearly always all there is to it, and a policy takes time to make
    except Exception as error:
        if not may_help(error):
            raise
        failures = [error]
    # Only now: a command begins sooner, and most end, without it.
    from tenacity import Retrying, retry_if_exception, wait_random_exponential

    def again() -> T:
        if failures:
            raise failures.pop()  # the failure that brought us here counts as the first attempt
        return attempt()

    policy = Retrying(
        retry=retry_if_exception(may_help),
        wait=wait_random_exponential(first, longest),
        stop=lambda state: is_enough(_failure(state), state.attempt_number),
        before_sleep=lambda state: failed(_failure(state)),
        sleep=sleep,
        reraise=True,
    )
    return policy(again)


def _failure(state: Any) -> BaseException:
    error: BaseException | None = state.outcome.exception() if state.outcome else None
    assert error is not None
    return error
