"""Markers, routers and a cutover on a real database, with threads that run at once."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Any

import boto3
import pytest
from botocore.config import Config
from keyhop.errors import GaveUp, KeyhopError
from keyhop.rekey.control import Direction, Side
from keyhop.rekey.cutover.assembly import Probe, change_of
from keyhop.rekey.cutover.markers import LATE_SECONDS, Markers
from keyhop.rekey.routing.router import Router
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE
from keyhop.rekey.side.table import SideTable

from testing.databases import Database
from testing.marks import prove
from testing.servers import LOCAL_CREDENTIALS
from testing.virtual_time import VirtualClock
from tests.integration.rekey.worlds import Moments, World

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.fixture
def world(dynamodb: Database, table_name: str) -> World:
    return World(dynamodb, table_name)


def markers_of(world: World, table: str, side: SideTable | None = None) -> Markers:
    return Markers(
        world.connection, table, "source", side or world.side, world.streams, VirtualClock()
    )


# --- markers ---


@pytest.mark.parametrize(
    ("type_", "sort"), [("S", None), ("N", ("name", "S")), ("B", ("at", "N")), ("S", ("b", "B"))]
)
def test_markers_are_found_in_the_stream_and_leave_no_item(
    world: World, dynamodb: Database, type_: str, sort: Any
) -> None:
    table = f"{world.name}-{type_}-{sort and sort[1]}"
    dynamodb.create(table, ("key", type_), sort, StreamSpecification=STREAM)
    markers = markers_of(world, table)
    markers.locate()
    made = markers.mark()
    assert len(made) == len([shard for shard in markers.shards() if shard.is_open])
    assert markers.unseen(made) == len(made)
    for marker in made:
        world.side.see_marker(marker, {})
    assert markers.unseen(made) == 0
    markers.check_shards()
    assert world.items(table) == []


def test_the_worker_answers_a_marker_when_its_batch_is_done(world: World) -> None:
    markers = markers_of(world, world.pair.source)
    markers.locate()
    made = markers.mark()
    world.put("a", "x")
    world.replicator().work(world.records())
    assert markers.unseen(made) == 0
    assert len(world.there) == 1  # and has copied none


def test_a_worker_that_does_not_answer_is_told_before_anything_is_frozen(world: World) -> None:
    with pytest.raises(GaveUp, match="is its function at work"):
        markers_of(world, world.pair.source).prepare()


def test_what_a_killed_attempt_has_left_is_removed(world: World) -> None:
    markers = markers_of(world, world.pair.source)
    key = {"id": {"S": "a marker's"}}
    told = {"table": world.pair.source, "key": key, "at": time.time() - LATE_SECONDS - 1}
    world.side.put_marker("one", {**told, "at": VirtualClock().time() - LATE_SECONDS - 1})
    item = {**key, MARKER_ATTRIBUTE: {"S": "one"}}
    world.client.put_item(TableName=world.pair.source, Item=item)
    markers.sweep()
    assert world.items(world.pair.source) == []
    assert world.side.markers() == {}


def test_an_item_of_somebody_elses_is_no_marker(world: World) -> None:
    markers = markers_of(world, world.pair.source)
    told = {"table": world.pair.source, "key": {"id": {"S": "mine"}}, "at": 0.0}
    world.side.put_marker("one", told)
    world.put("mine", "x")
    markers.sweep()
    assert len(world.items(world.pair.source)) == 1


# --- the probe ---


def test_a_write_that_must_be_refused_proves_the_way_back(world: World) -> None:
    world.put("a", "x")
    probe = Probe(world.connection, world.pair.source)
    assert probe.why_not({"id": {"S": "nobody's"}}) == ""
    assert probe.why_not({"id": {"S": "a"}}) == ""
    assert len(world.items(world.pair.source)) == 1


def test_a_table_that_is_not_there_is_no_way_back(world: World) -> None:
    assert "no table" in Probe(world.connection, "nowhere").why_not({"id": {"S": "a"}})


# --- boto3's own client, guarded ---


@pytest.mark.parametrize("kind", ["client", "resource"])
def test_boto3_sends_nothing_by_a_view_that_has_ended(world: World, kind: str) -> None:
    """As a function that was frozen between the choice and the request, while a cutover was made.
    With boto3's own retries on.
    """
    clock = VirtualClock()
    config = Config(retries={"mode": "standard", "total_max_attempts": 3})
    given = {"endpoint_url": world.database.url, "config": config, **LOCAL_CREDENTIALS}
    boto = getattr(boto3, kind)("dynamodb", **given)
    router = Router(world.side, clock=clock)
    router.guard(boto)
    client = boto if kind == "client" else boto.meta.client

    def old() -> str:
        clock.sleep(3_600)
        control = world.side.control()
        for change in ("closed", "froze", "fenced", "turned", "opened"):
            after = getattr(control, change)()
            assert world.side.swap(control, after)
            control = after
        client.put_item(TableName=world.pair.source, Item={"id": {"S": "late"}})
        return "old"

    assert router.write(old=old, new=lambda: "new") == "new"
    assert world.items(world.pair.source) == []


def test_boto3_sends_as_ever_while_nothing_has_changed(world: World) -> None:
    client = boto3.client("dynamodb", endpoint_url=world.database.url, **LOCAL_CREDENTIALS)
    clock = VirtualClock()
    router = Router(world.side, clock=clock)
    router.guard(client)

    def old() -> None:
        clock.sleep(3_600)
        client.put_item(TableName=world.pair.source, Item={"id": {"S": "late"}})

    router.write(old=old, new=lambda: None)
    assert len(world.items(world.pair.source)) == 1


# --- all together, with threads ---

SPEED = 10
"""Seconds of the test's clock in one: a long lease is three."""


FREEZE_LIMIT = 300.0
"""So that a slow machine, too, comes to an end."""


class QuickClock:
    """Real time, which goes faster; on a slow machine changes are called off, and tried again."""

    def monotonic(self) -> float:
        return time.monotonic() * SPEED

    def time(self) -> float:
        return self.monotonic() + 1_000_000_000.0

    def sleep(self, seconds: float, /) -> None:
        time.sleep(seconds / SPEED)


class Ticks(Moments):
    """What the worker waits by."""

    def __init__(self, clock: QuickClock) -> None:
        self.clock = clock
        super().__init__()

    @property  # type: ignore[override]
    def now(self) -> float:
        return self.clock.monotonic()

    @now.setter
    def now(self, _: float) -> None:
        pass

    def wait(self, timeout: float | None = None) -> bool:
        self.clock.sleep(timeout or 0.0)
        return False


class Traffic:
    """Writers that count up, readers that see that nothing goes back, a worker each way."""

    def __init__(self, database: Database, name: str, seed: int) -> None:
        self.clock = QuickClock()
        self.world = World(database, name, moments=Ticks(self.clock))
        self.chance = random.Random(seed)
        self.over = Event()
        self.lock = Lock()
        self.floor: dict[str, int] = {}
        self.acknowledged = self.reads = 0
        self.refused: list[str] = []
        self.stale: list[str] = []

    def router(self) -> Router:
        side = SideTable(self.world.connection, self.world.pair.side, stop=self.world.moments)
        return Router(side, clock=self.clock)

    def write(self, side: Side, key: str, value: int) -> Callable[[], None]:
        rest = {"id": {"S": key}, "n": {"N": str(value)}}
        table, names = self.world.pair.source, {"to": {"S": f"at {key}"}}
        if side == "destination":
            table, names = self.world.pair.destination, {"pk": {"S": f"at {key}"}}

        def put() -> None:
            self.world.client.put_item(TableName=table, Item={**names, **rest})

        return put

    def read(self, side: Side, key: str) -> Callable[[], int]:
        table, place = self.world.pair.source, {"id": {"S": key}}
        if side == "destination":
            table, place = self.world.pair.destination, {"pk": {"S": f"at {key}"}}

        def get() -> int:
            answer = self.world.client.get_item(TableName=table, Key=place, ConsistentRead=True)
            return int(answer["Item"]["n"]["N"]) if "Item" in answer else 0

        return get

    def writer(self, key: str) -> None:
        router, value = self.router(), 0
        while not self.over.is_set():
            value += 1
            try:
                router.write(
                    old=self.write("source", key, value), new=self.write("destination", key, value)
                )
            except KeyhopError as error:  # of a machine that stands still now and then
                with self.lock:
                    self.refused.append(type(error).__name__)
                continue
            with self.lock:
                self.floor[key] = max(self.floor.get(key, 0), value)
                self.acknowledged += 1
            time.sleep(self.chance.random() / 10)

    def reader(self, keys: list[str]) -> None:
        router = self.router()
        while not self.over.is_set():
            key = self.chance.choice(keys)
            with self.lock:
                least = self.floor.get(key, 0)
            try:
                found = router.read(old=self.read("source", key), new=self.read("destination", key))
            except KeyhopError:
                continue
            with self.lock:
                self.reads += 1
                if found < least:
                    self.stale.append(f"{key}: {least}, then {found}")
                self.floor[key] = max(self.floor.get(key, 0), found)
            time.sleep(self.chance.random() / 20)

    def worker(self, direction: Direction) -> None:
        replicator = self.world.replicator(direction)
        while not self.over.is_set():
            records = self.world.records(direction)
            if records:
                replicator.work(records)
            time.sleep(0.05)

    def change(self, to: Side) -> Any:
        return change_of(
            self.world.connection,
            self.world.pair.destination,
            to,
            self.world.streams,
            clock=self.clock,
            freeze_limit=FREEZE_LIMIT,
        )

    def turn(self, to: Side) -> None:
        """Until it has come about: what is called off is tried again."""
        while True:
            change = self.change(to)
            change.look = lambda control: []
            try:
                found = change.run()
            except GaveUp:  # the rehearsal, on a slow machine
                continue
            print(f"{self.clock.monotonic():.1f} {found.action} {found.why} {found.pause}")
            if found.action == "done":
                return

    def run(self, turns: list[Side], writers: int = 3, readers: int = 2) -> None:
        keys = [f"k{number}" for number in range(writers)]
        self.world.side.put_plan(self.world.pair)
        with ThreadPoolExecutor(writers + readers + 3) as pool:
            running = [pool.submit(self.writer, key) for key in keys]
            running += [pool.submit(self.reader, keys) for _ in range(readers)]
            running += [pool.submit(self.worker, way) for way in ("forward", "reverse")]
            try:
                for to in turns:
                    self.turn(to)
                    time.sleep(0.2)
            finally:
                self.over.set()
            for one in running:
                one.result()

    def drained(self, direction: Direction) -> None:
        replicator = self.world.replicator(direction)
        while records := self.world.records(direction):
            replicator.work(records)


@pytest.mark.parametrize(
    ("seed", "turns"),
    [
        (1, ["destination", "source"]),
        prove(2, ["destination", "source", "destination"]),
    ],
)
def test_no_acknowledged_write_is_lost_and_no_read_goes_back(
    dynamodb: Database, table_name: str, seed: int, turns: list[Side]
) -> None:
    traffic = Traffic(dynamodb, table_name, seed)
    traffic.run(turns)
    print(traffic.acknowledged, traffic.reads, traffic.refused)
    serving = traffic.world.side.control().serving
    assert serving == turns[-1]
    assert traffic.stale == []
    assert traffic.acknowledged > 20
    lost = {
        key: least for key, least in traffic.floor.items() if traffic.read(serving, key)() < least
    }
    assert lost == {}
    traffic.drained("forward" if serving == "source" else "reverse")
    assert traffic.world.here == traffic.world.there
