"""A re-key under everything at once: writers, readers, a worker each way that is killed, throttled,
stalled and given its batches twice, changes of the serving table that are called off or killed.

Each key has one writer, which knows what a strong read must bring. Waits of the protocol go by a
clock that runs faster. All that is drawn comes from a seed; what the threads make of it does not.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from threading import Event, Lock
from typing import Any

from keyhop.errors import KeyhopError
from keyhop.rekey.control import Direction, Side
from keyhop.rekey.cutover.assembly import change_of
from keyhop.rekey.routing.router import Router, WriteUncertain
from keyhop.rekey.side.table import SideTable

from testing.databases import Database, load
from tests.integration.rekey.faults import WRITES, Fate, Faulty, Killed
from tests.integration.rekey.test_cutover import QuickClock, Ticks
from tests.integration.rekey.worlds import Record, World, batches

Item = dict[str, Any]
States = list[Item | None]
"""What an item may be: one state, or two after a write of which nobody knows."""

WRITERS = 10
BATCH = 100
FREEZE_LIMIT = 100.0
LONGEST_STALL_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 0.4
"""Of a writer, in real time, so that the workers of this one process keep up."""


class Chaos:
    """keys: how many source items there are at the beginning. operations: that writers make."""

    def __init__(
        self, database: Database, name: str, seed: int, keys: int, operations: int
    ) -> None:
        self.clock = QuickClock()
        self.world = World(database, name, moments=Ticks(self.clock))
        self.world.side.put_plan(self.world.pair)
        self.chance = Random(seed)
        self.keys = keys
        self.operations = operations
        self.known: dict[str, States] = {}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.pauses: list[float] = []
        self.over = Event()
        self.at_rest = Event()
        self.lock = Lock()

    def run(self, changes: int) -> None:
        """All of it, until at rest; raises what no part of it may raise."""
        self._fill()
        share = self.operations // WRITERS
        with ThreadPoolExecutor(WRITERS + 5) as pool:
            writers = [
                pool.submit(self._writer, n, share, Random(self.chance.random()))
                for n in range(WRITERS)
            ]
            ways: tuple[Direction, ...] = ("forward", "reverse")
            others = [pool.submit(self._worker, way, Random(self.chance.random())) for way in ways]
            try:
                self._change(changes, Random(self.chance.random()))
                for one in writers:
                    one.result()
                self._turn("source")
            finally:
                self.over.set()
            for one in others:
                one.result()

    # --- the items ---

    def _fill(self) -> None:
        """Half of what there will be, which the stream brings as anything else."""
        for number in range(self.keys // 2):
            key = f"k{number}"
            self.known[key] = [_item(key, f"at {key}", 0)]
        items = (item for (item,) in self.known.values() if item is not None)
        load(self.world.client, items, self.world.pair.source)

    # --- writers, each with keys of its own ---

    def _writer(self, number: int, operations: int, chance: Random) -> None:
        router = Router(
            SideTable(self.world.connection, self.world.pair.side, stop=self.world.moments),
            clock=self.clock,
            patience=10 * FREEZE_LIMIT,
        )
        mine = [f"k{key}" for key in range(number, self.keys, WRITERS)]
        for value in range(1, operations + 1):
            time.sleep(chance.random() * LONGEST_PAUSE_SECONDS)
            key = chance.choice(mine)
            self._read(router, key)
            drawn = chance.random()
            if drawn < 0.25:
                self._write(router, key, None)
            elif drawn < 0.45:
                self._write(
                    router, key, _item(key, f"{chance.randrange(1_000_000)} of {key}", value)
                )
            elif drawn < 0.50:
                self._contend(router, key, chance.choice(mine), value)
            else:
                before = self.known.get(key, [None])[0]
                place = before["to"]["S"] if before else f"at {key}"
                self._write(router, key, _item(key, place, value))
            self._count("operations")

    def _contend(self, router: Router, key: str, other: str, value: int) -> None:
        """Want the other's place for a while; only the old table can hold both meanwhile."""
        theirs = self.known.get(other, [None])[0]
        if key == other or theirs is None or router.serving != "source":
            return
        wanted = _item(key, theirs["to"]["S"], value)

        def only_in_the_source() -> None:
            raise _NotHere

        self._write(router, key, wanted, new=only_in_the_source)
        self._read(router, other)
        self._write(router, key, _item(key, f"home of {key}", value))
        self._count("contended")

    def _write(
        self,
        router: Router,
        key: str,
        after: Item | None,
        new: Callable[[], None] | None = None,
    ) -> None:
        """Until it is acknowledged, or nobody knows."""
        before = self.known.get(key, [None])
        began = self.clock.monotonic()
        try:
            router.write(
                old=lambda: self._put_old(key, after),
                new=new or (lambda: self._put_new(before, after)),
            )
        except _NotHere:
            return
        except WriteUncertain:
            self._count("uncertain")
            self.known[key] = [*before, after]
            return
        with self.lock:
            self.pauses.append(self.clock.monotonic() - began)
        self.known[key] = [after]

    def _put_old(self, key: str, after: Item | None) -> None:
        table = self.world.pair.source
        if after is None:
            self.world.client.delete_item(TableName=table, Key={"id": {"S": key}})
        else:
            self.world.client.put_item(TableName=table, Item=after)

    def _put_new(self, before: States, after: Item | None) -> None:
        """In one transaction: it leaves its old places, and has one new."""
        table = self.world.pair.destination
        there = None if after is None else self.world.transform.forward(after)
        places = {one["to"]["S"] for one in before if one is not None}
        asked: list[Any] = [] if there is None else [{"Put": {"TableName": table, "Item": there}}]
        for place in places - ({there["pk"]["S"]} if there else set()):
            asked.append({"Delete": {"TableName": table, "Key": {"pk": {"S": place}}}})
        if asked:
            self.world.client.transact_write_items(TransactItems=asked)

    # --- readers ---

    def _read(self, router: Router, key: str) -> None:
        """By the key's own writer: nothing else may be there than what it knows."""
        may = self.known.get(key, [None])

        def old() -> Item | None:
            return self._get(self.world.pair.source, {"id": {"S": key}})

        def new() -> Item | None:
            places = {one["to"]["S"] for one in may if one is not None}
            found = [self._get(self.world.pair.destination, {"pk": {"S": at}}) for at in places]
            mine = [one for one in found if one is not None and one["id"] == {"S": key}]
            return self.world.transform.back(mine[0]) if mine else None  # type: ignore[return-value]

        try:
            found = router.read(old=old, new=new)
        except KeyhopError:
            self._count("reads that failed")
            return
        self._count("reads")
        if found not in may:
            with self.lock:
                self.wrong.append(f"{key}: {found}, and not {may}")

    def _get(self, table: str, key: Item) -> Item | None:
        found: Item | None = self.world.client.get_item(
            TableName=table, Key=key, ConsistentRead=True
        ).get("Item")
        return found

    # --- the workers ---

    def _worker(self, direction: Direction, chance: Random) -> None:
        with ThreadPoolExecutor(1) as beside:
            copies = []
            while not self.at_rest.is_set():
                last = self.over.is_set()
                records = self.world.records(direction)
                for part in batches(records, BATCH):
                    self._until_worked(direction, part, chance)
                    if chance.random() < 0.05:
                        again = Random(chance.random())
                        copies.append(beside.submit(self._until_worked, direction, part, again))
                        self._count("copied batches")
                if chance.random() < 0.002:
                    self._count("stalls")
                    self.clock.sleep(chance.random() * LONGEST_STALL_SECONDS)
                if last and not records:
                    break
                time.sleep(0.02)
            for one in copies:
                one.result()

    def _until_worked(self, direction: Direction, part: Sequence[Record], chance: Random) -> None:
        """As an event source mapping does: the same batch again until it succeeds."""
        is_last = False
        while True:
            client = Faulty(self.world.connection.client, self._fates(chance, is_last))
            connection = replace(self.world.connection, client=client)
            replicator = self.world.replicator(direction, lambda name, one=connection: one)
            try:
                replicator.work(part)
                return
            except Killed:
                self._count("kills")
                self.clock.sleep(chance.random() * 4)
            except KeyhopError:
                self._count("failed batches")
            finally:
                client.land()  # within the 5 seconds after which nothing takes effect

    def _fates(self, chance: Random, is_last: bool) -> Callable[[str, Mapping[str, Any]], Fate]:
        def fate(operation: str, parameters: Mapping[str, Any]) -> Fate:
            if operation in WRITES:
                fates = ["throttled", "lost", "killed", None]
                drawn: Fate = chance.choices(fates, [100, 2, 1, 897])[0]
            else:
                drawn = "throttled" if chance.random() < 0.1 else None
            if drawn is not None:
                self._count(drawn)
            return drawn

        return fate

    # --- changes ---

    def _change(self, changes: int, chance: Random) -> None:
        """Cutovers, rollbacks, aborts, killed coordinators."""
        for _ in range(changes):
            time.sleep(chance.random())
            serving = self.world.side.control().serving
            to: Side = "destination" if serving == "source" else "source"
            drawn = chance.random()
            if drawn < 0.25:
                self._killed_change(to, chance.choice(("closing", "frozen", "drained", "turned")))
            elif drawn < 0.4:
                self._abort_soon(to, chance)
            else:
                self._turn(to)

    def _made(self, to: Side, told: Callable[[str], None] = lambda step: None) -> Any:
        change = change_of(
            self.world.connection,
            self.world.pair.destination,
            to,
            self.world.streams,
            clock=self.clock,
            freeze_limit=FREEZE_LIMIT,
            told=told,
        )
        change.look = lambda control: []
        return change

    def _turn(self, to: Side) -> None:
        """Until it has come about."""
        while self.world.side.control() is not None:
            try:
                found = self._made(to).run()
            except KeyhopError:
                self._count("changes that failed")
                continue
            self._count(f"changes: {found.action}")
            if found.action == "done":
                return

    def _killed_change(self, to: Side, where: str) -> None:
        """Nobody goes on with it but routers, and the next change."""

        def told(step: str) -> None:
            if step.startswith(where):
                raise Killed

        last: dict[str, Any] | None = None
        change = self._made(to, told)
        try:
            while (found := change.step(last)).action == "wait":
                self.clock.sleep(found.seconds)
                last = found.to_json()
            self._count(f"changes: {found.action}")
        except Killed:
            self._count(f"killed when {where}")
        except KeyhopError:
            self._count("changes that failed")

    def _abort_soon(self, to: Side, chance: Random) -> None:
        with ThreadPoolExecutor(1) as pool:
            change = pool.submit(self._made(to).run)
            while not change.done():
                control = self.world.side.control()
                if control.stage in ("closing", "frozen", "fenced") and chance.random() < 0.1:
                    self.world.side.swap(control, control.aborted())
                    self._count("aborts")
                time.sleep(0.1)
            try:
                self._count(f"changes: {change.result().action}")
            except KeyhopError:
                self._count("changes that failed")

    def _count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1


class _NotHere(Exception):
    """This is not done in the table that serves now."""


def _item(key: str, place: str, value: int) -> Item:
    return {"id": {"S": key}, "to": {"S": place}, "n": {"N": str(value)}}
