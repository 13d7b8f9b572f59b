"""What explorers share: all worlds that can be reached, each looked at once."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

W = TypeVar("W", bound=Hashable)

MOST_WORLDS = 5_000_000
"""Of one scenario: more are a scenario to be made smaller."""


class Numbers:
    """A number for each value, and back: so that worlds are small, and equal quickly."""

    def __init__(self) -> None:
        self.of: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def __call__(self, value: Hashable) -> int:
        number = self.of.get(value)
        if number is None:
            number = self.of[value] = len(self.values)
            self.values.append(value)
        return number


def explored(
    first: W,
    nexts: Callable[[W], Iterable[W]],
    is_right: Callable[[W], bool],
    most: int = MOST_WORLDS,
) -> tuple[int, W | None]:
    """How many worlds there are, and one that is wrong; None if none is."""
    seen = {first}
    waiting = [first]
    while waiting:
        here = waiting.pop()
        if not is_right(here):
            return len(seen), here
        for there in nexts(here):
            if there not in seen:
                seen.add(there)
                waiting.append(there)
        assert len(seen) <= most
    return len(seen), None


def with_more(values: tuple[int, ...], more: int) -> tuple[int, ...]:
    """Sorted, as what is alike has no order."""
    return tuple(sorted((*values, more)))
