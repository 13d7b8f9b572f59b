"""Markers, the probe and a chaos test on a real database."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.errors import GaveUp
from keyhop.rekey.cutover.deployed import Probe
from keyhop.rekey.cutover.markers import LATE_SECONDS, Markers
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE, MARKER_KEYS
from keyhop.rekey.side.table import SideTable, table_request

from testing.databases import Database, load
from testing.marks import prove
from testing.simulation.network import Fate
from testing.simulation.turns import Turns
from testing.virtual_time import VirtualClock
from tests.integration.rekey.worlds import World
from tests.unit.rekey.chaos import Chaos
from tests.unit.rekey.chaos_world import ChaosWorld

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


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
    marks = markers.mark()
    assert len(marks) == len([shard for shard in markers.shards() if shard.is_open])
    assert markers.unseen(marks) == len(marks)
    for marker in marks:
        world.side.see_marker(marker, {})
    assert markers.unseen(marks) == 0
    markers.check_shards()
    assert world.items(table) == []


def test_the_worker_answers_a_marker_when_its_batch_is_done(world: World) -> None:
    markers = markers_of(world, world.pair.source)
    markers.locate()
    marks = markers.mark()
    world.put("a", "x")
    world.replicator().work(world.records())
    assert markers.unseen(marks) == 0
    assert len(world.actual) == 1, "no marker is copied"


def test_a_worker_that_does_not_answer_is_reported_before_the_freeze(world: World) -> None:
    with pytest.raises(GaveUp, match="is its function running"):
        markers_of(world, world.pair.source).prepare()


def test_the_markers_of_a_killed_attempt_are_removed(world: World) -> None:
    markers = markers_of(world, world.pair.source)
    key = {"id": {"S": "a marker's"}}
    at = VirtualClock().time() - LATE_SECONDS - 1
    world.side.put_marker("one", {"table": world.pair.source, "key": key, "at": at})
    item = {**key, MARKER_ATTRIBUTE: {"S": "one"}}
    world.client.put_item(TableName=world.pair.source, Item=item)
    markers.sweep()
    assert world.items(world.pair.source) == []
    assert world.side.markers() == {}


def test_a_late_marker_does_not_disturb_the_next_drain(world: World) -> None:
    """The marker's repeated put arrived after the drain had deleted the marker."""
    markers = markers_of(world, world.pair.source)
    markers.locate()
    (key,) = world.side.told(f"{MARKER_KEYS} source").values()
    item = {**key, MARKER_ATTRIBUTE: {"S": "late"}}
    world.client.put_item(TableName=world.pair.source, Item=item)
    marks = markers.mark()
    assert world.items(world.pair.source) == []
    world.replicator().work(world.records())
    assert markers.unseen(marks) == 0


def test_an_item_of_the_application_is_not_a_marker(world: World) -> None:
    markers = markers_of(world, world.pair.source)
    marker = {"table": world.pair.source, "key": {"id": {"S": "mine"}}, "at": 0.0}
    world.side.put_marker("one", marker)
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


def test_a_missing_table_is_no_way_back(world: World) -> None:
    assert "no table" in Probe(world.connection, "nowhere").why_not({"id": {"S": "a"}})


# --- the chaos test ---


class LocalWorld(ChaosWorld):
    """The world of a chaos test on DynamoDB Local, whose streams have one shard each."""

    shards = 1
    poll_seconds = 1.0  # each poll is a request

    def __init__(self, database: Database, name: str, chance: random.Random) -> None:
        self.local = World(database, name)
        self.local.client.delete_table(TableName=self.local.pair.side)
        self.local.client.create_table(**table_request(self.local.pair.side))
        super().__init__(chance)
        self.pair = self.local.pair

    def _make_tables(self) -> Any:
        return Turns(self.local.streams, self.schedule, self.chance)

    def connection(self, fate: Fate, timeout: float = 0.0) -> Connection:
        client = Turns(self.local.connection.client, self.schedule, self.chance)
        return replace(self.local.connection, client=client, clock=self.monotonic)

    def put_first(self, items: Sequence[dict[str, Any]]) -> None:
        load(self.local.client, iter(items), self.pair.source)

    def records(self, table: str, shard: int, start: int, limit: int) -> list[Any]:
        self.local.epoch = self.time()
        return self.local.records("forward" if table == self.pair.source else "reverse")

    def items(self, table: str) -> list[dict[str, Any]]:
        return self.local.items(table)


@pytest.mark.parametrize(("seed", "operations", "changes"), [prove(2, 300, 4)])
def test_no_acknowledged_write_is_lost_and_no_read_goes_back(
    dynamodb: Database, table_name: str, seed: int, operations: int, changes: int
) -> None:
    world = LocalWorld(dynamodb, table_name, random.Random(seed))
    chaos = Chaos(world, 50, operations, changes, in_peace=True)
    chaos.run()
    assert chaos.wrong == []
    assert chaos.lost_items() == {}
    chaos.sweep_at_rest()
    assert world.side().claims("forward") == []
    assert chaos.different_places() == set()
    assert chaos.counts["operations"] == operations
    assert chaos.counts["changes: done"] >= changes
