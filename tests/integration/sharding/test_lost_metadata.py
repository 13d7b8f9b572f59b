"""Metadata that was deleted: a key is not registered anew, and nothing is told of a part of it."""

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import CannotStart, MetadataLost
from keyhop.sharding.drain import Drain
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.manage import add_shards
from keyhop.sharding.table import ShardedTable

from testing.databases import Database
from tests.integration.sharding.single import Place


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


def lose(place: Place, key: str) -> None:
    place.database.client.delete_item(TableName=place.metadata, Key={"path": {"S": key}})


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
    lose(place, "/f")
    place.clock.sleep(60)
    for table in (place.table(**how), known):
        for act in acts(table, "/f"):
            with pytest.raises(MetadataLost, match=f"items of {place.name} .* recover the shards"):
                act()
        result = table.batch_write([{"path": "/f", "at": "a"}, {"path": "/g", "at": "a"}])
        assert [(at, type(error)) for at, _, error in result.failed] == [(0, MetadataLost)]
    assert "Item" not in place.database.client.get_item(
        TableName=place.metadata, Key={"path": {"S": "/f"}}
    )


def test_a_key_of_one_shard_is_registered_anew_and_whole(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a"})
    lose(place, "/f")
    place.clock.sleep(60)
    for each in (table, place.table()):
        each.put_item(Item={"path": "/f", "at": "b"})
        assert [item["at"] for item in each.query("/f", consistent=True)] == ["a", "b"]


def test_what_start_shards_would_hide_is_noticed(place: Place) -> None:
    """With places by eight shards, items of the first would not be found."""
    place.table().put_item(Item={"path": "/logs/a", "at": "a"})
    lose(place, "/logs/a")
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
    lose(place, "/f")
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
    item = {"path": {"S": "/f_3"}, "at": {"S": "a"}}
    place.database.client.put_item(TableName=place.name, Item=item)
    lose(place, "/f")
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
    client, key = place.database.client, {"path": {"S": "/f"}}
    before = client.get_item(TableName=place.metadata, Key=key)["Item"]
    place.grow(known, "/f", 2)
    for n in range(40):
        known.put_item(Item={"path": "/f", "at": f"{n:03}"})
    client.put_item(TableName=place.metadata, Item=before)
    place.clock.sleep(60)
    with pytest.raises(MetadataLost):
        list(known.query("/f"))


class Between:
    """Keyhop's client; something happens before its next Query."""

    def __init__(self, place: Place, happens: Callable[[], Any]) -> None:
        self.client = dynamodb_client(Endpoint(url=place.database.url), 4)
        self.happens: Callable[[], Any] | None = happens

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "query" and self.happens is not None:
            happens, self.happens = self.happens, None
            happens()
        return self.client.call(operation, **parameters)


def test_a_key_that_is_registered_and_grown_by_another_meanwhile_is_not_lost(place: Place) -> None:
    table = place.table(client=Between(place, lambda: spread(place, "/f")))
    table.put_item(Item={"path": "/f", "at": "zzz"})
    assert len(list(place.table().query("/f", consistent=True))) == 41
    assert place.shards("/f").number == 4


def test_many_who_write_a_new_key_at_once_register_it_once(place: Place) -> None:
    policy = Policy(start_shards={"/f": 8})
    barrier, failed = Barrier(8), []

    def write(n: int) -> None:
        table = place.table(policy=policy)
        barrier.wait()
        try:
            for m in range(5):
                table.put_item(Item={"path": "/f", "at": f"{n}-{m}"})
        except CannotStart as error:
            failed.append(error)

    threads = [Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(list(place.table().query("/f", consistent=True))) == 40
