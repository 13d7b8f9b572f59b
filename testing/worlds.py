"""The search that all explorers share: it visits each reachable world once."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import takewhile
from typing import Any, TypeVar

W = TypeVar("W", bound=Hashable)

MOST_WORLDS = 5_000_000
"""The maximum for one scenario; a scenario with more should be made smaller."""


class Numbers:
    """A two-way map of values to numbers, which make worlds small and quick to compare."""

    def __init__(self) -> None:
        self.of: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def __call__(self, value: Hashable) -> int:
        number = self.of.get(value)
        if number is None:
            number = self.of[value] = len(self.values)
            self.values.append(value)
        return number


def reachable(
    first: W, nexts: Callable[[W], Iterable[W]], maximum: int = MOST_WORLDS
) -> Iterator[W]:
    """Yield each world that is reachable from the first one, once. nexts: those a step away."""
    visited, waiting = {first}, [first]
    while waiting:
        world = waiting.pop()
        yield world
        for neighbour in nexts(world):
            if neighbour not in visited:
                visited.add(neighbour)
                waiting.append(neighbour)
        assert len(visited) <= maximum, "the scenario is too large"


def explored(
    first: W, nexts: Callable[[W], Iterable[W]], is_right: Callable[[W], bool]
) -> tuple[int, W | None]:
    """Return the number of worlds that were visited, and one that is wrong, or None."""
    for count, world in enumerate(reachable(first, nexts), 1):
        if not is_right(world):
            return count, world
    return count, None


def with_broken(
    first: W, steps: Callable[[W], Iterable[tuple[Any, bool]]], maximum: int
) -> tuple[int, list[Any]]:
    """Return the number of worlds, and some that break a promise, which are not explored further.

    steps: yields each world a step away, and whether it keeps all promises. Instead of a world that
    breaks one, it may yield a text.
    """
    broken: list[Any] = []

    def nexts(world: W) -> Iterator[W]:
        for neighbour, is_right in steps(world):
            if is_right:
                yield neighbour
            else:
                broken.append(neighbour)

    some = takewhile(lambda _: len(broken) < 20, reachable(first, nexts, maximum))
    return sum(1 for _ in some), broken


def with_more(values: tuple[int, ...], more: int) -> tuple[int, ...]:
    """Return the values with one more; they are sorted, because their order has no meaning."""
    return tuple(sorted((*values, more)))
