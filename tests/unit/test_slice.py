"""Check the threads of a slice: they lose no page, and a stop does not wait for an answer."""

import os
import random
import signal
from collections import Counter
from collections.abc import Sequence
from threading import Event

import pytest
from keyhop.cli.session import stop_on_signals
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.jobs.journal import Checkpoint
from keyhop.jobs.worker import Slice
from keyhop.scan.in_flight import InFlight
from keyhop.scan.skip_scan import BEGINNING, PageResult, Position

SEGMENTS, PAGES = 60, 20


class Source:
    """The common part of the sources of a slice; each has its own `step`."""

    def __init__(self, in_flight: InFlight | None = None) -> None:
        self.usage = Usage()
        self.stop = Event()
        self.in_flight = in_flight or InFlight()

    def go_on(self, learnt: object) -> None: ...

    def learnt(self) -> dict[str, object]:
        return {}


class Wavering(InFlight):
    """A limit that wants another number of lanes after each page."""

    chance: random.Random

    def look(self, now: float) -> int:
        self.wanted = self.chance.randint(1, 16)
        return self.lanes


class Numbered(Source):
    """Pages with one key each, made of the segment and the number of the page."""

    def __init__(self, seed: int) -> None:
        super().__init__(Wavering())
        self.in_flight.chance = random.Random(seed)
        self.in_flight_pages: Counter[int] = Counter()
        self.maximum = 0

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        self.in_flight_pages[segment] += 1
        assert self.in_flight_pages[segment] == 1
        self.maximum = max(self.maximum, self.in_flight_pages.total())
        page = int(position.start["n"]["N"]) if position.start else 0
        following = {"n": {"N": str(page + 1)}}
        self.in_flight_pages[segment] -= 1
        key = {"pk": {"S": f"{segment}-{page}"}}
        return PageResult([key], Position(following) if page + 1 < PAGES else None)


class Sink:
    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        self.keys.update(str(key["pk"]["S"]) for key in keys)
        return len(keys)


@pytest.mark.parametrize("seed", range(5))
def test_lanes_that_come_and_go_lose_no_page(seed: int) -> None:
    """The slices end at any moment, too."""
    sink, order, checkpoint = Sink(), iter(range(SEGMENTS)), Checkpoint()
    pages = Numbered(seed)
    while not checkpoint.is_end(SEGMENTS):
        slice_ = Slice(pages, order, checkpoint, sink.write)
        checkpoint = slice_.work(16, 0.02)
        assert slice_.error is None
    expected = {f"{segment}-{page}": 1 for segment in range(SEGMENTS) for page in range(PAGES)}
    assert sink.keys == expected
    assert pages.maximum <= 16


def test_a_surplus_thread_returns_its_segment() -> None:
    pages = Numbered(0)
    pages.in_flight.look = lambda now: 1  # type: ignore[method-assign]
    slice_ = Slice(pages, iter(range(SEGMENTS)), Checkpoint(), Sink().write)
    checkpoint = slice_.work(16, float("inf"))
    assert checkpoint.is_end(SEGMENTS)
    assert (slice_.ended, slice_.keys) == (SEGMENTS, SEGMENTS * PAGES)


class Unanswered(Source):
    """Pages of which the first is answered, and the others when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits, self.released, self.ended = Event(), Event(), Event()

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        if position == BEGINNING:
            return PageResult([KEY], Position(KEY))
        self.waits.set()
        assert self.released.wait(60)
        self.ended.set()
        return PageResult([{"pk": {"S": "late"}}], None)


KEY: Key = {"pk": {"S": "a"}}


def test_a_stopped_slice_ignores_answers_that_arrive_later() -> None:
    pages, sink = Unanswered(), Sink()
    slice_ = Slice(pages, iter(range(1)), Checkpoint(), sink.write, last_seconds=0.0)

    def stop() -> None:
        if pages.waits.is_set():
            pages.stop.set()

    checkpoint = slice_.work(1, float("inf"), idle=stop)
    assert not pages.released.is_set(), "the slice waited for the answer"
    assert checkpoint.open == {0: Position(KEY)}
    pages.released.set()
    assert pages.ended.wait(60)
    assert (sink.keys, slice_.keys, slice_.ended) == ({"a": 1}, 1, 0)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_process_after_its_patience(number: signal.Signals, status: int) -> None:
    statuses: list[int] = []
    over = Event()

    def end(with_status: int) -> None:
        statuses.append(with_status)
        over.set()

    with stop_on_signals(patience=0.01, end=end) as stop:
        os.kill(os.getpid(), number)
        assert stop.event.wait(60)
        assert over.wait(60)
    assert statuses == [status]


def test_a_second_signal_ends_at_once() -> None:
    statuses: list[int] = []
    with stop_on_signals(patience=3600, end=statuses.append):
        os.kill(os.getpid(), signal.SIGINT)
        assert statuses == []
        os.kill(os.getpid(), signal.SIGINT)
        assert statuses == [130]
