"""A re-key under everything at once: writers, readers, workers that are killed, throttled, stalled
and given their batches twice, changes of the serving table that are called off or killed.

Each key has one writer, so what a strong read may bring is known. All of it goes by a seed, in
virtual time (testing/simulation): on any machine a run is the same.
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
"""Of a writer."""
KILL_SECONDS = 5.0
POLL_SECONDS = 0.25
MOST_SECONDS = 40_000.0
"""Of virtual time: whoever needs more comes to no end."""

WORKERS_FATES = {"throttled": 0.1, "late": 0.002, "lost": 0.002, "killed": 0.0005}
"""Shares of requests (simulation/network.py)."""
CROWDED = 0.05
"""The share of requests about streams that are throttled for a third reader."""
COORDINATORS_FATES = {"throttled": 0.02, "lost": 0.002}
APPLICATIONS_FATES = {"answered late": 0.003}


class Chaos:
    """keys: how many there may be. operations: that writers make. changes: of the serving table.
    in_peace: nobody is killed or stalled, and no request fails. copies: whether the first items are
    in no record, and are copied and verified under the traffic, before the first change.

    wrong: what a reader must not have seen. pauses: seconds that each write took.
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
        """All of it, until at rest; raises what no part of it may raise."""
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

    def may_be(self, key: str) -> list[Item | None]:
        """What it may be now: the last that was acknowledged, and whatever came after that."""
        return self.past[key][self.settled[key] :]

    # --- who goes by routers ---

    def _router(self) -> Router:
        world = self.world
        return Router(
            world.side(), clients=(), clock=world, patience=10 * FREEZE_LIMIT, chance=self.chance
        )

    def _writer(self, number: int) -> None:
        """With keys of its own."""
        router, chance = self._router(), self.chance
        mine = self.keys[number::WRITERS]
        for value in range(1, self.share + 1):
            self.world.sleep(chance.random() * LONGEST_PAUSE_SECONDS)
            key = chance.choice(mine)
            self._read(router, key)
            dice = chance.random()
            if dice < 0.25:
                self._write(router, key, None)
            elif dice < 0.45:
                place = f"{chance.randrange(1_000_000)} of {key}"
                self._write(router, key, _item(key, place, value))
            elif dice < 0.50:
                self._contend(router, key, chance.choice(mine), value)
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
        now = self.may_be(key)[0]
        return f"at {key}" if now is None else str(now["to"]["S"])

    def _contend(self, router: Router, key: str, other: str, value: int) -> None:
        """Want the other's place for a while; only the old table can hold both meanwhile."""
        theirs = self.may_be(other)[0]
        if key == other or theirs is None or router.serving != "source":
            return
        wanted = _item(key, theirs["to"]["S"], value)

        def only_in_the_source() -> None:
            raise _NotHere

        self._write(router, key, wanted, new=only_in_the_source)
        self._read(router, other)
        self._write(router, key, _item(key, f"home of {key}", value))
        self.counts["contended"] += 1

    def _write(
        self,
        router: Router,
        key: str,
        after: Item | None,
        new: Callable[[], None] | None = None,
    ) -> None:
        """Until it is acknowledged, or nobody knows."""
        before = self.may_be(key)
        began = self.world.monotonic()
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
            self.pauses.append(self.world.monotonic() - began)
            self.settled[key] = len(self.past[key]) - 1

    def _put_old(self, key: str, after: Item | None) -> None:
        table = self.world.pair.source
        if after is None:
            self._send("delete_item", TableName=table, Key={"id": {"S": key}})
        else:
            self._send("put_item", TableName=table, Item=after)

    def _put_new(self, before: Sequence[Item | None], after: Item | None) -> None:
        """In one transaction: it leaves its old places, and has one new."""
        table = self.world.pair.destination
        there = None if after is None else self.world.transform.forward(after)
        places = {one["to"]["S"] for one in before if one is not None}
        asked: list[Any] = [] if there is None else [{"Put": {"TableName": table, "Item": there}}]
        for place in sorted(places - ({there["pk"]["S"]} if there else set())):
            asked.append({"Delete": {"TableName": table, "Key": {"pk": {"S": place}}}})
        if asked:
            self._send("transact_write_items", TransactItems=asked)

    def _read(self, router: Router, key: str) -> None:
        """Nothing else may be there than what was when it was asked, or has been written since."""
        asked = len(self.past[key])
        may = self.may_be(key)

        def old() -> Item | None:
            return self._get(self.world.pair.source, {"id": {"S": key}})

        def new() -> Item | None:
            places = sorted({one["to"]["S"] for one in may if one is not None})
            found = [self._get(self.world.pair.destination, {"pk": {"S": at}}) for at in places]
            mine = [one for one in found if one is not None and one["id"] == {"S": key}]
            return self.world.transform.back(mine[0]) if mine else None  # type: ignore[return-value]

        found = router.read(old=old, new=new)
        if len(self.past[key]) > asked and router.serving == "destination":
            return  # it may have moved to where this reader did not look
        self.counts["reads"] += 1
        if found not in [*may, *self.past[key][asked:]]:
            self.wrong.append(f"{key}: {found}, and not {may}")

    def _get(self, table: str, key: Item) -> Item | None:
        found: Item | None = self._send(
            "get_item", TableName=table, Key=key, ConsistentRead=True
        ).get("Item")
        return found

    def _send(self, operation: str, **parameters: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.application.client.call(operation, **parameters)
        return answer

    # --- the workers ---

    def _shard(self, direction: Direction, number: int) -> None:
        """An event source mapping's part for one shard: its batches in order, each until done."""
        name = self.world.pair.source if direction == "forward" else self.world.pair.destination
        at, chance = 0, self.chance
        found: Sequence[Record] = []

        def is_quiet() -> bool:
            nonlocal found
            found = self.world.records(name, number, at, BATCH)
            return not found and (not self.over or self.busy > 0)

        while True:
            self.world.schedule.sleep_while(is_quiet, self.world.poll_seconds)
            if not found:
                return
            self.busy += 1
            at += len(found)
            if chance.random() < 0.05:
                again = partial(self._until_worked, direction, found)
                self.world.schedule.spawn(again, Process("chaos"))
                self.busy += 1
                self.counts["copied batches"] += 1
            if chance.random() < 0.005 and not self.in_peace:
                self.counts["stalls"] += 1
                self.world.sleep(chance.random() * LONGEST_STALL_SECONDS)
            self._until_worked(direction, found)

    def _until_worked(self, direction: Direction, batch: Sequence[Record]) -> None:
        self._in_a_process(direction, lambda replicator: replicator.work(batch))
        self.busy -= 1

    def _redrive(self) -> None:
        """What was given up is taken from the failure queue, and settled."""
        while not self.over or self.busy or self.given_up:
            self.world.sleep(10 * POLL_SECONDS)
            while self.given_up:
                direction, source, places = self.given_up.pop()
                self.counts["redriven"] += 1
                self._in_a_process(direction, lambda one, key=source, at=places: one.again(key, at))

    def _in_a_process(self, direction: Direction, work: Callable[[Any], Any]) -> None:
        """Again and again until it is done."""
        world = self.world
        outcome: list[str] = []
        while "done" not in outcome:
            process = Process("worker")
            connection = world.connection(self._fate(WORKERS_FATES))
            give_up = partial(self._give_up, direction)

            def attempt(connection: Any = connection, give_up: Any = give_up) -> None:
                try:
                    done = work(world.replicator(direction, connection, give_up))
                    outcome.append("later" if done is False else "done")
                except KeyhopError:
                    outcome.append("failed batches")

            outcome.clear()
            self.workers.append(process)
            world.schedule.spawn(attempt, process)
            world.schedule.sleep_while(partial(_is_at_work, process, outcome), 0.02)
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
            at = self.chance.randrange(2 * self.world.shards)  # so not always one that works
            if at < len(self.workers):
                self.workers[at].is_alive = False

    # --- the copy ---

    def _copy(self) -> None:
        """Copy, and then verify; each goes on, or begins again, if it was killed or has failed."""
        copying = ChaosCopy(self.world, self.counts)
        give_up = partial(self._give_up, "forward")
        self._until_done("copy", copying.copy)
        self._until_done("verify", lambda connection: copying.verify(connection, give_up))
        self.is_copied = True

    def _until_done(self, what: str, work: Callable[[Any], None]) -> None:
        world, outcome = self.world, list[str]()
        while "done" not in outcome:
            process = Process(what)
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
            world.schedule.sleep_while(partial(_is_at_work, process, outcome), POLL_SECONDS)
            self.workers.remove(process)
            self.counts[f"{what}: {outcome[0] if outcome else 'killed'}"] += 1

    # --- changes ---

    def _change(self) -> None:
        """Cutovers and rollbacks; some are killed, some called off by somebody else."""
        while not self.is_copied:
            self.world.sleep(POLL_SECONDS)
        schedule = self.world.schedule
        side = self.world.side()
        made = 0
        while made < self.changes:
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
            made += outcome == ["changes: done"]
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

    def _fate(self, of: dict[str, float]) -> Fate:
        """By the share of requests that each meets."""
        return lambda operation, request: drawn(self.chance.random(), {} if self.in_peace else of)

    # --- at rest ---

    def sweep(self) -> None:
        """Settle the claims that are left, as the next batches would."""
        for _ in range(5):
            self._in_a_process("forward", lambda replicator: replicator.sweep() is not None)

    def at_rest(self) -> None:
        """Sweep, outside of all."""
        self.world.schedule.spawn(self.sweep, Process("chaos"))
        self.world.schedule.run()

    def lost(self) -> dict[str, Any]:
        """Source items that are not what they may be."""
        here = {item["id"]["S"]: item for item in self.world.items(self.world.pair.source)}
        return {
            key: (here.get(key), self.may_be(key))
            for key in self.keys
            if here.get(key) not in self.may_be(key)
        }

    def differ(self) -> set[str]:
        """Places that do not have what the source says."""
        pair = self.world.pair
        there = {item["pk"]["S"]: item for item in self.world.items(pair.destination)}
        wanted = {
            item["to"]["S"]: self.world.transform.forward(item)
            for item in self.world.items(pair.source)
        }
        return {
            place for place in wanted.keys() | there.keys() if wanted.get(place) != there.get(place)
        }


class _NotHere(Exception):
    """This is not done in the table that serves now."""


def _item(key: str, place: str, value: int) -> Item:
    return {"id": {"S": key}, "to": {"S": place}, "n": {"N": str(value)}}


def _is_at_work(process: Process, outcome: list[str]) -> bool:
    return process.is_alive and not outcome
