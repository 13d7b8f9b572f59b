"""`keyhop shards recover`: it writes lost metadata again, in each state of a key."""

import json

import pytest
from keyhop.errors import CannotStart, MetadataLost
from keyhop.sharding.counter import ShardedCounter
from keyhop.sharding.drain import Drain
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.key.shards import Phase

from testing.databases import Database
from testing.marks import prove
from tests.integration.sharding.single import JumpingClock
from tests.integration.sharding_command.test_shards import Place, clock, spread_items

__all__ = ["clock"]


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


def keys_with_metadata(place: Place) -> set[str]:
    items = place.database.client.scan(TableName=place.metadata)["Items"]
    return {str(item["path"][place.type]) for item in items}


def numbers(place: Place, key: object, **settings: object) -> list[int]:
    return [int(item["n"]) for item in place.table(**settings).query(key, consistent=True)]


SETTINGS = [
    {},
    {"hash": "modulo"},
    {"placement": "random"},
    {"placement": "random", "append_only": True},
    {"separator": "#"},
]


@pytest.mark.parametrize(
    "settings",
    [*(prove(settings) for settings in SETTINGS[1:3]), SETTINGS[0], *SETTINGS[3:]],
    ids=str,
)
def test_a_recovered_key_is_read_and_written_as_before(
    place: Place, settings: dict[str, object]
) -> None:
    """Some items were placed by earlier shard counts, which are lost."""
    for shards in (2, 5):
        spread_items(place, "/f", shards, **settings)
        place.write("/f", 40 + 10 * shards, **settings)
    place.write("/g", 3, **settings)
    before = numbers(place, "/f", **settings)
    place.lose("/f", "/g")
    with pytest.raises(MetadataLost):
        numbers(place, "/f", **settings)
    result = place.run("recover", "--yes")
    assert result.status == 0, result.err
    assert "/f: readers read 5 shards now" in result.out.decode()
    assert numbers(place, "/f", **settings) == before
    table = place.table(**settings)
    for n in range(90):
        key = {"path": "/f", "at": f"{n:05}"}
        assert table.get_item(Key=key, ConsistentRead=True)["Item"]["n"] == n
        if "append_only" not in settings:
            table.put_item(Item={**key, "n": n})
    place.table(**settings).put_item(Item={"path": "/f", "at": "new", "n": 1_000})
    assert numbers(place, "/f", **settings) == [*before, 1_000], "each item once"


def test_nothing_is_written_without_a_loss_or_an_approval(place: Place) -> None:
    spread_items(place, "/f", 3)
    result = place.run("recover", "--yes")
    assert "lacks nothing" in result.err
    assert "Do not recover" not in result.err
    place.lose("/f")
    result = place.run("recover", "--dry-run")
    assert result.out.decode() == "/f: would have 3 shards.\n"
    assert "physical keys read, for" in result.err
    assert "Do not recover keys that the application wrote without Keyhop" in result.err
    assert keys_with_metadata(place) == {"!keyhop-total"}
    result = place.run("recover")
    assert result.status == 2
    warning, _, question = result.err.partition("This would recover the metadata of 1 key")
    assert "Do not recover keys that the application wrote without Keyhop" in warning
    assert question
    assert keys_with_metadata(place) == {"!keyhop-total"}


def test_it_may_run_again_and_has_json_output(place: Place) -> None:
    spread_items(place, "/f", 3)
    spread_items(place, "/g", 2)
    place.lose("/f", "/g")
    recovered = json.loads(place.run("recover", "--yes", "--key", "/f", "-f", "json").out)
    assert recovered == [
        {"key": "/f", "shards": 3, "known": 0, "recovered": True, "error": None},
    ]
    assert keys_with_metadata(place) == {"!keyhop-total", "/f"}
    recovered = json.loads(place.run("recover", "--yes", "-f", "json").out)
    assert [(key["key"], key["shards"]) for key in recovered] == [("/g", 2)]
    assert json.loads(place.run("recover", "--yes", "-f", "json").out) == []


def test_metadata_with_too_few_shards_gets_all_shards(place: Place, clock: JumpingClock) -> None:
    """A restore from a backup may have this effect."""
    spread_items(place, "/f", 4)
    before = numbers(place, "/f")
    place.set("/f", number=1, writable=1, readable=1, placed_by=frozenset({1}), history=())
    place.write("/f", 1)
    clock.now += 600
    result = place.run("recover", "--yes")
    assert result.status == 0, result.err
    assert "4 shards; there is 1 shard" in result.err
    assert numbers(place, "/f") == before
    assert place.shards("/f").placed_by == {1, 2, 3, 4}


def test_keys_that_end_like_shards_are_distinguished(place: Place) -> None:
    """A logical key may end like a shard, and the table may contain keys without shards."""
    spread_items(place, "/a_2", 3)
    spread_items(place, "/a", 2)
    place.lose("/a", "/a_2")
    for key in ("/photo_3", "/photo_1", "/scan_2", "/plain", "!keyhop-total_2", "/x_1001"):
        place.put_physical(key, "a")
    result = place.run("recover", "--yes")
    assert result.out.decode().splitlines() == [
        "/a: readers read 2 shards now; writers use them after 5 s.",
        "/a_2: readers read 3 shards now; writers use them after 5 s.",
    ]
    assert "Left out: 2 keys with an empty shard before the last one" in result.err
    assert keys_with_metadata(place) == {"!keyhop-total", "/a", "/a_2"}
    place.run("recover", "--yes", "--key", "/scan")
    assert place.shards("/scan").readable == 2
    result = place.run("recover", "--yes", "--with-gaps")
    assert result.out.decode() == "/photo: readers read 3 shards now; writers use them after 5 s.\n"


def test_counters_are_recovered_and_their_markers_stay(place: Place, clock: JumpingClock) -> None:
    counter = ShardedCounter(place.table(policy=Policy(start_shards={"/n": 3})))
    for n in range(30):
        counter.add("/n", token=f"{n}")
    place.lose("/n")
    clock.now += 60
    with pytest.raises(MetadataLost):
        counter.value("/n")
    place.run("recover", "--yes", "--with-gaps")
    assert keys_with_metadata(place) == {"!keyhop-total", "/n"}
    assert counter.value("/n", consistent=True) == 30


def test_a_key_that_was_lost_in_the_middle_of_a_drain(place: Place, clock: JumpingClock) -> None:
    """Some items are moved and some have fences. The drain that continues then ends."""
    spread_items(place, "/f", 4)
    before = numbers(place, "/f")
    table = place.table()
    drain = Drain(table)
    place.drain(table, "/f", 1, until="fenced")
    for n in range(20):
        table.update_item(
            Key={"path": "/f", "at": f"{n:05}"},
            UpdateExpression="SET u = :u",
            ExpressionAttributeValues={":u": 1},
        )
    place.drain(table, "/f", 1, until="moving")
    assert drain.step("/f", 1, 0.0, begun=True).shards.phase is Phase.MOVING
    place.lose("/f")
    clock.now += 60
    with pytest.raises(MetadataLost):
        drain.step("/f", 1, begun=True)
    result = place.run("recover", "--yes")
    assert result.status == 0, result.err
    assert numbers(place, "/f") == before
    clock.now += 60
    table.put_item(Item={"path": "/f", "at": "00000", "n": 0})
    assert numbers(place, "/f") == before
    place.run("drain", "/f", "--shards", "1")
    assert numbers(place, "/f") == before
    assert place.shards("/f").number == 1


def test_a_key_with_items_in_its_first_shard_only_gets_one_shard(place: Place) -> None:
    place.write("/f", 1)
    place.lose("/f")
    policy = Policy(start_shards={"/f": 8})
    with pytest.raises(MetadataLost):
        place.write("/f", 1, policy=policy)
    result = place.run("recover", "--yes", "--key", "/f")
    assert "/f: readers read 1 shard now" in result.out.decode()
    place.write("/f", 2, policy=policy)
    assert numbers(place, "/f") == [0, 1]


def test_other_keys_are_recovered_if_one_cannot_be(place: Place) -> None:
    spread_items(place, "/bad", 3)
    spread_items(place, "/good", 3)
    place.lose("/good")
    place.database.client.update_item(
        TableName=place.metadata,
        Key={"path": {"S": "/bad"}},
        UpdateExpression="SET readable = :n",
        ExpressionAttributeValues={":n": {"N": "2"}},
    )
    result = place.run("recover", "--yes")
    assert result.status == 2
    assert "/bad: not recovered: A shard metadata item contradicts itself" in result.out.decode()
    assert place.shards("/good").readable == 3


def test_binary_keys(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name, "B")
    spread_items(place, b"\x00\xff", 3)
    place.lose(b"\x00\xff")
    assert "AP8=: would have 3 shards." in place.run("recover", "--dry-run").out.decode()
    recovered = json.loads(
        place.run("recover", "--key", "AP8=", "--base64", "--yes", "-f", "json").out
    )
    assert [key["recovered"] for key in recovered] == [True]
    assert place.shards(b"\x00\xff").readable == 3


def test_the_placement_must_be_given_if_all_metadata_is_lost(place: Place) -> None:
    spread_items(place, "/f", 3)
    place.lose("/f", "!keyhop-total")
    result = place.run("recover", "--yes")
    assert result.status == 2
    assert "give --placement" in result.err
    result = place.run("recover", "--yes", "--placement", "calculated")
    assert result.status == 0
    assert keys_with_metadata(place) == {"!keyhop-total", "/f"}
    with pytest.raises(CannotStart, match="must have the same placement"):
        numbers(place, "/other", placement="random")


def test_the_listing_stops_at_the_maximum_cost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread_items(place, "/f", 3)
    place.lose("/f")
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 1000000, "writes": 1000000}')
    result = place.run("recover", "--yes", "--max-cost", "0.3")
    assert (result.status, result.out) == (4, b"")
    assert keys_with_metadata(place) == {"!keyhop-total"}
    assert place.run("recover", "--yes", "--max-cost", "100").status == 0
    assert keys_with_metadata(place) == {"!keyhop-total", "/f"}
