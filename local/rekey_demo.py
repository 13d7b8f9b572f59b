"""`make rekey-demo`: a live table under another primary key, and back.

The flights of New York City are in a table by aircraft. While four threads read and write them
through a router, the demo re-keys them by route, cuts over and rolls back, and checks every read.
Each thread has separate flights, so it knows the right result of a strongly consistent read.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from threading import Event, Lock
from typing import Any

from keyhop.rekey import Router

from local.cloud import Cloud, Failed, console, exit_with, laptop_cloud
from local.stream_bridge import bridge_for
from testing.databases import Database, load
from testing.flights import BY_AIRCRAFT, BY_ROUTE, create_table, flights
from testing.key_index_tables import scanned
from testing.servers import local_client

DURATION = "two to four minutes"
STEPS = 6
ITEMS = 4_000
TEMPLATE = "examples/rekey/flights-by-route.yaml"
KEYS = ("--template", TEMPLATE, "--partition-key", "route", "--sort-key", "leaves")
LEASE_SECONDS = 10
"""The time from the beginning of a cutover, or of a rollback, until writes wait."""

FOUND = 3
"""The exit status of a verification that has found differences."""

PAIRS = [{"source": BY_AIRCRAFT, "destination": BY_ROUTE}]

Item = dict[str, Any]

THREADS = 4
BETWEEN_SECONDS = 0.05
"""The pause between two requests of a thread, because an application has other work too."""

ROUTES = ("JFK-LAX", "LGA-ORD", "EWR-SFO")
"""The routes to which flights are moved."""


def main() -> int:
    """Re-key a table and roll that back; return an exit status."""
    console.print(f"This takes {DURATION}, in {STEPS} steps.")
    laps = Laps()
    with laptop_cloud() as cloud:
        items = list(islice(flights(), ITEMS))
        with cloud.deploying([BY_AIRCRAFT], rekey=json.dumps(PAIRS)) as deployment:
            console.print(f"$ cdk deploy -c 'rekey={json.dumps(PAIRS)}'", markup=False)
            console.print("During the deployment, the source and the destination:")
            create_table(cloud.dynamodb, BY_AIRCRAFT)
            load(local_client(cloud.dynamodb), iter(items), BY_AIRCRAFT)
            console.print(f"Loaded {ITEMS:,} flights into {BY_AIRCRAFT}: tailnum, departure.")
            _keyhop(cloud, "plan", *KEYS)
            _keyhop(cloud, "create", *KEYS, "--lease", str(LEASE_SECONDS))
            deployment.result()
        laps.end("deploy, load, plan, create")
        is_right = _there_and_back(cloud, items, laps)
    laps.end("check, cancel, stop the servers")
    console.print(f"\n{laps.table()}\n\nAll servers are stopped.")
    return 0 if is_right else 1


@dataclass
class Laps:
    """The durations of the steps, with what the protocol waits for in each."""

    began: float = field(default_factory=time.monotonic)
    rows: list[tuple[str, float, str]] = field(default_factory=list)

    def end(self, what: str, waits: str = "") -> None:
        """End a step, print the progress, and begin the next step."""
        self.rows.append((what, self._so_far() - sum(row[1] for row in self.rows), waits))
        done = f"{len(self.rows)} of {STEPS} steps done ({what})"
        console.print(f"\n== {done}, {self._so_far():.0f} s of {DURATION} ==")

    def table(self) -> str:
        """Return a table of all steps and the sum of their durations."""
        rows = [*self.rows, ("in all", self._so_far(), "")]
        width = max(len(what) for what, _, _ in rows)
        return "\n".join(f"{w.ljust(width)} {s:4.0f} s  {why}".rstrip() for w, s, why in rows)

    def _so_far(self) -> float:
        return time.monotonic() - self.began


def _there_and_back(cloud: Cloud, items: list[dict[str, Any]], laps: Laps) -> bool:
    client = local_client(cloud.dynamodb)
    url = cloud.dynamodb
    router = Router(f"{BY_ROUTE}.rekey", clients=[client], name="demo", endpoint_url=url)
    traffic = Traffic(router, client, BY_AIRCRAFT, BY_ROUTE, items)
    with bridge_for(cloud).running(), traffic.running():
        console.print("\nFrom here on four threads read and write flights through a router.")
        _keyhop(cloud, "start", "--remote", "--follow")
        laps.end("start: copy, and follow")
        _keyhop(cloud, "verify", "--follow", may=(0, FOUND))
        laps.end("verify", "12 s until nothing of the copy is under way, 8 s between its looks")
        _keyhop(cloud, "cutover", "--dry-run")
        traffic.take_longest()
        _keyhop(cloud, "cutover", "--follow")
        _say_wait(traffic)
        laps.end("gates, cutover", f"{LEASE_SECONDS} s for routers to hear of it, 4 s frozen")
        _keyhop(cloud, "rollback", "--follow")
        _say_wait(traffic)
        laps.end("rollback", "the same")
    expected = dict[int, Any](enumerate(items)) | traffic.written
    expected_items = [item for item in expected.values() if item is not None]
    stored = list(scanned(Database("dynamodb_local", cloud.dynamodb), BY_AIRCRAFT))
    is_same = sorted(map(_text, expected_items)) == sorted(map(_text, stored))
    _keyhop(cloud, "cancel")
    leftovers = set(client.list_tables()["TableNames"]) - {BY_AIRCRAFT}
    _sum_up(traffic, len(stored), is_same, leftovers)
    return traffic.is_right and is_same and not leftovers


def _sum_up(traffic: "Traffic", items: int, is_same: bool, leftovers: set[str]) -> None:
    counts = traffic.counts
    writes = counts["put"] + counts["deleted"] + counts["moved"]
    tables = sorted((traffic.old, traffic.new))
    served = ", ".join(f"{counts[f'read {table}']:,} by {table}" for table in tables)
    console.print(
        f"\nreads   {counts['read']:,}, each checked: {counts['wrong']} wrong ({served})\n"
        f"writes  {writes:,}, of them {counts['moved']:,} to another route and "
        f"{counts['deleted']:,} deletes\n"
        f"failed  {counts['failed']}\n"
        f"tables  {BY_AIRCRAFT} has {items:,} flights, "
        f"{'each as the writers left it' if is_same else 'NOT as the writers left them'}; "
        f"beside it: {', '.join(sorted(leftovers)) or 'nothing remains'}"
    )


def _text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)


def _say_wait(traffic: "Traffic") -> None:
    write, read = traffic.take_longest()
    console.print(
        f"The slowest write of this time took {write:.1f} s, the slowest read {read:.1f} s."
    )


def _keyhop(cloud: Cloud, action: str, *flags: str, may: Sequence[int] = (0,)) -> None:
    """Run `keyhop rekey`, as a user would. Raises Failed if its status is not one of `may`."""
    words = ["rekey", action, BY_AIRCRAFT, "--to", BY_ROUTE, *flags]
    console.print(f"\n$ keyhop {' '.join(words)}", markup=False)
    if (status := cloud.keyhop([*words, "--yes"])) not in may:
        raise Failed(f"keyhop rekey {action} has ended with status {status}.")


@dataclass
class Traffic:
    """Threads that read and write flights through a router.

    Attributes:
        client: A client of boto3.
        old, new: The names of the tables.
        counts: The reads, in all and by the table that served, the writes of each kind, and what
            must not happen: wrong reads and failed requests.
        longest: The seconds of the slowest write and of the slowest read.
        written: The flights as the threads left them, by number; None for a deleted one.
    """

    router: Router
    client: Any
    old: str
    new: str
    flights: Sequence[Item]
    counts: Counter[str] = field(default_factory=Counter)
    longest: tuple[float, float] = (0.0, 0.0)
    written: dict[int, Item | None] = field(default_factory=dict)
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
        """Return the seconds of the slowest write and the slowest read since the last call."""
        with self._lock:
            longest, self.longest = self.longest, (0.0, 0.0)
        return longest

    @property
    def is_right(self) -> bool:
        """Return whether every read was right and no request has failed."""
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
        before = self.written.get(flight, self.flights[flight])
        began = time.monotonic()
        if chance.random() < 0.5:
            item = self._read(before or self.flights[flight])
            with self._lock:
                write, read = self.longest
                self.longest = write, max(read, time.monotonic() - began)
            return "read" if item == before else "wrong"
        if before is None:
            what, after = "put", self.flights[flight]
            self._put(after)
        elif (number := chance.random()) < 0.2:
            what, after = "deleted", None
            self._delete(before)
        elif number < 0.4:
            what, after = "moved", {**before, "route": {"S": chance.choice(ROUTES)}}
            self._move(before, after)
        else:
            what, after = "put", {**before, "gate": {"N": str(chance.randrange(100))}}
            self._put(after)
        with self._lock:
            self.written[flight] = after
            write, read = self.longest
            self.longest = max(write, time.monotonic() - began), read
        return what

    def _read(self, flight: Item) -> Item | None:
        def get(table: str, key: Item) -> Item | None:
            answer = self.client.get_item(TableName=table, Key=key, ConsistentRead=True)
            with self._lock:
                self.counts[f"read {table}"] += 1
            item: Item | None = answer.get("Item")
            return item

        def get_by_route() -> Item | None:
            item = get(self.new, new_key(flight))
            return item and by_aircraft(item)

        return self.router.read(old=lambda: get(self.old, old_key(flight)), new=get_by_route)

    def _put(self, flight: Item) -> None:
        put = self.client.put_item
        self.router.write(
            old=lambda: put(TableName=self.old, Item=flight),
            new=lambda: put(TableName=self.new, Item=by_route(flight)),
        )

    def _delete(self, flight: Item) -> None:
        delete = self.client.delete_item
        self.router.write(
            old=lambda: delete(TableName=self.old, Key=old_key(flight)),
            new=lambda: delete(TableName=self.new, Key=new_key(flight)),
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
    """Return a flight in the form in which the application writes it after the cutover."""
    rest = {name: value for name, value in flight.items() if name not in old_key(flight)}
    return {**rest, **new_key(flight)}


def by_aircraft(item: Item) -> Item:
    """Return a flight in the form before the cutover; the inverse of `by_route`."""
    departure, _, tailnum = item["leaves"]["S"].rpartition("#")
    rest = {name: value for name, value in item.items() if name != "leaves"}
    return {**rest, "departure": {"S": departure}, "tailnum": {"S": tailnum}}


if __name__ == "__main__":
    exit_with(main)
