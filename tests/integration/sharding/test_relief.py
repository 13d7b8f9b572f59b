"""Relief before it is needed, and as soon as it can be."""

import pytest
from keyhop.sharding.key.policy import Policy

from testing.databases import Database
from tests.integration.sharding.single import Place


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


@pytest.mark.parametrize("settings", [{}, {"placement": "random", "append_only": True}], ids=str)
def test_a_key_that_is_known_to_become_hot_starts_with_shards(
    place: Place, settings: dict[str, object]
) -> None:
    policy = Policy(start_shards={"/logs/*": 8})
    writer, reader = place.table(policy=policy, **settings), place.table(**settings)
    assert list(reader.query("/logs/a", consistent=True)) == []
    for n in range(40):
        writer.put_item(Item={"path": "/logs/a", "at": f"{n:02}"})
        writer.put_item(Item={"path": "/other", "at": f"{n:02}"})
    assert len(list(reader.query("/logs/a", consistent=True))) == 40
    assert (place.shards("/logs/a").number, place.shards("/other").number) == (8, 1)
    assert len({shard for held in place.lies_in("/logs/a").values() for shard in held}) > 4


def test_new_items_wait_for_an_urgent_growth_and_others_do_not(place: Place) -> None:
    table = place.table()
    items = [f"{n:02}" for n in range(40)]
    for at in items[:20]:
        table.put_item(Item={"path": "/f", "at": at})
    known = table.metadata.of({"S": "/f"}, fresh=True)
    began = place.clock.monotonic()
    table.metadata.grow({"S": "/f"}, known, 8, urgently=True)
    assert place.shards("/f").phase == "awaited"
    for at in items[:20]:
        table.update_item(
            Key={"path": "/f", "at": at},
            UpdateExpression="SET n = :n",
            ExpressionAttributeValues={":n": 1},
        )
    assert place.clock.monotonic() == began
    requests = table.usage.requests
    for at in items[20:]:
        table.put_item(Item={"path": "/f", "at": at})
    assert 5 <= place.clock.monotonic() - began <= 7
    assert place.shards("/f").phase == "widened"
    assert table.usage.requests - requests < 100
    held = place.lies_in("/f")
    assert all(len(shards) == 1 for shards in held.values())
    assert len({shards[0] for shards in held.values()}) > 4
    assert [item["at"] for item in table.query("/f", consistent=True)] == items


def test_a_log_uses_its_new_shards_after_half_of_the_time(place: Place) -> None:
    table = place.table(placement="random", append_only=True)
    table.put_item(Item={"path": "/f", "at": "a"})
    known = table.metadata.of({"S": "/f"}, fresh=True)
    began = place.clock.monotonic()
    table.metadata.grow({"S": "/f"}, known, 8, urgently=True)
    while place.shards("/f").phase == "awaited":
        place.clock.sleep(0.1)
        table.put_item(Item={"path": "/f", "at": f"{place.clock.monotonic()}"})
    assert 2.5 <= place.clock.monotonic() - began <= 2.7
