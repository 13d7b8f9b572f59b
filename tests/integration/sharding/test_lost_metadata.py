"""Deleted metadata: its key is not registered again, and no call returns only some of its items.

Also a table that already has items: their keys have no shard number, so no call would find them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from keyhop.errors import CannotStart, MetadataLost
from keyhop.sharding.drain import Drain
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.manage import add_shards
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.hooks import is_operation, once, run_together
from tests.integration.sharding.single import Place


def spread_items(place: Place, key: str, items: int = 40, **settings: Any) -> ShardedTable:
    """Return the closed table of a key with items in all of its four shards."""
    table = place.table(**settings)
    place.grow(table, key, 3)
    for n in range(items):
        table.put_item(Item={"path": key, "at": f"{n:03}"})
    table.close()
    return table


def calls(table: ShardedTable, key: str) -> list[Callable[[], Any]]:
    """Return all calls that use the metadata of a key."""
    item_key = {"path": key, "at": "001"}
    return [
        lambda: table.put_item(Item=item_key),
        lambda: table.update_item(Key=item_key, UpdateExpression="SET n = n"),
        lambda: table.delete_item(Key=item_key),
        lambda: table.get_item(Key=item_key),
        lambda: list(table.query(key)),
        lambda: list(table.query(key, consistent=True)),
        lambda: table.query_page(key),
        lambda: add_shards(table, key),
        lambda: Drain(table).step(key, 1),
    ]


@pytest.mark.parametrize("settings", [{}, {"hash": "modulo"}, {"placement": "random"}], ids=str)
def test_a_key_with_lost_metadata_is_refused_and_not_registered(
    place: Place, settings: dict[str, Any]
) -> None:
    """Before this was detected, only 144 of 401 items were visible, without an error."""
    earlier_table = spread_items(place, "/f", **settings)
    place.lose("/f")
    place.clock.sleep(60)
    for table in (place.table(**settings), earlier_table):
        for call in calls(table, "/f"):
            with pytest.raises(MetadataLost, match=f"items of {place.name} .* recover the shards"):
                call()
        result = table.batch_write([{"path": "/f", "at": "a"}, {"path": "/g", "at": "a"}])
        assert [(at, type(error)) for at, _, error in result.failed] == [(0, MetadataLost)]
    assert place.item_of("/f") == {}


def test_a_key_of_one_shard_is_registered_again_with_all_items(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    place.lose("/f")
    place.clock.sleep(60)
    for user in (table, place.table()):
        user.put_item(Item={"path": "/f", "at": "b"})
        assert [item["at"] for item in user.query("/f", consistent=True)] == ["a", "b"]


def test_start_shards_hide_no_items(place: Place) -> None:
    """If items were placed by eight shards, reads would not find those of the first shard."""
    place.table().put_item(Item={"path": "/logs/a", "at": "a"})
    place.lose("/logs/a")
    new = place.table(policy=Policy(start_shards={"/logs/*": 8}))
    with pytest.raises(MetadataLost):
        new.put_item(Item={"path": "/logs/a", "at": "b"})
    new.put_item(Item={"path": "/logs/b", "at": "b"})
    assert place.shards("/logs/b").number == 8


def test_metadata_with_too_few_shards_is_detected_by_tables_that_have_read_more(
    place: Place,
) -> None:
    """A client without this check registers the key with one shard."""
    earlier_table = spread_items(place, "/f")
    list(earlier_table.query("/f"))
    place.lose("/f")
    place.clock.sleep(60)
    at = int(place.clock.time())
    history = {"SS": [f"{at}:1"]}
    place.register("/f", 1, last_updated={"N": str(at)}, shard_history=history)
    for call in calls(earlier_table, "/f")[:6]:
        with pytest.raises(MetadataLost):
            call()


def test_recovered_metadata_is_used(place: Place) -> None:
    """The recovered metadata may have fewer shards, because empty shards may be missing."""
    earlier_table = place.table()
    place.grow(earlier_table, "/f", 7)
    place.put_physical("/f_3", "a")
    place.lose("/f")
    place.clock.sleep(60)
    with pytest.raises(MetadataLost):
        list(earlier_table.query("/f"))
    at = int(place.clock.time())
    history = {"SS": [f"{at}:3"]}
    place.register("/f", 3, last_updated={"N": str(at)}, shard_history=history)
    assert [item["at"] for item in earlier_table.query("/f")] == ["a"]


def test_a_regular_change_of_metadata_costs_no_look(place: Place) -> None:
    earlier_table, peer = place.table(), place.table()
    place.grow(earlier_table, "/f", 7)
    place.drain(peer, "/f", 1)
    place.clock.sleep(60)
    earlier_table.usage.take()
    earlier_table.get_item(Key={"path": "/f", "at": "a"})
    assert earlier_table.usage.requests == 2


def test_the_requests_for_a_key_that_is_not_registered(place: Place) -> None:
    """A new process reads the metadata item of the table once. A reader looks for items without
    a shard and in the second shard once a minute, and a writer when it registers the key.
    """
    place.table().put_item(Item={"path": "/f", "at": "a"})
    table = place.table()
    table.get_item(Key={"path": "/f", "at": "a"})
    before = table.usage.take()
    assert before.requests == 2 + 0, "a registered key needs no other request"
    table.get_item(Key={"path": "/new", "at": "a"})
    assert table.usage.take().requests == 2 + 3
    table.get_item(Key={"path": "/new", "at": "a"})
    assert table.usage.take().requests == 2
    table.put_item(Item={"path": "/new", "at": "a"})
    assert table.usage.take().requests == 3 + 2
    table.put_item(Item={"path": "/newer", "at": "a"})
    assert table.usage.take().requests == 3 + 2
    place.clock.sleep(61)
    table.get_item(Key={"path": "/newest", "at": "a"})
    assert table.usage.take().requests == 2 + 2


def test_metadata_that_was_restored_from_a_backup_is_detected(place: Place) -> None:
    earlier_table = place.table()
    place.grow(earlier_table, "/f", 1)
    before = place.item_of("/f")
    place.grow(earlier_table, "/f", 2)
    for n in range(40):
        earlier_table.put_item(Item={"path": "/f", "at": f"{n:03}"})
    place.database.client.put_item(TableName=place.metadata, Item=before)
    place.clock.sleep(60)
    with pytest.raises(MetadataLost):
        list(earlier_table.query("/f"))


def test_a_key_that_another_table_registers_and_grows_is_not_lost(place: Place) -> None:
    table = place.table()
    assert not once(table, is_operation("query"), lambda: spread_items(place, "/f"))
    table.put_item(Item={"path": "/f", "at": "zzz"})
    assert len(list(place.table().query("/f", consistent=True))) == 41
    assert place.shards("/f").number == 4


def test_concurrent_writers_register_a_new_key_once(place: Place) -> None:
    policy = Policy(start_shards={"/f": 8})

    def write(n: int, table: ShardedTable) -> None:
        for m in range(5):
            table.put_item(Item={"path": "/f", "at": f"{n}-{m}"})

    assert run_together(*(partial(write, n, place.table(policy=policy)) for n in range(8))) == []
    assert len(list(place.table().query("/f", consistent=True))) == 40


def put_plain(place: Place, key: str) -> None:
    place.put_physical(key, "001", who={"S": "boto3"})


def test_calls_for_a_key_with_items_without_a_shard_are_refused(place: Place) -> None:
    put_plain(place, "/f")
    table = place.table()
    for call in calls(table, "/f")[:-1]:
        with pytest.raises(CannotStart, match="key without a shard number"):
            call()
    assert place.item_of("/f") == {}
    result = table.batch_write([{"path": "/f", "at": "a"}, {"path": "/g", "at": "a"}])
    assert [(at, type(error)) for at, _, error in result.failed] == [(0, CannotStart)]
    assert len(list(table.query("/g", consistent=True))) == 1


def test_keys_of_the_application_that_end_like_shards_need_another_separator(place: Place) -> None:
    """A recovery would mistake them for shards, and a put would replace their items."""
    put_plain(place, "/f_1")
    put_plain(place, "/f_2")
    for call in calls(place.table(), "/f")[:-1]:
        with pytest.raises(
            MetadataLost, match=r"end in _2 without Keyhop, do not recover .* another separator"
        ):
            call()
    assert place.item_of("/f") == {}
    place.metadata = f"{place.name}-new"
    place.database.create(place.metadata, partition=("path", "S"), sort=None)
    place.table(separator="#").put_item(Item={"path": "/f", "at": "001"})
    items = place.database.client.scan(TableName=place.name)["Items"]
    assert sorted(item["path"]["S"] for item in items) == ["/f#1", "/f_1", "/f_2"]


def test_a_conditional_put_does_not_make_a_second_item(place: Place) -> None:
    put_plain(place, "/f")
    with pytest.raises(CannotStart):
        place.table().put_item(
            Item={"path": "/f", "at": "001"},
            ConditionExpression="attribute_not_exists(#at)",
            ExpressionAttributeNames={"#at": "at"},
        )
    items = place.database.client.scan(TableName=place.name)["Items"]
    assert [item["who"]["S"] for item in items] == ["boto3"]


def test_items_are_moved_with_a_table_that_accepts_them(place: Place) -> None:
    put_plain(place, "/f")
    with pytest.raises(CannotStart, match="accept has 'all'; it may have 'plain-keys' only"):
        place.table(accept=["all"])
    moving = place.table(accept=["plain-keys"])
    moving.put_item(Item={"path": "/f", "at": "001", "who": "boto3"})
    place.database.client.delete_item(
        TableName=place.name, Key={"path": {"S": "/f"}, "at": {"S": "001"}}
    )
    response = place.table().get_item(Key={"path": "/f", "at": "001"})
    assert response["Item"]["who"] == "boto3"


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
