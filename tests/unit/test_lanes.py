"""Threads of a slice that come and go: no page is lost, none is read twice."""

import random
from collections import Counter
from collections.abc import Sequence
from threading import Event

import pytest
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.jobs.journal import Checkpoint
from keyhop.jobs.worker import Slice
from keyhop.scan.in_flight import InFlight
from keyhop.scan.skip_scan import PageResult, Position

SEGMENTS, PAGES = 60, 20


class Wavering(InFlight):
    """Wants another number of lanes after each page."""

    chance: random.Random

    def look(self, now: float) -> int:
        self.wanted = self.chance.randint(1, 16)
        return self.lanes


class Numbered:
    """Pages of one key: its segment, and its number."""

    def __init__(self, seed: int) -> None:
        self.usage = Usage()
        self.stop = Event()
        self.in_flight = Wavering()
        self.in_flight.chance = random.Random(seed)
        self.under_way: Counter[int] = Counter()
        self.most = 0

    def go_on(self, learnt: object) -> None: ...

    def learnt(self) -> dict[str, object]:
        return {}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        self.under_way[segment] += 1
        assert self.under_way[segment] == 1
        self.most = max(self.most, self.under_way.total())
        page = int(position.start["n"]["N"]) if position.start else 0
        following = {"n": {"N": str(page + 1)}}
        self.under_way[segment] -= 1
        key = {"pk": {"S": f"{segment}-{page}"}}
        return PageResult([key], Position(following) if page + 1 < PAGES else None)


class Found:
    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        self.keys.update(str(key["pk"]["S"]) for key in keys)
        return len(keys)


@pytest.mark.parametrize("seed", range(5))
def test_lanes_that_come_and_go_lose_no_page(seed: int) -> None:
    """Over slices that end at any moment, too."""
    found, order, checkpoint = Found(), iter(range(SEGMENTS)), Checkpoint()
    pages = Numbered(seed)
    while not checkpoint.is_end(SEGMENTS):
        slice_ = Slice(pages, order, checkpoint, found.write)
        checkpoint = slice_.work(16, 0.02)
        assert slice_.error is None
    expected = {f"{segment}-{page}": 1 for segment in range(SEGMENTS) for page in range(PAGES)}
    assert found.keys == expected
    assert pages.most <= 16


def test_a_thread_that_is_one_too_many_puts_its_segment_back() -> None:
    pages, found = Numbered(0), Found()
    pages.in_flight.look = lambda now: 1  # type: ignore[method-assign]
    slice_ = Slice(pages, iter(range(SEGMENTS)), Checkpoint(), found.write)
    checkpoint = slice_.work(16, float("inf"))
    assert checkpoint.is_end(SEGMENTS)
    assert (slice_.ended, slice_.keys) == (SEGMENTS, SEGMENTS * PAGES)
