"""The ledger: how many items the next page of a skip-scan may read.

After any page, the walk can hop over the rest of the last item collection. So the only question is
how large to make a page. Small pages waste requests, and read units where many small collections
share a 4 KB block. Large pages continue to read collections whose key is already known.

The ledger learns the answer from the pages. Two things make it safe:

1. **A bank.** Every page is compared with the published way, which reads one item and pays at least
   one block for each key. The savings of a page go into the bank, and its waste is taken out. A
   page is larger than one block only if the bank could bear that all of the excess is wasted. In
   deficit, the ledger uses the published way (Limit=1). Pages in flight also reserve what the worst
   page recently cost more than expected. So a run costs at most 1.02 times the published way
   (`INCOME`), a little for each segment (`END_OF_SEGMENT`) and a fixed sum (`FIRST_DEPOSIT`;
   `DEEPEST_BANK` where the size of items surprises).
2. **A judgement in hindsight.** The items of a page show what pages of half its size would have
   found and paid. A size that loses to its half is abandoned, and tried again after a pause that
   doubles each time. As partition keys are hashed, collections come in random order, so the best
   size so far is the best guess for the next pages. Of many pages in flight, as many may have a
   size as pages of it were judged, and one more. So a wrong guess costs one page, and not all of
   them.

Sizes are *levels*: a page of level n reads what will probably fit into 2^n blocks, less a *margin*,
because items are rarely all of the same size and a page that is one byte too large costs another
block. The margin widens when that happens, and narrows while pages pay off. Where all collections
have one length, pages end on the first item of one. Costs are in blocks (units.py). The constants
were chosen with testing/simulator.py over random tables; none of them is critical.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.units import BLOCK_BYTES, blocks_of

REQUEST_COST = 0.25
"""The cost of a request in blocks, when page sizes are compared: its round trip and its CPU."""

TOP_LEVEL = 8
INCOME = 0.02
"""The income of the bank with each page, so that pages can grow again after a loss."""

FIRST_DEPOSIT = 3.0
"""The blocks in the bank at the beginning, for each page that can be in flight at once. Further
pages bring a deposit later only if the first deposits are not lost."""

END_OF_SEGMENT = 2.0
"""The blocks of loss that a page is forgiven if the segment ended in it."""

DEEPEST_BANK, LANES_OF_A_BANK = 128.0, 8
"""The maximum of the bank for so many pages in flight. It grows with their number, because most of
them would be small otherwise."""

TOLERANCE = 0.5
"""The blocks that a size may lose to its half before it is abandoned. Gains beyond that are
forgotten."""

FIRST_PAUSE, LONGEST_PAUSE = 16, 256
"""The number of pages until a size that has lost is tried again."""

FIRST_MARGIN, WIDEST_MARGIN = 0.1, 0.3
MARGIN_WIDENS, MARGIN_NARROWS = 0.05, 0.005
"""Margins are shares of a block. Where pages gain little, narrowing slows down to a tenth: then one
page in a hundred is a block too large, which the bank's income covers. Of n pages under way, each
moves it by the root of 1/n: their sizes were chosen before the others were judged, so that it would
swing otherwise."""

MEMORY = 0.95
"""The weight that the learnt item size keeps when a page adds information."""

FIRST_SURPRISE = 8.0
"""The assumed surprise in blocks before the first page: so pages begin a few at a time."""

SURPRISE_KEPT, SURPRISE_KEPT_BY_EVEN_SIZES = 0.99, 0.9
"""The share of the worst surprise that remains after each page."""

FILL = 0.85
"""The share of a block that a sampled page should fill, so that somewhat larger items still fit."""

TRUST_IN_TABLE_MEAN = 32.0
"""The weight, in items, of the mean item size in the table description."""


@dataclass(frozen=True, slots=True)
class Bet:
    """A page that the ledger allows.

    Attributes:
        limit: The number of items to read.
        level: The size of the page.
        stake: The blocks that the bank reserves until the page is judged: what it reads beyond one
            block, and the largest recent surprise.
    """

    limit: int
    level: int
    stake: float


@dataclass(slots=True)
class ItemSize:
    """The mean size in bytes of the items that pages read, learnt from the costs of the pages.

    A page of m items that cost q blocks held more than q-1 and up to q blocks of data, which is a
    bracket for the size. While the brackets of all pages have a common part, the size is in it.
    Otherwise sizes vary, and the mean is an average over pages, each of which counts with its
    expected size within its bracket.
    """

    mean: float
    weight: float
    low: float = 0.0
    high: float = math.inf
    guessed: bool = False
    varies: bool = False

    def learn(self, items: int, blocks: int) -> None:
        """Learn from a page of `items` items that cost `blocks` blocks."""
        if items == 0:
            return
        low, high = (blocks - 1) * BLOCK_BYTES / items, blocks * BLOCK_BYTES / items
        self.low, self.high = max(self.low, low), min(self.high, high)
        self.varies = self.varies or self.low > self.high
        if not self.varies:
            middle = (self.low + self.high) / 2
            self.mean = middle if self.guessed else min(max(self.mean, self.low), self.high)
            return
        if blocks == 1 and self.mean <= high:
            return  # adds no information, so it must not add weight
        previous = self.mean * self.weight * MEMORY
        self.weight = self.weight * MEMORY + items
        self.mean = (previous + items * min(max(self.mean, low), high)) / self.weight

    def blocks(self, items: int) -> int:
        """Return the blocks that a page of `items` items is expected to cost."""
        return blocks_of(items * self.mean * (1 - 1e-9))


@dataclass(slots=True)
class Ledger:
    """Decides the Limit of each page, and learns from what the page turned out to hold.

    `bet()` comes before a page, `settle()` after it. Several pages may be in flight at once, but
    few of a size that is new; the calls themselves must not overlap.

    Attributes:
        staked: The blocks of the bank that are reserved for the pages in flight.
        under_way: How many of these pages have each size.
        proven: How many pages of each size were judged since the ledger last left it.
    """

    size: ItemSize
    bank: float = FIRST_DEPOSIT
    level: int = 0
    margin: float = FIRST_MARGIN
    surprise: float = FIRST_SURPRISE
    lanes: int = 1
    staked: float = 0.0
    pages: int = 0
    length: int | None = None
    last_length: int | None = None
    under_way: list[int] = field(default_factory=lambda: [0] * (TOP_LEVEL + 1))
    proven: list[int] = field(default_factory=lambda: [0] * (TOP_LEVEL + 1))
    edge: list[float] = field(default_factory=lambda: [0.0] * (TOP_LEVEL + 1))
    pause: list[int] = field(default_factory=lambda: [FIRST_PAUSE] * (TOP_LEVEL + 1))
    retry_at: list[int] = field(default_factory=lambda: [0] * (TOP_LEVEL + 1))

    @classmethod
    def for_table(cls, mean_item_bytes: float | None) -> "Ledger":
        """Return a ledger for one page at a time (see `serve`), for items of the described size."""
        if mean_item_bytes:
            return cls(ItemSize(mean_item_bytes, TRUST_IN_TABLE_MEAN))
        return cls(ItemSize(float(BLOCK_BYTES), 0.25, guessed=True))

    def serve(self, lanes: int) -> None:
        """Allow this number of pages in flight at once. Each additional one makes a deposit."""
        if self.bank + self.staked >= FIRST_DEPOSIT * self.lanes:
            self.bank += FIRST_DEPOSIT * max(0, lanes - self.lanes)
        self.lanes = max(lanes, self.lanes)

    def bet(self, most_items: int | None = None) -> Bet:
        """Return the next page, of at most `most_items` items: the greatest size that fits."""
        if self.bank < 0:
            self.under_way[0] += 1
            return Bet(limit=1, level=0, stake=0.0)
        level = self.level
        maximum = math.inf if most_items is None else most_items
        while level and (
            self.under_way[level] > self.proven[level]
            or self._excess(level) > self.bank
            or self._limit(level) > maximum
        ):
            level -= 1
        limit = int(min(maximum, self._limit(level)))
        # The surprise may overdraw the bank: so one page can surprise, not all that are under way.
        stake = self._excess(level) + (self.surprise if limit > 1 else 0.0)
        self.bank -= stake
        self.staked += stake
        self.under_way[level] += 1
        return Bet(limit, level, stake)

    def abandon(self, bet: Bet) -> None:
        """Take back a page that was never read."""
        self.bank += bet.stake
        self.staked -= bet.stake
        self.under_way[bet.level] -= 1

    def settle(self, bet: Bet, runs: Sequence[int], blocks: int, is_last: bool = True) -> None:
        """Learn from a page that `bet` allowed.

        Args:
            runs: The lengths of runs of items with equal partition keys; empty without an item.
            blocks: The cost of the page.
            is_last: Whether the segment ended, if there are fewer items than allowed.
        """
        self.pages += 1
        self.abandon(bet)
        items = sum(runs)
        if items == 0:
            return
        surprise = float(blocks - self.size.blocks(items))
        self.size.learn(items, blocks)
        decay = SURPRISE_KEPT if self.size.varies else SURPRISE_KEPT_BY_EVEN_SIZES
        self.surprise = max(surprise, decay * self.surprise)
        self._learn_length(runs)
        if bet.limit > 1:
            gain = len(runs) * _published_cost(items, blocks) - blocks
            if items < bet.limit:
                gain = max(gain, min(0.0, gain + END_OF_SEGMENT))
            self.bank += gain
            self._adjust_margin(bet, blocks, gain)
        deepest = DEEPEST_BANK * max(1.0, self.lanes / LANES_OF_A_BANK)
        self.bank = min(deepest, self.bank + INCOME)
        is_full = items >= bet.limit
        level = bet.level if is_full else self._least_level(bet.level, items) if is_last else 0
        if level:
            self._judge(level, runs, blocks, is_full)
        if level or is_full:
            self._choose(level)

    def _learn_length(self, runs: Sequence[int]) -> None:
        """Learn whether the collections seen whole have one length; the last one may be cut."""
        complete = runs[:-1]
        if complete:
            constant = len(set(complete)) == 1 and runs[-1] <= complete[0]
            is_repeated = len(complete) > 1 or complete[0] == self.last_length
            self.length = complete[0] if constant and is_repeated else None
            self.last_length = complete[-1]
        elif self.length is not None and runs[0] > self.length:
            self.length = None

    def _adjust_margin(self, bet: Bet, blocks: int, gain: float) -> None:
        aimed_at = 1 << bet.level
        share = 1 / math.sqrt(self.lanes)
        if blocks == aimed_at + 1:
            self.margin = min(WIDEST_MARGIN, self.margin + share * MARGIN_WIDENS)
        elif blocks <= aimed_at:
            self.margin = max(0.0, self.margin - share * MARGIN_NARROWS * min(1.0, max(0.1, gain)))

    def _least_level(self, level: int, items: int) -> int:
        """Return the smallest size, up to `level`, that would have found all of the keys."""
        while level and self._limit(level - 1) >= items:
            level -= 1
        return level

    def _judge(self, level: int, runs: Sequence[int], blocks: int, is_full: bool) -> None:
        half = self._limit(level - 1)
        pages, keys = replay(runs, half)
        if not keys:
            return
        # Both sides as expected for items of the mean size, so that a surprise decides nothing.
        cost = min(blocks, self.size.blocks(sum(runs))) + REQUEST_COST
        half_cost = pages * (self.size.blocks(half) + REQUEST_COST)
        if is_full:
            half_cost *= len(runs) / keys
        else:  # at the segment's end, a page more finds the rest, or nothing
            half_cost += self.size.blocks(max(1, sum(runs[keys:]))) + REQUEST_COST
        gain = half_cost - cost
        self.edge[level] = min(TOLERANCE, self.edge[level] + gain)

    def _choose(self, level: int) -> None:
        """Choose the level of the next pages after one of `level` was judged."""
        if level and self.edge[level] < -TOLERANCE:
            self.edge[level] = 0.0
            self.retry_at[level] = self.pages + self.pause[level]
            self.pause[level] = min(LONGEST_PAUSE, 2 * self.pause[level])
            self.proven[level:] = [0] * (TOP_LEVEL + 1 - level)
            self.level = min(self.level, level - 1)
            return
        self.proven[level] += 1
        above = level + 1
        pays = self.edge[level] >= 0
        if level == self.level < TOP_LEVEL and pays and self.pages >= self.retry_at[above]:
            self.level = above

    def _limit(self, level: int) -> int:
        blocks = 1 << level
        limit = max(blocks, int((blocks - self.margin) * BLOCK_BYTES / self.size.mean))
        if self.length is not None and limit > self.length:
            # All collections are of one length: end on the first item of the last one.
            limit -= (limit - 1) % self.length
        return limit

    def _excess(self, level: int) -> float:
        if level == 0:
            return 0.0
        return self.size.blocks(self._limit(level)) - self.size.blocks(self._limit(0))

    def to_json(self) -> dict[str, Any]:
        """Return the state that a later slice needs to continue. The rest is learnt again."""
        state = {"mean": self.size.mean, "weight": self.size.weight}
        state |= {name: getattr(self, name) for name in _STATE}
        return {name: round(value, 3) for name, value in state.items()}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> "Ledger":
        size = ItemSize(float(state["mean"]), float(state["weight"]))
        ledger = cls(size, **{name: state[name] for name in _STATE if name in state})
        ledger.proven[: ledger.level + 1] = [ledger.lanes] * (ledger.level + 1)
        return ledger


_STATE = ("bank", "level", "margin", "surprise", "lanes")


def _published_cost(items: int, blocks: int) -> float:
    """Return the blocks that reading one item costs, on average over a page; never too many.

    One block each, unless the page proves that its items are larger than a block on average: then
    their mean size, and half a block for rounding up.
    """
    if blocks - 1 < items:
        return 1.0
    return max(1.0, (blocks - 0.5) / items + 0.5)


def replay(runs: Sequence[int], limit: int) -> tuple[int, int]:
    """Replay pages of `limit` items, each followed by a hop, over the items that a larger page saw.

    Returns:
        The number of pages that are wholly inside the larger page, and the number of keys that they
        find.
    """
    total = sum(runs)
    pages = keys = position = 0
    while keys < len(runs) and position + limit <= total:
        pages += 1
        remaining = limit
        while remaining > 0 and keys < len(runs):
            remaining -= runs[keys]
            position += runs[keys]
            keys += 1
    return pages, keys
