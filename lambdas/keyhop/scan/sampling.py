"""A first look at a table: a few pages from its beginning, then a few random segments.

A small table is read whole by the first pages, one after the other, as the published way would. Of
a larger one, random segments tell how many keys there are: first a few pages of segments of very
different sizes, for the order of magnitude; for a plan, then as many segments with a few keys each
as the allowance pays for. ItemCount is never relied on to skip work: it can be six hours old.
"""

import math
import random
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock

from keyhop.dynamodb.capacity import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Key
from keyhop.errors import BudgetSpent
from keyhop.scan.cost_simulation import SeenCollection
from keyhop.scan.page_size import Ledger
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import MOST_SEGMENTS, SERIAL_REQUESTS, is_nearly_done
from keyhop.scan.skip_scan import BEGINNING, Page, Position, advance
from keyhop.scan.statistics import SegmentSample

OPENING_PAGES = 4
GROWTH = 4
SIZES = ((16,), (256, 4_096, 65_536), (MOST_SEGMENTS,))
"""Numbers of segments to try, those of a group at once."""

PAGES_PER_LOOK = 3

FILL = 0.85
"""Share of a block that a sampled page is to fill: items somewhat above the mean still fit."""

KEYS_PER_SAMPLE = 8
"""Keys that a sampled segment should hold: enough not to be empty, few enough to sample many."""

CAUTIOUS_PAGES = 32
"""So many pages are read one after another, before several at once may surprise together."""

SURPRISE_MARGIN = 1.5
MOST_SAMPLES = 2_000
THREADS = 8


@dataclass(frozen=True, slots=True)
class Opening:
    """The first pages of a table, read as one segment.

    position: where they end; None if that is the end of the table. cut_short: a budget ended them.
    """

    keys: Sequence[Key]
    position: Position | None
    cut_short: bool = False

    @property
    def is_enough(self) -> bool:
        """Whether to go on from here as one segment: there is nothing left, or nobody to pay."""
        return self.position is None or self.cut_short


class Survey:
    """Looks at one table, spending at most `allowance` read units.

    What a page will cost is only known afterwards, so each is reckoned to surprise by half as much
    again as any so far; only one that surprises more than that can exceed the allowance.
    """

    def __init__(
        self, reader: PageReader, ledger: Ledger, allowance: float, chance: random.Random
    ) -> None:
        self._reader = reader
        self._ledger = ledger
        self._allowance = Budget(max_units=allowance)
        self._chance = chance
        self._hop = reader.source.space.sort is not None
        self.unfinished: list[SegmentSample] = []
        self._surprise = 0.0
        self._pages = 0
        self._lock = Lock()
        self._alone = Lock()

    def open(self, pages: int = OPENING_PAGES, cautious: bool = False) -> Opening:
        """Read the table as a single segment, `pages` pages or as far as the allowance goes.

        Where the reported item count says that the rest is little, it is read too; but a count can
        be six hours old, so that ends after SERIAL_REQUESTS pages.
        cautious: the table description is not believed as to the size of items. Then, and where
        it says nothing, the first page is one item, and pages grow fourfold until one costs more
        than a block: only such a page tells the size of its items.
        """
        keys: list[Key] = []
        items = found = 0
        cut_short = False
        position: Position | None = BEGINNING
        probe = 1 if cautious or self._reader.source.mean_item_bytes is None else None
        for number in range(SERIAL_REQUESTS):
            done = number >= pages and not is_nearly_done(
                self._reader.source.item_count, items, found
            )
            if position is None or done:
                break
            bet = self._ledger.bet()
            limit, expected = self._reader.affordable(
                bet.limit if probe is None else probe, self._ledger.size
            )
            try:
                page = self._read(0, 1, position, limit, expected)
            except BudgetSpent:
                self._ledger.abandon(bet)
                cut_short = True
                break
            self._ledger.settle(bet, page.runs, page.blocks)
            if probe is not None:
                as_described = self._reader.source.mean_item_bytes and probe >= bet.limit
                probe = None if page.blocks > 1 or as_described else GROWTH * probe
            step = advance(self._reader.source.space, position, page, self._hop)
            if step.no_progress:
                self._reader.usage.count(no_progress=1)
            keys.extend(step.keys)
            found = len(step.keys)
            items += sum(page.runs)
            position = step.position
        return Opening(keys, position, cut_short)

    def open_scan(self) -> Opening:
        """Read the table's, or index's, first page of 1 MB through, outside the allowance."""
        limit, expected = self._reader.affordable(None, self._ledger.size)
        page = self._reader.read(0, 1, BEGINNING.start, limit, expected)
        self._ledger.size.learn(sum(page.runs), page.blocks)
        step = advance(self._reader.source.space, BEGINNING, page, hop=False)
        return Opening(step.keys, step.position)

    def look_around(self) -> list[SegmentSample]:
        """Random segments of various sizes, a few pages of each, until one is read whole."""
        looks: list[SegmentSample] = []
        with ThreadPoolExecutor(THREADS) as pool:
            for sizes in SIZES:
                looks += filter(None, pool.map(self._sample_at_random, sizes))
                if any(look.whole for look in looks):
                    break
        return looks

    def _sample_at_random(self, segments: int) -> SegmentSample | None:
        return self._sample(self._chance.randrange(segments), segments, PAGES_PER_LOOK)

    def sample(
        self, keys: float, progress: Callable[[int], None] = lambda samples: None
    ) -> list[SegmentSample]:
        """Random segments with a few keys each, read whole, until the allowance is nearly spent.

        keys: how many the table is thought to hold. No segment is begun that the allowance might
        not see to its end: leaving out those that cost most would bias the result.
        """
        segments = min(MOST_SEGMENTS, max(1, round(keys / KEYS_PER_SAMPLE)))
        chosen = iter(self._chance.sample(range(segments), min(segments, MOST_SAMPLES)))
        samples: list[SegmentSample] = []
        dearest = KEYS_PER_SAMPLE * (UNITS_PER_BLOCK + self._surprise)
        running: set[Future[SegmentSample | None]] = set()
        with ThreadPoolExecutor(THREADS) as pool:
            while True:
                while len(running) < THREADS and self._left() >= dearest * (len(running) + 1):
                    segment = next(chosen, None)
                    if segment is None:
                        break
                    running.add(pool.submit(self._sample, segment, segments, None))
                if not running:
                    return samples
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    sample = future.result()
                    if sample is not None and sample.whole:
                        samples.append(sample)
                        dearest = max(dearest, 1.5 * sample.units)
                    elif sample is not None:
                        self.unfinished.append(sample)
                progress(len(samples))

    def _sample(self, segment: int, segments: int, most_pages: int | None) -> SegmentSample | None:
        """A segment in pages of 4 KB, `most_pages` at most; None if not even one is affordable."""
        mean = self._ledger.size.mean
        limit = max(1, int(FILL * BLOCK_BYTES / mean))
        expected = UNITS_PER_BLOCK * self._ledger.size.blocks(limit)
        position: Position | None = BEGINNING
        collections: list[SeenCollection] = []
        pages = 0
        units = first_blocks = 0.0
        while position is not None and pages != most_pages:
            try:
                page = self._read(segment, segments, position, limit, expected)
            except BudgetSpent:
                break
            step = advance(self._reader.source.space, position, page, self._hop)
            fresh = page.runs[len(page.runs) - len(step.keys) :]
            collections.extend(SeenCollection(items, cut=False) for items in fresh)
            if fresh and step.position is not None:
                collections[-1] = SeenCollection(fresh[-1], cut=True)
            units += page.units
            pages += 1
            if page.runs:
                first_blocks += page.blocks if sum(page.runs) == 1 else 1.0
            position = step.position
        if not pages:
            return None
        whole = position is None
        return SegmentSample(segments, whole, tuple(collections), pages, units, first_blocks)

    def _read(
        self, segment: int, segments: int, position: Position, limit: int | None, expected: float
    ) -> Page:
        cautious = self._pages < CAUTIOUS_PAGES and not math.isinf(self._allowance.left)
        with self._alone if cautious else nullcontext():
            with self._lock:
                reserved = expected + SURPRISE_MARGIN * self._surprise
                self._allowance.reserve(0.0, reserved)
                self._pages += 1
            spent = 0.0
            try:
                page = self._reader.read(segment, segments, position.start, limit, expected)
                spent = page.units
                return page
            finally:
                with self._lock:
                    self._allowance.settle(0.0, reserved, spent)
                    self._surprise = max(self._surprise, spent - expected)

    def _left(self) -> float:
        with self._lock:
            return self._allowance.left
