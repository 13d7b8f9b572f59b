"""A table that already has items: their keys have no shard number, so no call would find them."""

import pytest
from keyhop.errors import CannotStart

from testing.databases import Database
from tests.integration.sharding.single import Place
from tests.integration.sharding.test_lost_metadata import acts


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


def put_plain(place: Place, key: str) -> None:
    item = {"path": {"S": key}, "at": {"S": "001"}, "who": {"S": "boto3"}}
    place.database.client.put_item(TableName=place.name, Item=item)


def is_registered(place: Place, key: str) -> bool:
    found = place.database.client.get_item(TableName=place.metadata, Key={"path": {"S": key}})
    return "Item" in found


def test_every_call_for_a_key_that_has_items_without_a_shard_is_refused(place: Place) -> None:
    put_plain(place, "/f")
    table = place.table()
    for act in acts(table, "/f")[:-1]:
        with pytest.raises(CannotStart, match="key without a shard number"):
            act()
    assert not is_registered(place, "/f")
    result = table.batch_write([{"path": "/f", "at": "a"}, {"path": "/g", "at": "a"}])
    assert [(at, type(error)) for at, _, error in result.failed] == [(0, CannotStart)]
    assert len(list(table.query("/g", consistent=True))) == 1


def test_a_conditional_put_does_not_make_a_second_item(place: Place) -> None:
    put_plain(place, "/f")
    with pytest.raises(CannotStart):
        place.table().put_item(
            Item={"path": "/f", "at": "001"},
            ConditionExpression="attribute_not_exists(#at)",
            ExpressionAttributeNames={"#at": "at"},
        )
    found = place.database.client.scan(TableName=place.name)["Items"]
    assert [item["who"]["S"] for item in found] == ["boto3"]


def test_items_are_moved_with_a_table_that_accepts_them(place: Place) -> None:
    put_plain(place, "/f")
    with pytest.raises(CannotStart, match="accept has 'all'; it may have 'plain-keys' only"):
        place.table(accept=["all"])
    moving = place.table(accept=["plain-keys"])
    moving.put_item(Item={"path": "/f", "at": "001", "who": "boto3"})
    place.database.client.delete_item(
        TableName=place.name, Key={"path": {"S": "/f"}, "at": {"S": "001"}}
    )
    found = place.table().get_item(Key={"path": "/f", "at": "001"})
    assert found["Item"]["who"] == "boto3"


def test_a_key_that_looks_like_a_shard_of_another_is_not_refused_for_its_items(
    place: Place,
) -> None:
    """ "/f_1" is also the physical key of the first shard of "/f"."""
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    table.put_item(Item={"path": "/f_1", "at": "b"})
    assert [item["at"] for item in place.table().query("/f_1", consistent=True)] == ["b"]
    put_plain(place, "/g_1")
    with pytest.raises(CannotStart):
        table.put_item(Item={"path": "/g_1", "at": "b"})
