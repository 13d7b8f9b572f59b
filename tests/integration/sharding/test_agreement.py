"""What all users of a table agree upon, once: the item of the table in its metadata table."""

from functools import partial
from typing import Any

import pytest
from keyhop.errors import CannotStart
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.logical_keys import KnownShards
from keyhop.sharding.manage import list_keys, proposals
from keyhop.sharding.store.listing import all_keys

from testing.databases import Database
from tests.integration.sharding.hooks import at_once
from tests.integration.sharding.single import Place

AGREED = "calculated jump _"


@pytest.mark.parametrize(
    "other",
    [{"hash": "modulo"}, {"placement": "random"}, {"append_only": True}, {"separator": "#"}],
    ids=str,
)
@pytest.mark.parametrize("key", ["/f", "/g"])
def test_users_of_a_table_must_agree_also_for_other_keys(
    place: Place, other: dict[str, Any], key: str
) -> None:
    place.table().put_item(Item={"path": "/f", "at": "a"})
    table = place.table(**other)
    for act in (
        lambda: table.put_item(Item={"path": key, "at": "a"}),
        lambda: table.get_item(Key={"path": key, "at": "a"}),
        lambda: list(table.query(key)),
    ):
        with pytest.raises(CannotStart, match="must have the same placement") as told:
            act()
        assert repr(AGREED) in str(told.value)
        assert repr(table.metadata.agreed) in str(told.value)
    assert [one.key for one in list_keys(place.table())] == ["/f"]


def test_whoever_registers_the_first_key_agrees_for_all(place: Place) -> None:
    reader = place.table(placement="random")
    assert list(reader.query("/f")) == []
    assert place.item_of() == {}, "a reader agrees upon nothing"
    place.table().put_item(Item={"path": "/f", "at": "a"})
    assert place.item_of() == {
        "path": {"S": "!keyhop-total"},
        "placement": {"S": AGREED},
        "of_table": {"S": place.name},
        "version": {"N": "1"},
    }


def test_metadata_of_another_version_is_refused(place: Place) -> None:
    place.table().put_item(Item={"path": "/f", "at": "a"})
    place.database.client.update_item(
        TableName=place.metadata,
        Key={"path": {"S": "!keyhop-total"}},
        UpdateExpression="SET version = :v",
        ExpressionAttributeValues={":v": {"N": "2"}},
    )
    table = place.table()
    for act in (
        lambda: table.put_item(Item={"path": "/new", "at": "a"}),
        lambda: list(table.query("/unknown")),
    ):
        with pytest.raises(CannotStart, match="has version 2 of its layout, and this Keyhop reads"):
            act()


def test_a_table_that_has_keys_already_is_agreed_upon_by_what_these_have(place: Place) -> None:
    """As earlier versions have left it."""
    for n in range(5):
        place.register(f"/{n}", 1, placement={"S": AGREED} if n else {"N": "5"})
    with pytest.raises(CannotStart, match="'random jump _'"):
        place.table(placement="random").put_item(Item={"path": "/new", "at": "a"})
    assert place.item_of() == {}
    place.table().put_item(Item={"path": "/new", "at": "a"})
    assert place.item_of()["placement"] == {"S": AGREED}


def test_keys_that_disagree_stay_usable_to_those_who_agree_with_them(place: Place) -> None:
    place.register("/a", 1, placement={"S": AGREED})
    place.register("/b", 1, placement={"S": "random jump _"})
    first, second = place.table(), place.table(placement="random")
    first.put_item(Item={"path": "/new", "at": "a"})
    second.put_item(Item={"path": "/b", "at": "a"})
    with pytest.raises(CannotStart, match="must have the same"):
        second.put_item(Item={"path": "/newer", "at": "a"})


def test_a_key_that_does_not_say_how_it_is_placed_goes_by_what_the_table_says(place: Place) -> None:
    place.table().put_item(Item={"path": "/f", "at": "a"})
    place.register("/published", 2)
    place.table().put_item(Item={"path": "/published", "at": "a"})
    with pytest.raises(CannotStart, match="must have the same placement"):
        place.table(placement="random").put_item(Item={"path": "/published", "at": "b"})


def test_many_who_disagree_and_come_at_once_do_not_both_get_their_way(place: Place) -> None:
    ways: list[dict[str, Any]] = [{}, {"placement": "random"}, {"hash": "modulo"}, {}]
    writes = []
    for n, how in enumerate(ways):
        table = place.table(**how)
        assert list(table.query("/nothing")) == []
        writes.append(partial(table.put_item, Item={"path": f"/{n}", "at": "a"}))
    refused = at_once(*writes)
    agreed = place.item_of()["placement"]["S"]
    placed = {one.shards.placement for one in list_keys(place.table())}
    assert placed == {agreed}
    assert {type(error) for error in refused} == {CannotStart}


def test_the_item_of_the_table_of_another_is_refused(place: Place, dynamodb: Database) -> None:
    """A drain of the one would hide the other's items."""
    other = Place(dynamodb, f"{place.name}-other")
    place.table().put_item(Item={"path": "/f", "at": "a"})
    other.metadata = place.metadata
    with pytest.raises(CannotStart, match=f"of the table {place.name}, not of {other.name}"):
        other.table().put_item(Item={"path": "/f", "at": "a"})


def test_shards_are_counted_in_the_same_item(place: Place) -> None:
    """The count changes nothing else of it."""
    table = place.table(policy=Policy(most_in_all=5))
    place.grow(table, "/f", 2)
    assert place.item_of()["shards_added"] == {"N": "2"}
    assert place.item_of()["placement"] == {"S": AGREED}
    assert list(proposals(table)) == []
    assert place.item_of()["placement"] == {"S": AGREED}


def test_no_list_of_keys_shows_it(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    assert [one.key for one in list_keys(table)] == ["/f"]
    known = KnownShards()
    known.learn(all_keys(table.requests, place.metadata, table.schema.partition), 0.0)
    assert known.shard_count({"S": "!keyhop-total"}) == 0
    assert known.shard_count({"S": "/f"}) == 1
