"""Traffic for the demo of a re-key: threads that read and write flights through a router, and check
each answer against what they know.

Each thread has separate flights, so it knows what a strongly consistent read must return.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

from keyhop.rekey import Router

Item = dict[str, Any]

THREADS = 4
BETWEEN_SECONDS = 0.05
"""Between two requests of a thread: there is work to be done beside it."""

ROUTES = ("JFK-LAX", "LGA-ORD", "EWR-SFO")
"""Where flights are moved to."""


@dataclass
class Traffic:
    """old, new: names of the tables. client: boto3's. counts: of reads, in all and by the table
    that served, of writes of each kind, and of what must not be: wrong reads, failed requests.
    longest: seconds that a write took, and a read.
    """

    router: Router
    client: Any
    old: str
    new: str
    flights: Sequence[Item]
    counts: Counter[str] = field(default_factory=Counter)
    longest: tuple[float, float] = (0.0, 0.0)
    known: dict[int, Item | None] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Read and write until the block ends."""
        over = Event()
        with ThreadPoolExecutor(THREADS) as pool:
            running = [pool.submit(self._work, number, over) for number in range(THREADS)]
            try:
                yield
            finally:
                over.set()
        for worker in running:
            worker.result()

    def take_longest(self) -> tuple[float, float]:
        """Seconds that the slowest write took since the last look, and the slowest read."""
        with self._lock:
            longest, self.longest = self.longest, (0.0, 0.0)
        return longest

    @property
    def tables(self) -> tuple[str, str]:
        return self.old, self.new

    @property
    def is_right(self) -> bool:
        """Whether every read was right, and nothing failed."""
        return not self.counts["wrong"] and not self.counts["failed"]

    def _work(self, number: int, over: Event) -> None:
        chance = random.Random(number)
        own_flights = range(number, len(self.flights), THREADS)
        while not over.wait(BETWEEN_SECONDS):
            flight = chance.choice(own_flights)
            try:
                what = self._do(flight, chance)
            except Exception as error:  # whatever it is, it was none of the application's doing
                what = "failed"
                with self._lock:
                    self.counts[type(error).__name__] += 1
            with self._lock:
                self.counts[what] += 1

    def _do(self, flight: int, chance: random.Random) -> str:
        before = self.known.get(flight, self.flights[flight])
        began = time.monotonic()
        if chance.random() < 0.5:
            found = self._read(before or self.flights[flight])
            with self._lock:
                write, read = self.longest
                self.longest = write, max(read, time.monotonic() - began)
            return "read" if found == before else "wrong"
        if before is None:
            what, after = "put", self.flights[flight]
            self._put(after)
        elif (drawn := chance.random()) < 0.2:
            what, after = "deleted", None
            self._delete(before)
        elif drawn < 0.4:
            what, after = "moved", {**before, "route": {"S": chance.choice(ROUTES)}}
            self._move(before, after)
        else:
            what, after = "put", {**before, "gate": {"N": str(chance.randrange(100))}}
            self._put(after)
        with self._lock:
            self.known[flight] = after
            write, read = self.longest
            self.longest = max(write, time.monotonic() - began), read
        return what

    def _read(self, flight: Item) -> Item | None:
        def get(table: str, key: Item) -> Item | None:
            answer = self.client.get_item(TableName=table, Key=key, ConsistentRead=True)
            with self._lock:
                self.counts[f"read {table}"] += 1
            found: Item | None = answer.get("Item")
            return found

        def get_by_route() -> Item | None:
            found = get(self.new, new_key(flight))
            return found and by_aircraft(found)

        return self.router.read(old=lambda: get(self.old, old_key(flight)), new=get_by_route)

    def _put(self, flight: Item) -> None:
        def put(table: str, item: Item) -> None:
            self.client.put_item(TableName=table, Item=item)

        self.router.write(
            old=lambda: put(self.old, flight),
            new=lambda: put(self.new, by_route(flight)),
        )

    def _delete(self, flight: Item) -> None:
        def delete(table: str, key: Item) -> None:
            self.client.delete_item(TableName=table, Key=key)

        self.router.write(
            old=lambda: delete(self.old, old_key(flight)),
            new=lambda: delete(self.new, new_key(flight)),
        )

    def _move(self, before: Item, after: Item) -> None:
        """Move a flight to another route: its key by aircraft stays, its key by route changes."""

        def transact() -> None:
            delete = {"Delete": {"TableName": self.new, "Key": new_key(before)}}
            put = {"Put": {"TableName": self.new, "Item": by_route(after)}}
            stays = before["route"] == after["route"]
            self.client.transact_write_items(TransactItems=[put] if stays else [delete, put])

        self.router.write(
            old=lambda: self.client.put_item(TableName=self.old, Item=after), new=transact
        )


def old_key(flight: Item) -> Item:
    """Return the key by aircraft."""
    return {name: flight[name] for name in ("tailnum", "departure")}


def new_key(flight: Item) -> Item:
    """Return the key by route, as in examples/rekey/flights-by-route.yaml."""
    leaves = f"{flight['departure']['S']}#{flight['tailnum']['S']}"
    return {"route": flight["route"], "leaves": {"S": leaves}}


def by_route(flight: Item) -> Item:
    """A flight as the application writes it after the cutover."""
    rest = {name: value for name, value in flight.items() if name not in old_key(flight)}
    return {**rest, **new_key(flight)}


def by_aircraft(item: Item) -> Item:
    """The inverse of `by_route`."""
    departure, _, tailnum = item["leaves"]["S"].rpartition("#")
    rest = {name: value for name, value in item.items() if name != "leaves"}
    return {**rest, "departure": {"S": departure}, "tailnum": {"S": tailnum}}
