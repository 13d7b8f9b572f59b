"""A first look at a table: a few pages from its beginning, then a few random segments.

The first pages read a small table completely, one after the other, as the published way would. For
a larger table, random segments show how many keys there are: first a few pages of segments of very
different sizes, for the order of magnitude, and for a plan as many segments with a few keys each as
the allowance pays for. ItemCount is never used to skip work, because it can be six hours old.
"""

import math
import random
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock

from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Key
from keyhop.errors import BudgetSpent
from keyhop.scan.page_size import FILL, Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import MOST_SEGMENTS, SERIAL_REQUESTS, is_nearly_done
from keyhop.scan.skip_scan import BEGINNING, Page, Position, advance
from keyhop.scan.statistics import KEYS_PER_SAMPLE, SeenCollection, SegmentSample

OPENING_PAGES = 4
GROWTH = 4
SIZES = ((16,), (256, 4_096, 65_536), (MOST_SEGMENTS,))
"""The numbers of segments to try; those of a group are tried at the same time."""

PAGES_PER_LOOK = 3

CAUTIOUS_PAGES = 32
"""The number of pages that are read one by one, because several at once could surprise together."""

SURPRISE_MARGIN = 1.5
MOST_SAMPLES = 2_000
THREADS = 8


@dataclass(frozen=True, slots=True)
class Opening:
    """The first pages of a table, read as one segment, up to `position`.

    Attributes:
        position: Where they end; None at the end of the table.
        cut_short: Whether a budget ended them.
        left_out: The number of collections that hold nothing that counts.
    """

    keys: Sequence[Key]
    position: Position | None
    cut_short: bool = False
    left_out: int = 0

    @property
    def is_enough(self) -> bool:
        """Return whether to continue as one segment: nothing remains to read, or to spend."""
        return self.position is None or self.cut_short


class Survey:
    """Looks at one table, spending at most `allowance` read units.

    The cost of a page is known only afterwards. So each page also reserves 1.5 times the largest
    surprise so far, and only a page that surprises by more can exceed the allowance.
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
        self._pages = 0
        self._lock = Lock()
        self._alone = Lock()

    def open(self, cautious: bool = False) -> Opening:
        """Read the table as a single segment, up to OPENING_PAGES pages, within the allowance.

        Where the reported item count says that the rest is little, it is read too; but a count can
        be six hours old, so that ends after SERIAL_REQUESTS pages.

        Args:
            cautious: Whether to distrust the size of items in the table description. Then, and if
                the description has none, the first page is one item, and pages grow fourfold until
                one costs more than a block: only such a page shows the size of its items.
        """
        source = self._reader.source
        keys: list[Key] = []
        items = key_count = left_out = 0
        position: Position | None = BEGINNING
        probe = 1 if cautious or source.mean_item_bytes is None else None
        for number in range(SERIAL_REQUESTS):
            is_nearly = is_nearly_done(source.item_count, items, key_count)
            if position is None or (number >= OPENING_PAGES and not is_nearly):
                break
            bet = self._ledger.bet(self._reader.most_items(self._ledger.size))
            item_limit = max(self._reader.source.fewest_items, probe or bet.limit)
            limit, expected = self._reader.affordable(item_limit, self._ledger.size)
            try:
                page = self._read(0, 1, position, limit, expected)
            except BudgetSpent:
                self._ledger.abandon(bet)
                return Opening(keys, position, cut_short=True, left_out=left_out)
            self._ledger.settle(bet, page.runs_of_all, page.blocks, page.next is None)
            if probe is not None:
                as_described = source.mean_item_bytes and probe >= bet.limit
                probe = None if page.blocks > 1 or as_described else GROWTH * probe
            step = advance(source.space, position, page, self._hop)
            self._reader.usage.count(no_progress=step.no_progress)
            left_out += step.left_out
            keys.extend(step.keys)
            key_count = len(step.keys)
            items += sum(page.runs_of_all)
            position = step.position
        return Opening(keys, position, left_out=left_out)

    def open_scan(self) -> Opening:
        """Read all items of the first page of 1 MB, outside the allowance."""
        limit, expected = self._reader.affordable(None, self._ledger.size)
        page = self._reader.read(0, 1, BEGINNING.start, limit, expected)
        self._ledger.size.learn(sum(page.runs_of_all), page.blocks)
        step = advance(self._reader.source.space, BEGINNING, page, hop=False)
        return Opening(step.keys, step.position, left_out=step.left_out)

    def look_around(self) -> list[SegmentSample]:
        """Read random segments of various sizes, a few pages of each, until one is read whole."""
        looks: list[SegmentSample] = []

        def look_at(segments: int) -> SegmentSample | None:
            return self._sample(self._chance.randrange(segments), segments, PAGES_PER_LOOK)

        with ThreadPoolExecutor(THREADS) as pool:
            for sizes in SIZES:
                looks += filter(None, pool.map(look_at, sizes))
                if any(look.whole for look in looks):
                    break
        return looks

    def sample(self, keys: float) -> list[SegmentSample]:
        """Read random segments with a few keys each, whole, until the allowance is nearly spent.

        `keys` is the assumed number of keys of the table. A segment begins only if the allowance
        will pay for all of it, because leaving out the most expensive ones would bias the result.
        """
        segments = min(MOST_SEGMENTS, max(1, round(keys / KEYS_PER_SAMPLE)))
        chosen = iter(self._chance.sample(range(segments), min(segments, MOST_SAMPLES)))
        samples: list[SegmentSample] = []
        highest_cost = KEYS_PER_SAMPLE * (UNITS_PER_BLOCK + self._allowance.surprise)
        running: set[Future[SegmentSample | None]] = set()
        with ThreadPoolExecutor(THREADS) as pool:
            while True:
                while len(running) < THREADS and self._left() >= highest_cost * (len(running) + 1):
                    segment = next(chosen, None)
                    if segment is None:
                        break
                    running.add(pool.submit(self._sample, segment, segments, None))
                if not running:
                    return samples
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    sample = future.result()
                    if sample is not None and sample.whole:
                        samples.append(sample)
                        highest_cost = max(highest_cost, 1.5 * sample.units)
                    elif sample is not None:
                        self.unfinished.append(sample)

    def _sample(self, segment: int, segments: int, most_pages: int | None) -> SegmentSample | None:
        """Read a segment in pages of 4 KB, `most_pages` at most; None if none is affordable."""
        fewest = self._reader.source.fewest_items
        limit = max(fewest, int(FILL * BLOCK_BYTES / self._ledger.size.mean))
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
            collections.extend((items, True) for items in fresh)
            if fresh and step.position is not None:
                collections[-1] = fresh[-1], False
            units += page.units
            pages += 1
            if page.runs:
                # One item in addition to those that do not count: the first of its collection.
                alone = sum(page.runs_of_all) <= fewest
                first_blocks += page.blocks if alone else 1.0
            position = step.position
        if not pages:
            return None
        return SegmentSample(
            segments, position is None, tuple(collections), pages, units, first_blocks
        )

    def _read(
        self, segment: int, segments: int, position: Position, limit: int | None, expected: float
    ) -> Page:
        cautious = self._pages < CAUTIOUS_PAGES and not math.isinf(self._allowance.remaining)
        with self._alone if cautious else nullcontext():
            with self._lock:
                reserved = expected + SURPRISE_MARGIN * self._allowance.surprise
                turn = self._allowance.reserve(0.0, reserved)
                self._pages += 1
            spent = 0.0
            try:
                page = self._reader.read(segment, segments, position.start, limit, expected)
                spent = page.units
                return page
            finally:
                with self._lock:
                    self._allowance.settle(0.0, turn, spent, expected)

    def _left(self) -> float:
        with self._lock:
            return self._allowance.remaining
