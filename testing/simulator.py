"""The cost model, page policies on simulated tables, and the offline optimum.

In the model, a page costs a block for each started 4 KB of its items, with a minimum of one. It
ends at its Limit or at 1 MB. A request takes 3 ms, 1 ms for each 100 KB, and half a millisecond of
the client's CPU. The cost to compare is the number of blocks + 0.07 for each millisecond.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from keyhop.dynamodb.units import PAGE_BYTES, UNITS_PER_BLOCK, blocks_of
from keyhop.scan.in_flight import FIRST
from keyhop.scan.page_size import Bet, Ledger

BLOCKS_PER_MS = 0.07


def milliseconds(byte_count: float) -> float:
    """Return the time of a request that reads so many bytes."""
    return 3.5 + byte_count / 100_000


class Table:
    """Item collections in scan order, each a list of item sizes in bytes."""

    def __init__(self, collections: Sequence[Sequence[int]]) -> None:
        self.keys = len(collections)
        self.starts = [0]
        self.collection_of: list[int] = []
        self.bytes_before = [0]
        for number, sizes in enumerate(collections):
            self.collection_of += [number] * len(sizes)
            self.starts.append(self.starts[-1] + len(sizes))
            for size in sizes:
                self.bytes_before.append(self.bytes_before[-1] + size)
        self.items = len(self.collection_of)

    @property
    def mean_item_bytes(self) -> float:
        """The mean that follows from the table's description."""
        return self.bytes_before[-1] / self.items

    def size(self, begin: int, end: int) -> int:
        """Return the bytes of the items from `begin` up to `end`."""
        return self.bytes_before[end] - self.bytes_before[begin]

    def page_end(self, begin: int, limit: int | None) -> int:
        """Return the end of a page that begins at an item, by its limit or by its size."""
        full = self.bytes_before[begin] + PAGE_BYTES
        end = max(begin + 1, bisect_left(self.bytes_before, full, begin))
        return min(self.items, end, self.items if limit is None else begin + limit)

    def runs(self, begin: int, end: int) -> list[int]:
        """Return the lengths of the runs of equal keys from `begin` up to `end`."""
        first, last = self.collection_of[begin], self.collection_of[end - 1]
        return [
            min(end, self.starts[number + 1]) - max(begin, self.starts[number])
            for number in range(first, last + 1)
        ]


class Policy(Protocol):
    """A policy for the limit of pages; `hops` says whether it skips the rest of a collection."""

    hops: bool

    def limit(self) -> int | None:
        """Return the limit of the next page."""

    def learn(self, runs: Sequence[int], blocks: int) -> None:
        """Learn from a page."""


class PublishedPolicy:
    """The published policy: one item per page, then a hop."""

    hops = True

    def limit(self) -> int | None:
        return 1

    def learn(self, runs: Sequence[int], blocks: int) -> None: ...


class FullScanPolicy(PublishedPolicy):
    """A full scan in pages of 1 MB."""

    hops = False

    def limit(self) -> int | None:
        return None


class LedgerPolicy:
    """The policy of Keyhop's ledger."""

    hops = True

    def __init__(self, mean_item_bytes: float | None) -> None:
        self.ledger = Ledger.for_table(mean_item_bytes)
        self._bet: Bet | None = None

    def limit(self) -> int | None:
        self._bet = self.ledger.bet()
        return self._bet.limit

    def learn(self, runs: Sequence[int], blocks: int) -> None:
        assert self._bet is not None
        self.ledger.settle(self._bet, runs, blocks)


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of reading a table."""

    blocks: int
    requests: int
    milliseconds: float

    @property
    def units(self) -> float:
        return UNITS_PER_BLOCK * self.blocks

    @property
    def cost(self) -> float:
        """The cost of blocks and time together."""
        return self.blocks + BLOCKS_PER_MS * self.milliseconds


def simulate(table: Table, policy: Policy) -> Spent:
    """Read a table as one segment with a policy."""
    at = blocks = requests = 0
    spent = 0.0
    more = True
    while more:
        if at >= table.items:  # the last page was full, so another page must reach the end
            blocks, requests, spent = blocks + 1, requests + 1, spent + milliseconds(0)
            break
        limit = policy.limit()
        end = table.page_end(at, limit)
        size = table.size(at, end)
        cost = blocks_of(size)
        policy.learn(table.runs(at, end), cost)
        blocks, requests, spent = blocks + cost, requests + 1, spent + milliseconds(size)
        more = end < table.items or end - at == limit
        at = table.starts[table.collection_of[end - 1] + 1] if policy.hops else end
    return Spent(blocks, requests, spent)


def simulate_lanes(table: Table, lanes: int, segments: int) -> int:
    """Return the blocks that Keyhop's ledger reads with up to so many pages in flight.

    A page is chosen before the ledger has learned from the pages that are in flight.
    """
    ledger = Ledger.for_table(table.mean_item_bytes)
    ends = [table.starts[-(-number * table.keys // segments)] for number in range(segments + 1)]
    waiting = list(pairwise(ends))
    in_flight: deque[tuple[int, int, Bet]] = deque()
    blocks = 0
    while waiting or in_flight:
        ledger.serve(min(lanes, FIRST + ledger.pages // FIRST))
        while waiting and len(in_flight) < ledger.lanes:
            in_flight.append((*waiting.pop(), ledger.bet()))
        begin, end, bet = in_flight.popleft()
        reach = min(end, table.page_end(begin, bet.limit)) if begin < end else end
        runs = table.runs(begin, reach) if begin < end else []
        cost = blocks_of(table.size(begin, reach))
        ledger.settle(bet, runs, cost)
        blocks += cost
        if reach < end or reach - begin == bet.limit:
            following = table.starts[table.collection_of[reach - 1] + 1]
            in_flight.append((following, end, ledger.bet()))
    return blocks


def optimum(table: Table, price: Callable[[Spent], float] = lambda spent: spent.cost) -> Spent:
    """Return the minimum of `price` for a reader that knows the table in advance.

    This is dynamic programming from the end: from the first item of each collection, the best page
    ends on the first item of a later collection, followed by a hop, or reads to the end.
    """
    best = [Spent(0, 0, 0.0)] * (table.keys + 1)
    for number in range(table.keys - 1, -1, -1):
        begin = table.starts[number]
        best[number] = _to_the_end(table, begin)
        for last in range(number, table.keys):
            size = table.size(begin, table.starts[last] + 1)
            if last > number and size > PAGE_BYTES:
                break
            rest = best[last + 1]
            page = Spent(
                blocks_of(size) + rest.blocks,
                1 + rest.requests,
                milliseconds(size) + rest.milliseconds,
            )
            if price(page) < price(best[number]):
                best[number] = page
    return best[0]


def best_online(collections: Sequence[Sequence[int]]) -> Spent:
    """Return the least cost of a table for a reader that knows everything except the order.

    Hashing puts the collections into random order, so each page after a hop has the same
    distribution: a page with a certain Limit costs E[cost] and covers E[keys] on average, whatever
    the reader has learned. So no sequence of Limits costs less per key than the one Limit with the
    least E[cost] / E[keys]. Both are means over up to 1,000 of the collections. The table is
    repeated once, so that its end shortens no page. Limits from 100 on are tried in steps of 2 %.
    """
    table = Table([*collections, *collections])
    key_count = len(collections)
    starts = table.starts[: key_count : -(-key_count // 1_000)]
    best: Spent | None = None
    limit = 1
    while table.page_end(starts[-1], limit) < table.items:
        ends = [table.page_end(begin, limit) for begin in starts]
        sizes = list(map(table.size, starts, ends))
        keys = sum(
            table.collection_of[end - 1] + 1 - table.collection_of[begin]
            for begin, end in zip(starts, ends, strict=True)
        )
        pages = key_count / keys  # pages of the whole table for each page here
        spent = Spent(
            round(pages * sum(map(blocks_of, sizes))),
            round(pages * len(starts)),
            pages * sum(map(milliseconds, sizes)),
        )
        if best is None or spent.cost < best.cost:
            best = spent
        if all(end - begin < limit for begin, end in zip(starts, ends, strict=True)):
            break  # all pages end at 1 MB with any larger Limit
        limit += max(1, limit // 50)
    assert best is not None
    return best


def _to_the_end(table: Table, begin: int) -> Spent:
    size = table.size(begin, table.items)
    pages = max(1, -(-size // PAGE_BYTES))
    return Spent(blocks_of(size), pages, pages * milliseconds(0) + size / 100_000)
