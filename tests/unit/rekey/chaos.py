"""A chaos test of a re-key: writers, readers, workers and changes of the serving table at once.

Workers are killed, throttled and stalled, and get batches twice. Changes are called off or killed.
Each key has one writer, so the possible results of a strong read are known. A seed decides
everything, in virtual time (testing/simulation), so a run is the same on every machine.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import ClientError
from keyhop.errors import KeyhopError, WriteUncertain
from keyhop.rekey.control import Direction, Side
from keyhop.rekey.cutover.change import change_of
from keyhop.rekey.routing.router import Router

from testing.simulation.network import Fate, drawn
from testing.simulation.schedule import Process
from tests.unit.rekey.chaos_copy import ChaosCopy
from tests.unit.rekey.chaos_world import ChaosWorld

Item = dict[str, Any]
Record = dict[str, Any]
Key = dict[str, Any]

WRITERS = 10
READERS = 4
BATCH = 100
FREEZE_LIMIT = 15.0
LONGEST_STALL_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 2.0
"""The longest pause of a writer between two writes."""
KILL_SECONDS = 5.0
POLL_SECONDS = 0.25
MOST_SECONDS = 40_000.0
"""The limit in virtual time after which a run counts as endless."""

WORKERS_FATES = {"throttled": 0.1, "late": 0.002, "lost": 0.002, "killed": 0.0005}
"""The share of requests with each fate (testing/simulation/network.py)."""
CROWDED = 0.05
"""The share of requests about streams that are throttled for a third reader."""
COORDINATORS_FATES = {"throttled": 0.02, "lost": 0.002}
APPLICATIONS_FATES = {"answered late": 0.003}


class Chaos:
    """A re-key with numbers of keys, of writers' operations and of changes of the serving table.

    With `in_peace`, no process is killed or stalled, and no request fails. With `copies`, the first
    items are in no stream record, and are copied and verified before the first change. `wrong`
    describes reads with an impossible result; `pauses` has the seconds that each write took.
    """

    def __init__(
        self,
        world: ChaosWorld,
        keys: int,
        operations: int,
        changes: int,
        *,
        in_peace: bool = False,
        copies: bool = False,
    ) -> None:
        self.world = world
        self.is_copied = not copies
        self.copies = copies
        self.chance = world.chance
        self.in_peace = in_peace
        if not in_peace:
            world.streams.is_crowded = lambda operation: self.chance.random() < CROWDED
        self.application = world.connection(self._fate(APPLICATIONS_FATES), timeout=float("inf"))
        self.keys = [f"k{number}" for number in range(keys)]
        self.share = operations // WRITERS
        self.changes = changes
        self.past: dict[str, list[Item | None]] = {key: [None] for key in self.keys}
        self.settled: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.pauses: list[float] = []
        self.workers: list[Process] = []
        self.given_up: list[tuple[Direction, Key, Sequence[Key]]] = []
        self.writing = WRITERS
        self.busy = 0
        self.over = False

    def run(self) -> None:
        """Run all actors until nothing remains to be done, and raise their unexpected errors."""
        world = self.world
        first = {key: _item(key, f"at {key}", 0) for key in self.keys[::2]}
        self.past |= {key: [item] for key, item in first.items()}
        world.put_first(list(first.values()))
        if self.copies:
            world.forget_records()
        world.begin()
        ways: tuple[Direction, ...] = ("forward", "reverse")
        actors: list[Callable[[], None]] = [
            *(partial(self._writer, number) for number in range(WRITERS)),
            *(self._reader for _ in range(READERS)),
            *(partial(self._shard, way, shard) for way in ways for shard in range(world.shards)),
            self._redrive,
            self._change,
            self._watch,
            *([self._copy] if self.copies else []),
            *([] if self.in_peace else [self._kill]),
        ]
        for actor in actors:
            world.schedule.spawn(actor, Process("chaos"))
        world.schedule.run()

    def possible_items(self, key: str) -> list[Item | None]:
        """Return the last acknowledged item of a key, and what was written after it."""
        return self.past[key][self.settled[key] :]

    # --- the clients of routers ---

    def _router(self) -> Router:
        world = self.world
        return Router(
            world.side(), clients=(), clock=world, patience=10 * FREEZE_LIMIT, chance=self.chance
        )

    def _writer(self, number: int) -> None:
        """Write the keys of one writer."""
        router, chance = self._router(), self.chance
        keys = self.keys[number::WRITERS]
        for value in range(1, self.share + 1):
            self.world.sleep(chance.random() * LONGEST_PAUSE_SECONDS)
            key = chance.choice(keys)
            self._read(router, key)
            dice = chance.random()
            if dice < 0.25:
                self._write(router, key, None)
            elif dice < 0.45:
                place = f"{chance.randrange(1_000_000)} of {key}"
                self._write(router, key, _item(key, place, value))
            elif dice < 0.50:
                self._contend(router, key, chance.choice(keys), value)
            else:
                self._write(router, key, _item(key, self._place(key), value))
            self.counts["operations"] += 1
        self.writing -= 1

    def _reader(self) -> None:
        router = self._router()
        while not self.over:
            self.world.sleep(2 * self.chance.random())
            self._read(router, self.chance.choice(self.keys))

    def _place(self, key: str) -> str:
        current = self.possible_items(key)[0]
        return f"at {key}" if current is None else str(current["to"]["S"])

    def _contend(self, router: Router, key: str, other_key: str, value: int) -> None:
        """Give two items the same place for a while; only the old table can hold both."""
        other_item = self.possible_items(other_key)[0]
        if key == other_key or other_item is None or router.serving != "source":
            return
        contender = _item(key, other_item["to"]["S"], value)

        def only_in_the_source() -> None:
            raise _NotHere

        self._write(router, key, contender, new=only_in_the_source)
        self._read(router, other_key)
        self._write(router, key, _item(key, f"home of {key}", value))
        self.counts["contended"] += 1

    def _write(
        self, router: Router, key: str, after: Item | None, new: Callable[[], None] | None = None
    ) -> None:
        """Write until the write is acknowledged or uncertain."""
        before = self.possible_items(key)
        started = self.world.monotonic()
        self.past[key].append(after)
        try:
            router.write(
                old=lambda: self._put_old(key, after),
                new=new or (lambda: self._put_new(before, after)),
            )
        except _NotHere:
            self.past[key].pop()
        except WriteUncertain:
            self.counts["uncertain"] += 1
        else:
            self.pauses.append(self.world.monotonic() - started)
            self.settled[key] = len(self.past[key]) - 1

    def _put_old(self, key: str, after: Item | None) -> None:
        table = self.world.pair.source
        if after is None:
            self._send("delete_item", TableName=table, Key={"id": {"S": key}})
        else:
            self._send("put_item", TableName=table, Item=after)

    def _put_new(self, before: Sequence[Item | None], after: Item | None) -> None:
        """Put the item at its new place and delete its old places, in one transaction."""
        table = self.world.pair.destination
        image = None if after is None else self.world.transform.forward(after)
        places = {item["to"]["S"] for item in before if item is not None}
        writes: list[Any] = [] if image is None else [{"Put": {"TableName": table, "Item": image}}]
        for place in sorted(places - ({image["pk"]["S"]} if image else set())):
            writes.append({"Delete": {"TableName": table, "Key": {"pk": {"S": place}}}})
        if writes:
            self._send("transact_write_items", TransactItems=writes)

    def _read(self, router: Router, key: str) -> None:
        """Check that a read returns an item of before the read, or one written during the read."""
        past_count = len(self.past[key])
        possible = self.possible_items(key)

        def old() -> Item | None:
            return self._get(self.world.pair.source, {"id": {"S": key}})

        def new() -> Item | None:
            places = sorted({item["to"]["S"] for item in possible if item is not None})
            images = [self._get(self.world.pair.destination, {"pk": {"S": at}}) for at in places]
            matches = [item for item in images if item is not None and item["id"] == {"S": key}]
            return self.world.transform.back(matches[0]) if matches else None  # type: ignore[return-value]

        item = router.read(old=old, new=new)
        if len(self.past[key]) > past_count and router.serving == "destination":
            return  # it may have moved to a place that this reader did not read
        self.counts["reads"] += 1
        if item not in [*possible, *self.past[key][past_count:]]:
            self.wrong.append(f"{key}: {item}, and not {possible}")

    def _get(self, table: str, key: Item) -> Item | None:
        response = self._send("get_item", TableName=table, Key=key, ConsistentRead=True)
        item: Item | None = response.get("Item")
        return item

    def _send(self, operation: str, **parameters: Any) -> dict[str, Any]:
        response: dict[str, Any] = self.application.client.call(operation, **parameters)
        return response

    # --- the workers ---

    def _shard(self, direction: Direction, number: int) -> None:
        """Deliver the batches of one shard in order, as an event source mapping does."""
        name = self.world.pair.source if direction == "forward" else self.world.pair.destination
        position, chance = 0, self.chance
        batch: Sequence[Record] = []

        def is_quiet() -> bool:
            nonlocal batch
            batch = self.world.records(name, number, position, BATCH)
            return not batch and (not self.over or self.busy > 0)

        while True:
            self.world.schedule.sleep_while(is_quiet, self.world.poll_seconds)
            if not batch:
                return
            self.busy += 1
            position += len(batch)
            if chance.random() < 0.05:
                second = partial(self._until_worked, direction, batch)
                self.world.schedule.spawn(second, Process("chaos"))
                self.busy += 1
                self.counts["copied batches"] += 1
            if chance.random() < 0.005 and not self.in_peace:
                self.counts["stalls"] += 1
                self.world.sleep(chance.random() * LONGEST_STALL_SECONDS)
            self._until_worked(direction, batch)

    def _until_worked(self, direction: Direction, batch: Sequence[Record]) -> None:
        self._in_a_process(direction, lambda replicator: replicator.work(batch))
        self.busy -= 1

    def _redrive(self) -> None:
        """Take the keys that a worker gave up from the failure queue, and settle them."""
        while not self.over or self.busy or self.given_up:
            self.world.sleep(10 * POLL_SECONDS)
            while self.given_up:
                direction, source, places = self.given_up.pop()
                self.counts["redriven"] += 1
                self._in_a_process(
                    direction, lambda replicator, key=source, at=places: replicator.again(key, at)
                )

    def _in_a_process(self, direction: Direction, work: Callable[[Any], Any]) -> None:
        """Do the work in a new process again and again, until it is done."""
        world = self.world
        outcome: list[str] = []
        while "done" not in outcome:
            process = Process("worker")
            connection = world.connection(self._fate(WORKERS_FATES))
            give_up = partial(self._give_up, direction)

            def attempt(connection: Any = connection, give_up: Any = give_up) -> None:
                try:
                    result = work(world.replicator(direction, connection, give_up))
                    outcome.append("later" if result is False else "done")
                except KeyhopError:
                    outcome.append("failed batches")

            outcome.clear()
            self.workers.append(process)
            world.schedule.spawn(attempt, process)
            world.schedule.sleep_while(partial(_is_working, process, outcome), 0.02)
            self.workers.remove(process)
            self.counts[outcome[0] if outcome else "kills"] += 1
            if "done" not in outcome:
                world.sleep(self.chance.random() * 4)

    def _give_up(self, direction: Direction, source: Key, places: Sequence[Key]) -> None:
        self.counts["given up"] += 1
        self.given_up.append((direction, source, places))

    def _kill(self) -> None:
        while not self.over:
            self.world.sleep(KILL_SECONDS)
            number = self.chance.randrange(2 * self.world.shards)  # it may be no worker's number
            if number < len(self.workers):
                self.workers[number].is_alive = False

    # --- the copy ---

    def _copy(self) -> None:
        """Copy, and then verify; a copy that was killed continues, a verification restarts."""
        copying = ChaosCopy(self.world, self.counts)
        give_up = partial(self._give_up, "forward")
        self._until_done("copy", copying.copy)
        self._until_done("verify", lambda connection: copying.verify(connection, give_up))
        self.is_copied = True

    def _until_done(self, task: str, work: Callable[[Any], None]) -> None:
        world, outcome = self.world, list[str]()
        while "done" not in outcome:
            process = Process(task)
            connection = world.connection(self._fate(WORKERS_FATES))

            def attempt(connection: Any = connection) -> None:
                try:
                    work(connection)
                    outcome.append("done")
                except KeyhopError:
                    outcome.append("failed")

            outcome.clear()
            self.workers.append(process)
            world.schedule.spawn(attempt, process)
            world.schedule.sleep_while(partial(_is_working, process, outcome), POLL_SECONDS)
            self.workers.remove(process)
            self.counts[f"{task}: {outcome[0] if outcome else 'killed'}"] += 1

    # --- changes ---

    def _change(self) -> None:
        """Make cutovers and rollbacks, of which some are killed, and some are called off."""
        while not self.is_copied:
            self.world.sleep(POLL_SECONDS)
        schedule = self.world.schedule
        side = self.world.side()
        done_count = 0
        while done_count < self.changes:
            self.world.sleep(self.chance.random() * 10)
            serving = side.control().serving
            to: Side = "destination" if serving == "source" else "source"
            dice = self.chance.random()
            process, outcome = Process("coordinator"), list[str]()
            schedule.spawn(partial(self._turn, to, outcome), process)
            if self.in_peace:
                pass
            elif dice < 0.3:
                self.world.sleep(self.chance.random() * 60)
                process.is_alive = bool(outcome)
                self.counts["killed changes"] += not outcome
            elif dice < 0.5:
                self.world.sleep(self.chance.random() * 60)
                control = side.control()
                if control.stage in ("closing", "frozen", "fenced"):
                    self.counts["aborts"] += side.swap(control, control.aborted())
            while not outcome and process.is_alive:
                self.world.sleep(0.2)
            done_count += outcome == ["changes: done"]
        while self.writing:
            self.world.sleep(POLL_SECONDS)
        while side.control().serving != "source" or side.control().stage != "open":
            self._turn("source", [])
        self.over = True

    def _turn(self, to: Side, outcome: list[str]) -> None:
        world = self.world
        try:
            change = change_of(
                world.connection(self._fate(COORDINATORS_FATES)),
                world.pair.destination,
                to,
                world.streams,
                clock=world,
                freeze_limit=FREEZE_LIMIT,
                chance=self.chance,
                pool=world.pool,
                stop=world.stop,
            )
            change.look = lambda control: []
            outcome.append(f"changes: {change.run().action}")
        except (KeyhopError, ClientError) as error:
            outcome.append(f"changes: {type(error).__name__}")
        self.counts[outcome[0]] += 1

    def _watch(self) -> None:
        while not self.over or self.busy:
            self.world.sleep(60.0)
            if self.world.monotonic() > MOST_SECONDS:
                raise AssertionError(f"no end: {dict(self.counts)}")

    def _fate(self, shares: dict[str, float]) -> Fate:
        """Return a function that draws the fate of a request, given the share of each fate."""
        return lambda operation, request: drawn(
            self.chance.random(), {} if self.in_peace else shares
        )

    # --- at rest ---

    def sweep(self) -> None:
        """Settle the remaining claims, as the next batches would."""
        for _ in range(5):
            self._in_a_process("forward", lambda replicator: replicator.sweep() is not None)

    def sweep_at_rest(self) -> None:
        """Sweep after all actors have ended."""
        self.world.schedule.spawn(self.sweep, Process("chaos"))
        self.world.schedule.run()

    def lost_items(self) -> dict[str, Any]:
        """Return the keys whose source item is not a possible one, with both."""
        items = {item["id"]["S"]: item for item in self.world.items(self.world.pair.source)}
        return {
            key: (items.get(key), self.possible_items(key))
            for key in self.keys
            if items.get(key) not in self.possible_items(key)
        }

    def different_places(self) -> set[str]:
        """Return the places whose destination item does not follow from the source."""
        pair = self.world.pair
        actual = {item["pk"]["S"]: item for item in self.world.items(pair.destination)}
        expected = {
            item["to"]["S"]: self.world.transform.forward(item)
            for item in self.world.items(pair.source)
        }
        return {
            place
            for place in expected.keys() | actual.keys()
            if expected.get(place) != actual.get(place)
        }


class _NotHere(Exception):
    """The serving table cannot do this."""


def _item(key: str, place: str, value: int) -> Item:
    return {"id": {"S": key}, "to": {"S": place}, "n": {"N": str(value)}}


def _is_working(process: Process, outcome: list[str]) -> bool:
    return process.is_alive and not outcome
