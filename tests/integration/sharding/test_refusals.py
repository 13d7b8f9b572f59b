"""What a sharded table refuses, and what its users must agree upon."""

import pytest
from keyhop.errors import CannotStart
from keyhop.sharding.policy import Policy

from tests.databases import Database
from tests.integration.sharding.single import Place


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


def test_what_cannot_be_sharded_is_told_in_one_sentence(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, partition=("id", "N"), sort=("at", "S"))
    dynamodb.create(f"{table_name}-flat", partition=("id", "S"), sort=None)
    place = Place(dynamodb, f"{table_name}-good")
    numbers = place.table()
    numbers.name = table_name
    with pytest.raises(CannotStart, match="number"):
        numbers.put_item(Item={"id": 1, "at": "a"})
    flat = place.table()
    flat.name = f"{table_name}-flat"
    with pytest.raises(CannotStart, match="no sort key"):
        flat.put_item(Item={"id": "a"})
    table = place.table()
    for wrong, told in (
        ({"path": "/f"}, "no key attribute at"),
        ({"path": "", "at": "a"}, "bytes"),
        ({"path": "/f", "at": 5}, "type S"),
    ):
        with pytest.raises(CannotStart, match=told):
            table.put_item(Item=wrong)
    with pytest.raises(CannotStart, match="type S"):
        list(table.query("/f", between=(1, 2)))
    with pytest.raises(CannotStart, match="limit"):
        list(table.query("/f", limit=0))
    assert list(table.query("/unknown")) == []
    assert table.get_item(Key={"path": "/unknown", "at": "a"}) == {}


def test_users_of_a_key_must_agree_upon_its_placement(place: Place) -> None:
    place.table().put_item(Item={"path": "/f", "at": "a"})
    for other in ({"hash": "modulo"}, {"placement": "random"}, {"separator": "#"}):
        with pytest.raises(CannotStart, match="must have the same placement"):
            place.table(**other).put_item(Item={"path": "/f", "at": "b"})


def test_the_metadata_of_a_key_that_vanishes_is_not_made_anew(place: Place) -> None:
    """With one shard, items in the others would be lost from sight; the cache still knows."""
    table = place.table()
    place.register("/f", 3)
    table.put_item(Item={"path": "/f", "at": "a"})
    place.database.client.delete_item(TableName=place.metadata, Key={"path": {"S": "/f"}})
    place.clock.sleep(60)
    with pytest.raises(CannotStart, match="gone"):
        place.grow(table, "/f", 1)


def test_all_keys_together_have_no_more_shards_than_allowed(place: Place) -> None:
    table = place.table(policy=Policy(most=8, most_in_all=3))
    place.grow(table, "/f", 2)
    place.grow(table, "/g", 1)
    with pytest.raises(CannotStart, match="most shards allowed"):
        place.grow(table, "/h", 1)
    with pytest.raises(CannotStart, match="8 are the most"):
        place.grow(table, "/f", 7)
    assert {one[0]["S"] for one in table.metadata.all()} == {"/f", "/g", "/h"}
    with pytest.raises(CannotStart, match="Keyhop uses it"):
        table.put_item(Item={"path": "!keyhop-total", "at": "a"})
