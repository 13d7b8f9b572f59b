"""A slice: threads work the segments of a group until the slice is over.

The threads share one reader, one ledger and one sink. All bookkeeping of a page, its keys going out
and its segment moving on, is done in one step under one lock; so whenever the threads have ended,
the keys that went out and the checkpoint agree, whatever made them end.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Protocol

from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import Key
from keyhop.jobs.layout import Method
from keyhop.jobs.model import Checkpoint
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import BEGINNING, Page, Position, advance


class Sink(Protocol):
    """Where keys go."""

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Take in keys of a segment; returns how many were new. Never called by two at once."""


@dataclass(slots=True)
class Work:
    """What a slice works on: a group's segments, from a checkpoint.

    order: the segments of the group that have not been begun, in its order. visit: gets each page
    before it counts, and the event that ends the slice; returns the page with the keys that count.
    """

    method: Method
    segments: int
    order: Iterator[int]
    checkpoint: Checkpoint
    visit: Callable[[Page, Event], Page] = lambda page, over: page


@dataclass(slots=True)
class Outcome:
    """What a slice came to.

    error: what ended it, None if its time was over or its work done. cut_short: it was told to end.
    """

    keys: int
    ended: int
    checkpoint: Checkpoint
    error: BaseException | None = None
    cut_short: bool = False


class Slice:
    """One slice; `work` runs it. Its counters may be read by another thread while it runs."""

    def __init__(
        self,
        work: Work,
        reader: PageReader,
        ledger: Ledger,
        sink: Sink,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.keys = 0
        self.ended = 0
        self._work = work
        self._reader = reader
        self._ledger = ledger
        self._sink = sink
        self._clock = clock
        self._hop = work.method == "skip"
        self._waiting = list(work.checkpoint.open.items())
        self._open: dict[int, Position] = dict(work.checkpoint.open)
        self._place = work.checkpoint.place
        self._over = Event()
        self._error: BaseException | None = None
        self._lock = Lock()

    def work(
        self, threads: int, seconds: float | None, idle: Callable[[], None] = lambda: None
    ) -> Outcome:
        """Work with `threads` threads for about `seconds`, None for as long as there is work.

        idle: called a few times a second meanwhile, on the calling thread.
        """
        deadline = None if seconds is None else self._clock() + seconds
        running = [Thread(target=self._run, daemon=True) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            while thread.is_alive():
                thread.join(0.1)
                idle()
                if deadline is not None and self._clock() >= deadline:
                    self._over.set()
        checkpoint = Checkpoint(self._place, dict(self._open), self._ledger.to_json())
        cut_short = self._over.is_set() or self._reader.stop.is_set()
        return Outcome(self.keys, self.ended, checkpoint, self._error, cut_short)

    def _run(self) -> None:
        try:
            while (task := self._take()) is not None:
                self._walk(*task)
        except Stopped:
            self._over.set()
        except BaseException as error:  # handed to the calling thread, whatever it is
            with self._lock:
                self._error = self._error or error
            self._over.set()

    def _take(self) -> tuple[int, Position] | None:
        with self._lock:
            if self._over.is_set() or self._reader.stop.is_set():
                return None
            if self._waiting:
                return self._waiting.pop()
            segment = next(self._work.order, None)
            if segment is None:
                return None
            self._place += 1
            self._open[segment] = BEGINNING
            return segment, BEGINNING

    def _walk(self, segment: int, position: Position) -> None:
        following: Position | None = position
        while following is not None and not self._over.is_set():
            following = self._page(segment, following)

    def _page(self, segment: int, position: Position) -> Position | None:
        page = self._read_hopping(segment, position) if self._hop else self._read(segment, position)
        page = self._work.visit(page, self._over)
        step = advance(self._reader.source.space, position, page, self._hop)
        if step.no_progress:
            self._reader.usage.count(no_progress=1)
        with self._lock:
            if step.keys:
                self.keys += self._sink.write(segment, step.keys)
            if step.position is None:
                del self._open[segment]
                self.ended += 1
            else:
                self._open[segment] = step.position
        return step.position

    def _read_hopping(self, segment: int, position: Position) -> Page:
        with self._lock:
            bet = self._ledger.bet()
            limit, units = self._reader.affordable(bet.limit, self._ledger.size)
            if self._reader.source.pairs and limit is not None:
                limit = max(2, limit)
        try:
            page = self._read_page(segment, position, limit, units)
        except BaseException:
            with self._lock:
                self._ledger.abandon(bet)
            raise
        if self._reader.source.pairs:
            page = page.without_a_first_item(self._reader.source.space)
        with self._lock:
            self._ledger.settle(bet, page.runs, page.blocks)
        return page

    def _read(self, segment: int, position: Position) -> Page:
        with self._lock:
            limit, units = self._reader.affordable(None, self._ledger.size)
        page = self._read_page(segment, position, limit, units)
        with self._lock:
            self._ledger.size.learn(sum(page.runs), page.blocks)
        return page

    def _read_page(self, segment: int, position: Position, limit: int | None, units: float) -> Page:
        segments = self._work.segments
        return self._reader.read(segment, segments, position.start, limit, units, self._over)
