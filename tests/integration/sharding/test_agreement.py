"""The settings on which all users of a table agree: the table's item in its metadata table."""

from functools import partial
from typing import Any

import pytest
from keyhop.errors import CannotStart
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.logical_keys import KnownShards
from keyhop.sharding.manage import list_keys, proposals
from keyhop.sharding.store.listing import all_keys

from testing.databases import Database
from tests.integration.sharding.hooks import run_together
from tests.integration.sharding.single import Place

AGREED = "calculated jump _"


@pytest.mark.parametrize(
    "settings",
    [{"hash": "modulo"}, {"placement": "random"}, {"append_only": True}, {"separator": "#"}],
    ids=str,
)
@pytest.mark.parametrize("key", ["/f", "/g"])
def test_all_keys_of_a_table_need_the_same_settings(
    place: Place, settings: dict[str, Any], key: str
) -> None:
    place.table().put_item(Item={"path": "/f", "at": "a"})
    table = place.table(**settings)
    for call in (
        lambda: table.put_item(Item={"path": key, "at": "a"}),
        lambda: table.get_item(Key={"path": key, "at": "a"}),
        lambda: list(table.query(key)),
    ):
        with pytest.raises(CannotStart, match="must have the same placement") as caught:
            call()
        assert repr(AGREED) in str(caught.value)
        assert repr(table.metadata.agreed) in str(caught.value)
    assert [key.key for key in list_keys(place.table())] == ["/f"]


def test_the_first_registered_key_decides_the_settings(place: Place) -> None:
    reader = place.table(placement="random")
    assert list(reader.query("/f")) == []
    assert place.item_of() == {}, "a reader writes no agreement"
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


def test_existing_keys_decide_the_settings_of_a_table(place: Place) -> None:
    """The item of the table is missing, but the items of its keys have a placement."""
    for n in range(5):
        place.register(f"/{n}", 1, placement={"S": AGREED} if n else {"N": "5"})
    with pytest.raises(CannotStart, match="'random jump _'"):
        place.table(placement="random").put_item(Item={"path": "/new", "at": "a"})
    assert place.item_of() == {}
    place.table().put_item(Item={"path": "/new", "at": "a"})
    assert place.item_of()["placement"] == {"S": AGREED}


def test_keys_with_different_placements_stay_usable_with_their_own(place: Place) -> None:
    place.register("/a", 1, placement={"S": AGREED})
    place.register("/b", 1, placement={"S": "random jump _"})
    first, second = place.table(), place.table(placement="random")
    first.put_item(Item={"path": "/new", "at": "a"})
    second.put_item(Item={"path": "/b", "at": "a"})
    with pytest.raises(CannotStart, match="must have the same"):
        second.put_item(Item={"path": "/newer", "at": "a"})


def test_a_key_without_a_placement_has_that_of_the_table(place: Place) -> None:
    place.table().put_item(Item={"path": "/f", "at": "a"})
    place.register("/published", 2)
    place.table().put_item(Item={"path": "/published", "at": "a"})
    with pytest.raises(CannotStart, match="must have the same placement"):
        place.table(placement="random").put_item(Item={"path": "/published", "at": "b"})


def test_concurrent_users_with_different_settings_agree_on_one(place: Place) -> None:
    settings: list[dict[str, Any]] = [{}, {"placement": "random"}, {"hash": "modulo"}, {}]
    writes = []
    for n, arguments in enumerate(settings):
        table = place.table(**arguments)
        assert list(table.query("/nothing")) == []
        writes.append(partial(table.put_item, Item={"path": f"/{n}", "at": "a"}))
    errors = run_together(*writes)
    agreed = place.item_of()["placement"]["S"]
    placed = {key.shards.placement for key in list_keys(place.table())}
    assert placed == {agreed}
    assert {type(error) for error in errors} == {CannotStart}


def test_metadata_of_another_table_is_refused(place: Place, dynamodb: Database) -> None:
    """Otherwise a drain of one table would hide items of the other."""
    peer = Place(dynamodb, f"{place.name}-other")
    place.table().put_item(Item={"path": "/f", "at": "a"})
    peer.metadata = place.metadata
    with pytest.raises(CannotStart, match=f"of the table {place.name}, not of {peer.name}"):
        peer.table().put_item(Item={"path": "/f", "at": "a"})


def test_shards_are_counted_in_the_item_of_the_table(place: Place) -> None:
    """The count changes no other attribute."""
    table = place.table(policy=Policy(most_in_all=5))
    place.grow(table, "/f", 2)
    assert place.item_of()["shards_added"] == {"N": "2"}
    assert place.item_of()["placement"] == {"S": AGREED}
    assert list(proposals(table)) == []
    assert place.item_of()["placement"] == {"S": AGREED}


def test_the_item_of_the_table_is_not_listed_as_a_key(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    assert [key.key for key in list_keys(table)] == ["/f"]
    known_shards = KnownShards()
    known_shards.learn(all_keys(table.requests, place.metadata, table.schema.partition), 0.0)
    assert known_shards.shard_count({"S": "!keyhop-total"}) == 0
    assert known_shards.shard_count({"S": "/f"}) == 1
