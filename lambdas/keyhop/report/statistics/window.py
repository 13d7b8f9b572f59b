"""The length of a collection without reading all of it, from windows at random positions.

A window is a page backward and a page forward from a random position x of the sort keys, read as
numbers (report/statistics/sort_key.py). An item counts if x falls into one of the m gaps before it,
where m is the items of a page; so its chance is the width of these gaps, which the window shows,
and it represents 1/chance items (Horvitz and Thompson). With several windows its chance is the sum
over all of them. The windows are spread evenly, one in each part of the range. Sending half of them
to dense parts was tried: bursts were measured a little better, the rest worse, with a bias.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import Measured
from keyhop.report.statistics.sort_key import Form, SortKey, form_of, tag_of
from keyhop.scan.statistics import t_quantile

METHOD = "windows at random sort keys"
BUDGET = 9.0
"""The default read units: with Poisson times, 90 % of lengths are measured within +-35 %."""

PAGE_UNITS = 0.5
MOST_TAGS = 6
PRIOR_WINDOWS = 4
PRIOR = 0.5
"""The assumed relative variance of a window: between that of Poisson times (0.1) and bursts (2)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """An eventually consistent Query of the collection, with a page of one block.

    Attributes:
        start: The sort key to start at; None for the first one in this direction.
        forward: Whether to read sort keys >= start, ascending; otherwise < start, descending.
        limit: The maximum number of items.
    """

    start: SortKey | None
    forward: bool
    limit: int


@dataclass(frozen=True, slots=True)
class Window:
    """A window around x, which was drawn evenly from [low, high).

    Attributes:
        before: The numbers of the items before x, ascending.
        after: The numbers of the items after x, ascending.
        keys: The sort keys of `after`.
    """

    x: int
    low: int
    high: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    keys: tuple[SortKey, ...]


@dataclass
class Gap:
    """The gap between two pages of one tag that were read.

    A position may be drawn from `start`, the beginning of the first page: so the items behind that
    page have as many gaps before them as any other item.

    Attributes:
        first: The numbers of the items of the first page.
        last: The numbers of the items of the last page.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    form: Form
    windows: list[Window] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start, self.low, self.high = self.first[0], self.first[-1], self.last[0]

    def inside(self, key: SortKey) -> bool:
        """Return whether a key is strictly between the two pages."""
        number = self.form.number(key)
        return number is not None and self.low < number < self.high

    def by_density(self) -> float:
        """Return the items, if they are as dense between two windows as at the windows."""
        windows = sorted((window.x, window.before, window.after) for window in self.windows)
        ends = [(self.low, (), self.first), *windows, (self.high, self.last, ())]
        return math.fsum(
            max(0, high - low) * (_density(after) + _density(before)) / 2
            for (low, _, after), (high, before, _) in pairwise(ends)
        )

    def weighted(self, m: int) -> list[tuple[int, SortKey, float]]:
        """Return (window, key, weight) of the items that count, strictly between the two pages."""
        weighted = []
        for at, window in enumerate(self.windows):
            line = (*window.before, *window.after)
            for j, number in enumerate(window.after[:m]):
                if not self.low < number < self.high:
                    continue
                position = len(window.before) + j
                since = max(line[position - m] if position >= m else self.start, self.start)
                chance = sum(_overlap(each, since, number) for each in self.windows)
                if chance > 0:
                    weighted.append((at, window.keys[j], 1 / chance))
        return weighted


def _density(numbers: Sequence[int]) -> float:
    """Return the items for each step of consecutive numbers."""
    if len(numbers) < 2 or numbers[-1] <= numbers[0]:
        return 0.0
    return (len(numbers) - 1) / (numbers[-1] - numbers[0])


def _overlap(window: Window, low: int, high: int) -> float:
    """Return the chance that this window's position falls into (low, high]."""
    common = min(window.high, high) - max(window.low, low)
    return max(0, common) / (window.high - window.low)


class LengthProber:
    """Chooses the next Query of one collection, and evaluates the pages.

        while (ask := prober.next()) is not None:
            prober.take(keys of the page, units it cost)

    Args:
        chance: The random numbers.
        per_block: The approximate number of items that fill one block of 4 KB.
        budget: The read units to use. A page may cost more than half a unit.
        head: Sort keys from its beginning that were read, if it has more items. They replace the
            first page if they are half as many; fewer would make the lengths vary.
    """

    def __init__(
        self,
        chance: random.Random,
        per_block: int,
        budget: float = BUDGET,
        head: Sequence[SortKey] = (),
    ) -> None:
        self._chance = chance
        self._m = max(1, per_block)
        self._left = budget
        self._seen: set[SortKey] = set()
        self._gaps: list[Gap] = []
        self._asks: list[Ask] = [Ask(None, forward=True, limit=self._m)]
        self._pages: list[list[SortKey]] = []
        self._stage = "head"
        self._head: list[SortKey] = []
        self._end: list[SortKey] = []
        self._tags = 0
        self._complete = False
        self._unknown = False
        self._drawn: tuple[Gap, int, int, int] | None = None
        self._planned = 0
        if 2 * len(head) >= self._m:
            self._seen.update(head)
            self._asks.clear()
            self._take_head(list(head), short=False)

    def next(self) -> Ask | None:
        """Return the next Query; None at the end, or when the budget is spent."""
        if not self._asks:
            self._draw()
        return self._asks[0] if self._asks else None

    def take(self, keys: Sequence[SortKey], units: float = PAGE_UNITS) -> None:
        """Take the sort keys of the requested page, in the order of the response."""
        ask = self._asks.pop(0)
        self._left -= units
        page = list(keys) if ask.forward else list(reversed(keys))
        self._seen.update(page)
        self._pages.append(page)
        short = len(page) < ask.limit
        if self._stage == "head":
            self._take_head(page, short)
        elif self._stage == "tail":
            self._end = page
            self._go_on(self._head)
        elif len(self._pages) == 2:
            after, before = self._pages
            self._pages = []
            if self._stage == "border":
                self._close(before)
                self._go_on(after)
            else:
                self._take_window(before, after)

    def _take_head(self, page: list[SortKey], short: bool) -> None:
        if short:
            self._complete = True
            self._stage = "done"
            return
        self._head, self._stage = page, "tail"
        self._asks.append(Ask(None, forward=False, limit=self._m))

    def _go_on(self, page: list[SortKey]) -> None:
        """Continue after a page that does not end the collection, up to the last tag of it."""
        self._pages = []
        self._head = page
        if not page or not self._end or page[-1] >= self._end[0]:  # type: ignore[operator]
            self._stage = "windows"
            return
        tag, last = tag_of(page[-1]), tag_of(self._end[0])
        if tag is None or last is None:
            self._unknown, self._stage = True, "windows"
        elif tag == last:
            self._close(self._end)
            self._stage = "windows"
        elif not tag or self._tags == MOST_TAGS or self._left < 2 * PAGE_UNITS:
            self._unknown, self._stage = True, "windows"
        else:
            self._tags += 1
            self._stage = "border"
            border = tag[:-1] + chr(ord(tag[-1]) + 1)
            self._asks += [
                Ask(border, forward=True, limit=self._m),
                Ask(border, forward=False, limit=self._m),
            ]

    def _close(self, last: list[SortKey]) -> None:
        """Add the gap from the current page to `last`, a page that ends its tag."""
        if not last or self._head[-1] >= last[0]:  # type: ignore[operator]
            return
        tag = tag_of(self._head[-1])
        first = [key for key in self._head if tag_of(key) == tag]
        last = [key for key in last if tag_of(key) == tag]
        form = form_of([*first, *last])
        if form is None:
            self._unknown = True
        else:
            self._gaps.append(Gap(_numbers(form, first), _numbers(form, last), form))

    def _draw(self) -> None:
        if self._stage != "windows" or self._unknown or not self._gaps:
            return
        if self._left < 2 * PAGE_UNITS:
            return
        windows = int(self._left / (2 * PAGE_UNITS)) + self._planned
        gap, low, high = self._place(windows)
        x = self._chance.randrange(low, high)
        start = gap.form.key(x)
        at = gap.form.number(start)
        self._drawn = (gap, x if at is None else at, low, high)
        self._planned += 1
        self._pages = []
        self._asks += [
            Ask(start, forward=True, limit=self._m),
            Ask(start, forward=False, limit=self._m),
        ]

    def _place(self, windows: int) -> tuple[Gap, int, int]:
        """Return the range for the next of `windows` windows, spread evenly, one in each part."""
        gap = self._gaps[self._planned % len(self._gaps)]
        share = max(1, windows // len(self._gaps))
        cell = (self._planned // len(self._gaps)) % share
        width = gap.high - gap.start
        low = gap.start + width * cell // share
        return gap, low, max(low + 1, gap.start + width * (cell + 1) // share)

    def _take_window(self, before: list[SortKey], after: list[SortKey]) -> None:
        assert self._drawn is not None
        gap, x, low, high = self._drawn
        ahead = [key for key in after if tag_of(key) == gap.form.tag]
        behind = [key for key in before if tag_of(key) == gap.form.tag]
        after_x, before_x = _numbers(gap.form, ahead), _numbers(gap.form, behind)
        if len(after_x) < len(ahead) or len(before_x) < len(behind):
            self._unknown = True
        else:
            gap.windows.append(Window(x, low, high, before_x, after_x, tuple(ahead)))

    def weights(self) -> list[tuple[SortKey, float]]:
        """Return each item that counts, with the number of items that it represents.

        Items of the pages at the ends represent 1. A key may appear in several windows.
        """
        ends = [(key, 1.0) for key in self._seen if not any(gap.inside(key) for gap in self._gaps)]
        return ends + [(key, w) for gap in self._gaps for _, key, w in gap.weighted(self._m)]

    def estimate(self) -> Estimate:
        """Return the length: exact if all items were read, a minimum if no numbers can be read."""
        count = len(self._seen)
        if self._complete or (self._stage == "windows" and not self._gaps and not self._unknown):
            return Estimate.exactly(float(count), count, "counted")
        if self._unknown or not self._gaps or not all(gap.windows for gap in self._gaps):
            return Estimate.at_least(float(count), count, METHOD)
        return _estimate(self._gaps, self._m, self.weights(), count)


def _numbers(form: Form, keys: Sequence[SortKey]) -> tuple[int, ...]:
    """Return the numbers of the keys that have this form."""
    return tuple(number for key in keys if (number := form.number(key)) is not None)


def _estimate(
    gaps: Sequence[Gap], m: int, weights: Sequence[tuple[SortKey, float]], read: int
) -> Estimate:
    """Return the length from windows, where `read` items were read.

    The interval is that of Student's t for the logarithm, by the variance of windows. They are few,
    so it is moved towards PRIOR, as if there were PRIOR_WINDOWS more. A dense part that the windows
    missed, but for one at its edge, is in the interval too.
    """
    value = max(float(read), math.fsum(weight for _, weight in weights))
    count = sum(len(gap.windows) for gap in gaps)
    squares = 0.0
    for gap in gaps:
        by_window = [0.0] * len(gap.windows)
        for at, _, weight in gap.weighted(m):
            by_window[at] += weight
        middle = math.fsum(by_window) / len(by_window)
        squares += math.fsum((weight - middle) ** 2 for weight in by_window)
    freedom = count - len(gaps)
    each = squares * (count / value) ** 2
    pooled = (PRIOR_WINDOWS * PRIOR + each) / (PRIOR_WINDOWS + freedom)
    factor = math.exp(t_quantile(PRIOR_WINDOWS + freedom) * math.sqrt(pooled / count))
    error = each / freedom / count if freedom else 1 / m
    as_dense = read + math.fsum(gap.by_density() for gap in gaps)
    low = max(float(read), min(value / factor, as_dense))
    high = max(value * factor, as_dense)
    return Measured(value, low, high, read, METHOD, error=error)
