"""What explorers share: all worlds that can be reached, each looked at once."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import takewhile
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


def reachable(first: W, nexts: Callable[[W], Iterable[W]], most: int = MOST_WORLDS) -> Iterator[W]:
    """Return each world that can come of the first one, once. nexts: those that are a step away."""
    seen, waiting = {first}, [first]
    while waiting:
        here = waiting.pop()
        yield here
        for there in nexts(here):
            if there not in seen:
                seen.add(there)
                waiting.append(there)
        assert len(seen) <= most, "the scenario is too large"


def explored(
    first: W, nexts: Callable[[W], Iterable[W]], is_right: Callable[[W], bool]
) -> tuple[int, W | None]:
    """How many worlds there are, and one that is wrong; None if none is."""
    for count, world in enumerate(reachable(first, nexts), 1):
        if not is_right(world):
            return count, world
    return count, None


def with_broken(
    first: W, steps: Callable[[W], Iterable[tuple[Any, bool]]], most: int
) -> tuple[int, list[Any]]:
    """How many worlds there are, and some in which a promise is broken, from which nobody goes on.

    steps: the worlds that are a step away, and whether all promises are kept in them; for one in
    which one is broken, a text may stand.
    """
    broken: list[Any] = []

    def nexts(world: W) -> Iterator[W]:
        for there, is_right in steps(world):
            if is_right:
                yield there
            else:
                broken.append(there)

    some = takewhile(lambda _: len(broken) < 20, reachable(first, nexts, most))
    return sum(1 for _ in some), broken


def with_more(values: tuple[int, ...], more: int) -> tuple[int, ...]:
    """Sorted, as what is alike has no order."""
    return tuple(sorted((*values, more)))
