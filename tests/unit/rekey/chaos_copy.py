"""The copy and the verification of a re-key in the simulated service, under a chaos test's traffic.

Each page is read at one moment. Everything else, from the puts to the repairs, is deployed code.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.values import Key
from keyhop.rekey.backfill import ITEMS_AT_ONCE, Copier, Destination
from keyhop.rekey.compare.digests import Rows
from keyhop.rekey.compare.looks import NOT_EQUAL, REPAIRED, Looks, Reads
from keyhop.rekey.compare.rows import Unmatched
from keyhop.rekey.task import SETTLED_SECONDS
from keyhop.rekey.worker.replicate import GiveUp
from keyhop.scan.skip_scan import Page

from testing.rekey_tasks import looked_at
from tests.unit.rekey.chaos_world import ChaosWorld

Item = dict[str, Any]

PAGE_SECONDS = 0.05


class ChaosCopy:
    """Copies a source whose first items are in no record of its stream, and verifies the copy.

    `counts` receives the counts of items and of differences, by outcome.
    """

    def __init__(self, world: ChaosWorld, counts: Counter[str]) -> None:
        self.world = world
        self.counts = counts
        self._next: Key | None = None
        """The start of the next page, after the last counted one; a killed copy continues there."""
        self._has_ended = False

    def copy(self, connection: Connection) -> None:
        """Copy the remaining items, page by page."""
        world = self.world
        side = world.side(connection, finishes=True)
        claim = side.claim

        def counted_claim(direction: Any, place: Key, owner: Key, **more: Any) -> Any:
            self.counts["claims of the copy"] += 1
            return claim(direction, place, owner, **more)

        side.claim = counted_claim  # type: ignore[method-assign]
        copier = Copier(
            world.transform,
            Destination(connection, world.pair.destination, stop=world.stop, slows=False),
            Reads(connection, world.pair.source, stop=world.stop, finishes=True),
            side,
        )
        reads = Reads(connection, world.pair.source, stop=world.stop)
        while not self._has_ended:
            page = self._page(reads)
            counts, _ = copier.copy(page)
            self.counts.update(counts)
            self._next, self._has_ended = page.next, page.next is None

    def verify(self, connection: Connection, give_up: GiveUp) -> None:
        """Compare both tables, and repair the differences."""
        world = self.world
        world.sleep(SETTLED_SECONDS)
        worker = world.replicator("forward", connection, give_up)
        source, destination = (
            Reads(connection, name, stop=world.stop)
            for name in (world.pair.source, world.pair.destination)
        )
        looks = Looks(
            world.transform,
            source,
            destination,
            settle=worker.settle_all,
            clock=world.monotonic,
            pool=world.pool,
        )
        rows = Rows(world.transform, 1, None, None, lambda kind, key, why: None)
        compared = [
            *self._rows(world.pair.source, rows.of_source),
            *self._rows(world.pair.destination, rows.of_destination),
        ]
        unmatched = Unmatched()
        unmatched.take(compared)
        unmatched.end()
        candidates = unmatched.candidates(compared, 0, len(unmatched.places))
        counts: Counter[str] = Counter()
        while candidates:
            results = looked_at(looks, candidates, world.sleep)
            counts += looks.settled(results)[0]
            candidates = candidates[len(results) :]
        self.counts.update({f"verify: {name}": count for name, count in counts.items()})
        self.counts["verify: left"] = sum(counts[name] for name in NOT_EQUAL) - counts[REPAIRED]

    def _page(self, reads: Reads) -> Page:
        scan: dict[str, Any] = {"Limit": ITEMS_AT_ONCE}
        if self._next is not None:
            scan["ExclusiveStartKey"] = self._next
        response = reads._read("scan", **scan)
        units = units_of(response) / 2  # the cost of an eventually consistent read
        return Page((), (), response.get("LastEvaluatedKey"), units, response["Items"], scan=scan)

    def _rows(self, table: str, rows_of: Callable[[Any], tuple[list[Key], Any]]) -> Iterator[Key]:
        """Read the items of a table in the order of their keys, each page at another moment."""
        name = self.world.tables[table].keys[0]
        keys = sorted(item[name]["S"] for item in self.world.items(table))
        for first in range(0, len(keys), ITEMS_AT_ONCE):
            page = keys[first : first + ITEMS_AT_ONCE]
            self.world.sleep(PAGE_SECONDS)
            items = (self.world.tables[table].base.at({name: {"S": key}}) for key in page)
            yield from rows_of([item for item in items if item is not None])[0]
