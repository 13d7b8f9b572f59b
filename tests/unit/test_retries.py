"""Check when an attempt is retried, after which wait, and which error ends it."""

import random
from collections.abc import Callable

import pytest
from keyhop.retries import repeat


def failing(times: int) -> Callable[[], str]:
    """Return an attempt that fails so many times, each time with another error."""
    numbers = iter(range(times))

    def attempt() -> str:
        for number in numbers:
            raise ValueError(number)
        return "done"

    return attempt


def test_the_longest_wait_doubles_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: (low, high))
    waits: list[object] = []
    result = repeat(failing(5), lambda error: True, first=0.5, longest=3.0, sleep=waits.append)
    assert result == "done"
    assert waits == [(0.0, 0.5), (0.0, 1.0), (0.0, 2.0), (0.0, 3.0), (0.0, 3.0)]


def test_a_first_wait_above_the_limit_is_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    waits: list[float] = []
    repeat(failing(2), lambda error: True, first=9.0, longest=3.0, sleep=waits.append)
    assert waits == [3.0, 3.0]


@pytest.mark.parametrize(
    ("may_help", "enough", "last"), [(lambda e: e.args[0] < 2, 99, 2), (lambda e: True, 4, 3)]
)
def test_the_last_error_is_raised_unchanged(
    may_help: Callable[[BaseException], bool], enough: int, last: int
) -> None:
    failed: list[BaseException] = []
    with pytest.raises(ValueError, match=f"^{last}$") as caught:
        repeat(
            failing(10),
            may_help,
            failed=failed.append,
            is_enough=lambda error, number: number == enough,
            sleep=lambda seconds: None,
        )
    assert [error.args[0] for error in failed] == list(range(last))
    assert caught.value.__cause__ is None


def test_an_error_of_the_callback_ends_the_attempts() -> None:
    def failed(error: BaseException) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        repeat(failing(2), lambda error: True, failed=failed, sleep=lambda seconds: None)


def test_thousands_of_attempts_have_finite_waits() -> None:
    repeat(failing(3_000), lambda error: True, first=1.0, longest=2.0, sleep=lambda seconds: None)
