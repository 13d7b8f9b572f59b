"""Failures of other tools (rekey-protocol.md names the tool and the failure)."""

from dataclasses import replace
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.values import same_item

from testing.databases import Database
from testing.rekey_pairs import ByTenant, RekeyTables, order
from tests.integration.rekey.conftest import Begin, change, finished, worker_of
from tests.integration.rekey.faults import Faulty, Killed
from tests.integration.rekey.lives import client_at, until_done
from tests.integration.rekey.test_ends import new_life
from tests.integration.rekey.worlds import World

TYPES = {
    "n": {"N": "12345678901234567890.000000000001"},
    "b": {"B": b"\x00\xff"},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
    "bs": {"BS": [b"1", b"2"]},
    "bool": {"BOOL": False},
    "null": {"NULL": True},
    "empty": {"S": ""},
    "map": {"M": {"l": {"L": [{"N": "1"}, {"S": "1"}, {"M": {}}]}}},
}


def test_of_two_updates_in_one_second_the_later_one_stays(world: World) -> None:
    """The times of records are whole seconds, so they do not order the records."""
    world.put("s", "d", data="first")
    world.put("s", "d", data="second")
    records = world.records()
    times = {record["dynamodb"]["ApproximateCreationDateTime"] for record in records}
    assert len(times) == 1
    for record in reversed(records):
        world.replicator().work([record])
    assert world.actual == world.expected
    assert world.actual[0]["data"] == {"S": "second"}


def test_an_item_that_moves_is_not_left_under_its_old_key(world: World) -> None:
    for to in ("d", "e", "f"):
        world.put("s", to)
    for record in reversed(world.records()):
        world.replicator().work([record])
    assert [item["pk"]["S"] for item in world.actual] == ["f"]


def test_values_keep_their_types(world: World) -> None:
    item = {"id": {"S": "s"}, "to": {"S": "d"}, **TYPES}
    world.client.put_item(TableName=world.pair.source, Item=item)
    world.replicator().work(world.records())
    (image,) = world.client.scan(TableName=world.pair.destination)["Items"]
    assert same_item(image, {"id": {"S": "s"}, "pk": {"S": "d"}, **TYPES})


def test_an_update_of_what_is_not_copied_yet_brings_the_whole_item(world: World) -> None:
    """A repetition of the update in the destination would make an item of one attribute."""
    world.put("s", "d", data="old", more="kept")
    world.records()  # these were written before the worker followed the stream
    world.client.update_item(
        TableName=world.pair.source,
        Key={"id": {"S": "s"}},
        UpdateExpression="SET #d = :d",
        ExpressionAttributeNames={"#d": "data"},
        ExpressionAttributeValues={":d": {"S": "new"}},
    )
    world.replicator().work(world.records())
    assert world.actual == world.expected
    assert world.actual[0]["more"] == {"S": "kept"}


def faulty(connection: Connection, rekey: RekeyTables, backfill: Begin, fate: Any) -> Any:
    """Begin a backfill whose puts have the fate that a function of the item's number chooses."""

    def fate_of(operation: str, parameters: Any) -> Any:
        if operation != "put_item" or parameters["TableName"] != rekey.pair.destination:
            return None
        return fate(int(parameters["Item"]["sk"]["S"].rpartition("order")[2]))

    client = Faulty(connection.client, fate_of)
    return backfill(rekey, on=replace(connection, client=client))


def places(rekey: RekeyTables) -> set[str]:
    return {sort for _, sort in rekey.copied()}


def place_of(item: dict[str, Any]) -> str:
    return f"{item['pk']['S']}#{item['sk']['S']}"


def repaired(verify: Begin, rekey: RekeyTables) -> dict[str, Any]:
    return finished(verify(rekey, repair=True))["verify"]


def test_what_is_deleted_while_a_copy_is_killed_is_gone_when_it_is_resumed(
    rekey: RekeyTables, connection: Connection, backfill: Begin, verify: Begin
) -> None:
    """Two items are copied but not committed; one's record is processed, the other's is lost."""
    orders = [order(number) for number in range(30)]
    rekey.put(orders)
    copied: list[int] = []

    def fate(number: int) -> str | None:
        copied.append(number)
        return "killed" if len(copied) > 20 else None

    with pytest.raises(Killed):
        faulty(connection, rekey, backfill, fate).work()
    worked, lost = (orders[number] for number in copied[:2])
    change(rekey, worker_of(rekey, connection), worked, None)
    key = {name: lost[name] for name in ("pk", "sk")}
    rekey.database.client.delete_item(TableName=rekey.pair.source, Key=key)
    finished(backfill(rekey, resume=True))
    assert place_of(worked) not in places(rekey)
    report = repaired(verify, rekey)
    assert (report["surplus"], report["missing"], report["is_clean"]) == (1, 0, True)
    assert places(rekey) == {place_of(item) for item in orders if item not in (worked, lost)}


def test_what_is_deleted_before_its_copy_is_written_does_not_stay(
    rekey: RekeyTables, connection: Connection, backfill: Begin, verify: Begin
) -> None:
    """The record finds no item to remove, and then the backfill puts the item that it has read."""
    orders = [order(number) for number in range(10)]
    rekey.put(orders)
    worker = worker_of(rekey, connection)

    def fate(number: int) -> None:
        if number == 7:
            change(rekey, worker, orders[7], None)

    finished(faulty(connection, rekey, backfill, fate))
    assert place_of(orders[7]) in places(rekey)
    assert repaired(verify, rekey)["surplus"] == 1
    assert place_of(orders[7]) not in places(rekey)


def test_as_many_items_are_no_equal_tables(rekey: RekeyTables, verify: Begin) -> None:
    """One item is missing and one is surplus, so the counts of both tables are equal."""
    orders = [order(number) for number in range(100)]
    rekey.put(orders)
    images = [ByTenant().forward(item) for item in [*orders[:-1], order(1_000)]]
    rekey.database.fill(rekey.pair.destination, images)  # type: ignore[arg-type]
    report = finished(verify(rekey))["verify"]
    assert report["items"] == report["destination_items"] == 100
    assert (report["missing"], report["surplus"], report["is_clean"]) == (1, 1, False)


def test_the_end_of_a_re_key_writes_no_item(dynamodb: Database, table_name: str) -> None:
    """The items have no attributes of Keyhop, so none must be written again."""
    life = new_life(dynamodb, table_name)
    life.begin()
    life.cut_over()
    client = Faulty(client_at(dynamodb.url))
    until_done(life.ending("complete", client=client).step)
    written = {
        (operation, parameters["TableName"])
        for operation, parameters in client.calls
        if "item" in operation and "get" not in operation
    }
    assert {table for _, table in written} <= {life.pair.side}
