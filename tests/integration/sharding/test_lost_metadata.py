"""Metadata that was deleted: a key is not registered anew, and nothing is told of a part of it.

And a table that already has items: their keys have no shard number, so no call would find them.
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

from tests.integration.sharding.hooks import at_once, is_a, once
from tests.integration.sharding.single import Place


def spread(place: Place, key: str, items: int = 40, **how: Any) -> ShardedTable:
    """A key of four shards with items in all of them."""
    table = place.table(**how)
    place.grow(table, key, 3)
    for n in range(items):
        table.put_item(Item={"path": key, "at": f"{n:03}"})
    table.close()
    return table


def acts(table: ShardedTable, key: str) -> list[Callable[[], Any]]:
    """All that goes by the metadata of a key."""
    where = {"path": key, "at": "001"}
    return [
        lambda: table.put_item(Item=where),
        lambda: table.update_item(Key=where, UpdateExpression="SET n = n"),
        lambda: table.delete_item(Key=where),
        lambda: table.get_item(Key=where),
        lambda: list(table.query(key)),
        lambda: list(table.query(key, consistent=True)),
        lambda: table.query_page(key),
        lambda: add_shards(table, key),
        lambda: Drain(table).step(key, 1),
    ]


@pytest.mark.parametrize("how", [{}, {"hash": "modulo"}, {"placement": "random"}], ids=str)
def test_a_key_whose_metadata_is_gone_is_neither_registered_anew_nor_told_in_part(
    place: Place, how: dict[str, Any]
) -> None:
    """144 of 401 items were visible, with no error."""
    known = spread(place, "/f", **how)
    place.lose("/f")
    place.clock.sleep(60)
    for table in (place.table(**how), known):
        for act in acts(table, "/f"):
            with pytest.raises(MetadataLost, match=f"items of {place.name} .* recover the shards"):
                act()
        result = table.batch_write([{"path": "/f", "at": "a"}, {"path": "/g", "at": "a"}])
        assert [(at, type(error)) for at, _, error in result.failed] == [(0, MetadataLost)]
    assert place.item_of("/f") == {}


def test_a_key_of_one_shard_is_registered_anew_and_whole(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    place.lose("/f")
    place.clock.sleep(60)
    for each in (table, place.table()):
        each.put_item(Item={"path": "/f", "at": "b"})
        assert [item["at"] for item in each.query("/f", consistent=True)] == ["a", "b"]


def test_what_start_shards_would_hide_is_noticed(place: Place) -> None:
    """With places by eight shards, items of the first would not be found."""
    place.table().put_item(Item={"path": "/logs/a", "at": "a"})
    place.lose("/logs/a")
    new = place.table(policy=Policy(start_shards={"/logs/*": 8}))
    with pytest.raises(MetadataLost):
        new.put_item(Item={"path": "/logs/a", "at": "b"})
    new.put_item(Item={"path": "/logs/b", "at": "b"})
    assert place.shards("/logs/b").number == 8


def test_metadata_made_anew_by_who_does_not_look_is_noticed_by_who_knows_better(
    place: Place,
) -> None:
    """As earlier versions do."""
    known = spread(place, "/f")
    list(known.query("/f"))
    place.lose("/f")
    place.clock.sleep(60)
    at = int(place.clock.time())
    history = {"SS": [f"{at}:1"]}
    place.register("/f", 1, last_updated={"N": str(at)}, shard_history=history)
    for act in acts(known, "/f")[:6]:
        with pytest.raises(MetadataLost):
            act()


def test_metadata_that_somebody_has_recovered_is_gone_by(place: Place) -> None:
    """Shards that were empty may be left out."""
    known = place.table()
    place.grow(known, "/f", 7)
    place.put_physical("/f_3", "a")
    place.lose("/f")
    place.clock.sleep(60)
    with pytest.raises(MetadataLost):
        list(known.query("/f"))
    at = int(place.clock.time())
    history = {"SS": [f"{at}:3"]}
    place.register("/f", 3, last_updated={"N": str(at)}, shard_history=history)
    assert [item["at"] for item in known.query("/f")] == ["a"]


def test_metadata_that_is_changed_as_it_should_be_costs_no_look(place: Place) -> None:
    known, other = place.table(), place.table()
    place.grow(known, "/f", 7)
    place.drain(other, "/f", 1)
    place.clock.sleep(60)
    known.usage.take()
    known.get_item(Key={"path": "/f", "at": "a"})
    assert known.usage.requests == 2


def test_what_a_key_costs_that_nobody_has_registered(place: Place) -> None:
    """A new process reads the item of the table once. A reader looks at the key itself and at its
    second shard once a minute, and a writer when it registers the key.
    """
    place.table().put_item(Item={"path": "/f", "at": "a"})
    table = place.table()
    table.get_item(Key={"path": "/f", "at": "a"})
    before = table.usage.take()
    assert before.requests == 2 + 0, "a key that is registered costs nothing more"
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


def test_metadata_that_was_restored_to_what_it_was_before_is_noticed(place: Place) -> None:
    known = place.table()
    place.grow(known, "/f", 1)
    before = place.item_of("/f")
    place.grow(known, "/f", 2)
    for n in range(40):
        known.put_item(Item={"path": "/f", "at": f"{n:03}"})
    place.database.client.put_item(TableName=place.metadata, Item=before)
    place.clock.sleep(60)
    with pytest.raises(MetadataLost):
        list(known.query("/f"))


def test_a_key_that_is_registered_and_grown_by_another_meanwhile_is_not_lost(place: Place) -> None:
    table = place.table()
    assert not once(table, is_a("query"), lambda: spread(place, "/f"))
    table.put_item(Item={"path": "/f", "at": "zzz"})
    assert len(list(place.table().query("/f", consistent=True))) == 41
    assert place.shards("/f").number == 4


def test_many_who_write_a_new_key_at_once_register_it_once(place: Place) -> None:
    policy = Policy(start_shards={"/f": 8})

    def write(n: int, table: ShardedTable) -> None:
        for m in range(5):
            table.put_item(Item={"path": "/f", "at": f"{n}-{m}"})

    assert at_once(*(partial(write, n, place.table(policy=policy)) for n in range(8))) == []
    assert len(list(place.table().query("/f", consistent=True))) == 40


def put_plain(place: Place, key: str) -> None:
    place.put_physical(key, "001", who={"S": "boto3"})


def test_every_call_for_a_key_that_has_items_without_a_shard_is_refused(place: Place) -> None:
    put_plain(place, "/f")
    table = place.table()
    for act in acts(table, "/f")[:-1]:
        with pytest.raises(CannotStart, match="key without a shard number"):
            act()
    assert place.item_of("/f") == {}
    result = table.batch_write([{"path": "/f", "at": "a"}, {"path": "/g", "at": "a"}])
    assert [(at, type(error)) for at, _, error in result.failed] == [(0, CannotStart)]
    assert len(list(table.query("/g", consistent=True))) == 1


def test_keys_of_the_application_that_end_like_shards_need_another_separator(place: Place) -> None:
    """A recovery would take them for shards, and a put would replace their items."""
    put_plain(place, "/f_1")
    put_plain(place, "/f_2")
    for act in acts(place.table(), "/f")[:-1]:
        with pytest.raises(
            MetadataLost, match=r"end in _2 without Keyhop, do not recover .* another separator"
        ):
            act()
    assert place.item_of("/f") == {}
    place.metadata = f"{place.name}-new"
    place.database.create(place.metadata, partition=("path", "S"), sort=None)
    place.table(separator="#").put_item(Item={"path": "/f", "at": "001"})
    found = place.database.client.scan(TableName=place.name)["Items"]
    assert sorted(item["path"]["S"] for item in found) == ["/f#1", "/f_1", "/f_2"]


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
