"""Shards that a key has from its start, or gets as soon as possible."""

import pytest
from keyhop.errors import CannotStart
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.key.protocol import Claim
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.store.listing import all_keys

from tests.integration.sharding.single import Place


@pytest.mark.parametrize("settings", [{}, {"placement": "random", "append_only": True}], ids=str)
def test_a_key_starts_with_the_shards_of_its_policy(
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
    assert (
        len({shard for shards in place.shards_of_items("/logs/a").values() for shard in shards}) > 4
    )


def test_no_write_waits_for_an_urgent_growth(place: Place) -> None:
    """New items use their old places, then claims, and then their new places."""
    table = place.table()
    items = [f"{n:02}" for n in range(60)]
    for at in items[:20]:
        table.put_item(Item={"path": "/f", "at": at})
    record = table.metadata.of({"S": "/f"}, fresh=True)
    table.metadata.grow({"S": "/f"}, record, 8)
    used_shards: list[set[int]] = []
    for phase, batch in (("announced", items[20:40]), ("opened", items[40:])):
        assert place.shards("/f").phase == phase
        began, requests = place.clock.monotonic(), table.usage.requests
        for at in items[:20]:
            table.update_item(
                Key={"path": "/f", "at": at},
                UpdateExpression="SET n = :n",
                ExpressionAttributeValues={":n": 1},
            )
        for at in batch:
            table.put_item(Item={"path": "/f", "at": at})
        assert place.clock.monotonic() == began
        assert table.usage.requests - requests <= 2 * 20 + 3 * 20 + 2
        shards_of_items = place.shards_of_items("/f")
        assert all(len(shards) == 1 for shards in shards_of_items.values())
        used_shards.append({shards_of_items[at][0] for at in batch})
        place.clock.sleep(5.1)
        table.put_item(Item={"path": "/f", "at": "00"})  # it ends the phase
    assert used_shards[0] == {1}
    assert len(used_shards[1]) > 4
    assert place.shards("/f").phase == "steady"
    requests = table.usage.requests
    table.put_item(Item={"path": "/f", "at": "99"})
    assert table.usage.requests - requests <= 2, "it needs no claim"
    assert [item["at"] for item in table.query("/f", consistent=True)] == [*items, "99"]


def test_a_writer_that_finds_a_claim_waits_for_the_end_of_the_growth(place: Place) -> None:
    """The writer with the claim of the old place may still create the item there."""
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "00"})
    record = table.metadata.of({"S": "/f"}, fresh=True)
    announced = table.metadata.grow({"S": "/f"}, record, 8)
    assert announced is not None
    key = next(
        key
        for key in (ItemKey({"S": "/f"}, {"S": f"{n:02}"}) for n in range(1, 60))
        if table.writer.place_of(key)(8) != 1
    )
    growth = announced.shards.counted_at
    table.metadata.claims.write(key, growth, None, Claim(1, "a writer that was killed"))
    place.clock.sleep(5.1)
    table.put_item(Item={"path": "/f", "at": "00"})
    assert place.shards("/f").phase == "opened"
    began = place.clock.monotonic()
    table.put_item(Item={"path": "/f", "at": key.sort["S"]})
    assert 4 <= place.clock.monotonic() - began <= 7
    assert place.shards_of_items("/f")[key.sort["S"]] == [table.writer.place_of(key)(8)]


def test_claims_are_not_listed_as_keys(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "00"})
    record = table.metadata.of({"S": "/f"}, fresh=True)
    table.metadata.grow({"S": "/f"}, record, 8)
    for n in range(20):
        table.put_item(Item={"path": "/f", "at": f"{n:02}"})
    keys = all_keys(table.requests, table.metadata.table, table.schema.partition)
    assert [key for key, _, _ in keys] == [{"S": "/f"}]
    with pytest.raises(CannotStart, match="keyhop-claim"):
        table.put_item(Item={"path": "!keyhop-claim 1", "at": "00"})


def test_a_log_uses_its_new_shards_after_half_of_the_time(place: Place) -> None:
    table = place.table(placement="random", append_only=True)
    table.put_item(Item={"path": "/f", "at": "a"})
    record = table.metadata.of({"S": "/f"}, fresh=True)
    began = place.clock.monotonic()
    table.metadata.grow({"S": "/f"}, record, 8)
    while place.shards("/f").phase == "announced":
        place.clock.sleep(0.1)
        table.put_item(Item={"path": "/f", "at": f"{place.clock.monotonic()}"})
    assert 2.5 <= place.clock.monotonic() - began <= 2.7
