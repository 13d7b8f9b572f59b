"""The calls of ShardedTable on DynamoDB Local."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr
from botocore.exceptions import ClientError
from keyhop.errors import CannotStart
from keyhop.sharding.drain import Drain, Next
from keyhop.sharding.key.shards import Phase

from testing.databases import Database
from testing.marks import prove
from tests.integration.sharding.hooks import hook
from tests.integration.sharding.single import Place, index

SETTINGS: list[dict[str, Any]] = [
    {"placement": "calculated"},
    {"placement": "calculated", "hash": "modulo"},
    {"placement": "random"},
    {"placement": "calculated", "append_only": True},
    {"placement": "random", "append_only": True},
]
WITH_LOOKS = [settings for settings in SETTINGS if "append_only" not in settings]
SORT_KEYS: dict[str, Callable[[int], Any]] = {
    "S": lambda n: f"é{n:03}",
    "N": lambda n: Decimal(n - 20) * Decimal("0.5"),
    "B": lambda n: bytes([0xFF, n]),
}


def title(settings: dict[str, Any]) -> str:
    return "-".join(map(str, settings.values()))


@pytest.mark.parametrize(("partition", "sort"), [("S", "S"), ("B", "N"), prove("S", "B")])
@pytest.mark.parametrize("settings", SETTINGS, ids=title)
def test_items_are_read_in_order_while_the_shards_change(
    dynamodb: Database, table_name: str, settings: dict[str, Any], sort: Any, partition: Any
) -> None:
    place = Place(dynamodb, table_name, sort, partition)
    table = place.table(**settings)
    key = "/f_3" if partition == "S" else b"\x00_3"
    at = SORT_KEYS[sort]
    ats: list[Any] = []

    def write(upto: int) -> None:
        for n in range(len(ats), upto):
            ats.append(at(n))
            table.put_item(Item={"path": key, "at": at(n), "n": n, "blobs": {b"a", b"b"}})

    def check() -> None:
        for consistent in (False, True):
            items = list(table.query(key, consistent=consistent))
            assert [item["at"] for item in items] == ats
            assert all(item["path"] == key for item in items)
            assert set(items[0]) == {"path", "at", "n", "blobs"}
        ends = (ats[3], ats[-4])
        items = list(table.query(key, between=ends, descending=True, limit=7))
        assert [item["at"] for item in items] == ats[-4:-11:-1]

    write(15)
    check()
    place.grow(table, key, 1)
    write(30)
    place.grow(table, key, 2)
    write(40)
    check()
    assert place.shards(key).number == 4
    assert len({shard for shards in place.shards_of_items(key).values() for shard in shards}) >= 3
    place.drain(table, key, 2)
    check()
    write(50)
    assert place.drain(table, key, 1)[-1].shards.readable == 1
    check()
    assert set(map(tuple, place.shards_of_items(key).values())) == {(1,)}
    assert table.usage.counters["shards_added"] == table.usage.counters["shards_removed"] == 3
    table.close()


@pytest.mark.parametrize("settings", WITH_LOOKS, ids=title)
def test_an_item_that_may_be_in_an_older_shard_is_found_and_stays_one(
    place: Place, settings: dict[str, Any]
) -> None:
    table = place.table(**settings)
    for n in range(12):
        table.put_item(Item={"path": "/f", "at": f"{n:02}", "v": 1})
    place.grow(table, "/f", 1)
    place.grow(table, "/f", 2)
    for n in range(12):
        key = {"path": "/f", "at": f"{n:02}"}
        assert table.get_item(Key=key)["Item"] == {**key, "v": 1}
        match n % 4:
            case 0:
                assert table.put_item(Item={**key, "v": 2}, ReturnValues="ALL_OLD")[
                    "Attributes"
                ] == {**key, "v": 1}
            case 1:
                answer = table.update_item(
                    Key=key,
                    UpdateExpression="ADD v :one",
                    ExpressionAttributeValues={":one": 1},
                    ReturnValues="ALL_NEW",
                )
                assert answer["Attributes"] == {**key, "v": 2}
            case 2:
                answer = table.delete_item(Key=key, ReturnValues="ALL_OLD")
                assert answer["Attributes"] == {**key, "v": 1}
                assert "Item" not in table.get_item(Key=key, ConsistentRead=True)
                table.put_item(Item={**key, "v": 2})
            case 3:
                table.put_item(Item={**key, "v": 2}, ConditionExpression=Attr("v").eq(1))
        assert table.get_item(Key=key, ConsistentRead=True)["Item"]["v"] == 2
    shards_of_items = place.shards_of_items("/f")
    assert {len(shards) for shards in shards_of_items.values()} == {1}, "exactly one copy of each"
    assert [item["v"] for item in table.query("/f", consistent=True)] == [2] * 12
    if settings == {"placement": "calculated"}:
        assert table.usage.counters["moves"] > 0
        assert set.union(*map(set, shards_of_items.values())) == {1, 2, 3, 4}


@pytest.mark.parametrize("settings", SETTINGS, ids=title)
def test_conditions_hold_or_raise_as_boto3_does(place: Place, settings: dict[str, Any]) -> None:
    table = place.table(**settings)
    place.register("/f", 4)
    key = {"path": "/f", "at": "a"}
    table.put_item(Item={**key, "v": 1})
    failing: list[Callable[[], Any]] = [
        lambda: table.update_item(
            Key=key,
            UpdateExpression="SET v = :v",
            ConditionExpression="v > :v",
            ExpressionAttributeValues={":v": 5},
        ),
        lambda: table.delete_item(
            Key=key,
            ConditionExpression="#v = :v",
            ExpressionAttributeNames={"#v": "v"},
            ExpressionAttributeValues={":v": 5},
        ),
        lambda: table.delete_item(
            Key={"path": "/f", "at": "none"}, ConditionExpression=Attr("at").exists()
        ),
    ]
    if not settings.get("append_only"):
        failing.append(
            lambda: table.put_item(Item=key, ConditionExpression=Attr("at").not_exists())
        )
    for call in failing:
        with pytest.raises(ClientError) as error:
            call()
        assert error.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
    assert table.get_item(Key=key, ConsistentRead=True)["Item"] == {**key, "v": 1}
    if settings.get("append_only"):
        with pytest.raises(CannotStart, match="condition"):
            table.put_item(Item=key, ConditionExpression=Attr("at").not_exists())


@pytest.mark.parametrize("settings", WITH_LOOKS, ids=title)
@pytest.mark.parametrize("steps", range(6))
def test_writes_in_each_phase_of_a_drain_are_kept(
    place: Place, settings: dict[str, Any], steps: int
) -> None:
    """The writes follow a number of steps of the drain and change items of all shards."""
    table = place.table(**settings)
    place.register("/f", 3)
    for n in range(9):
        table.put_item(Item={"path": "/f", "at": str(n), "v": 0})
    drain = Drain(table)
    for _ in range(steps):
        place.clock.sleep(drain.step("/f", 1).seconds)
    for n in range(3):
        table.put_item(Item={"path": "/f", "at": str(n), "v": 1})
        table.update_item(
            Key={"path": "/f", "at": str(n + 3)},
            UpdateExpression="set v = v + :one",
            ExpressionAttributeValues={":one": 1},
        )
        table.delete_item(Key={"path": "/f", "at": str(n + 6)})
    expected = [(str(n), 1) for n in range(6)]
    assert [(i["at"], i["v"]) for i in table.query("/f", consistent=True)] == expected
    place.drain(table, "/f", 1)
    items = list(table.query("/f", consistent=True))
    assert [(item["at"], item["v"]) for item in items] == expected
    assert all(set(item) == {"path", "at", "v"} for item in items), "no fence is seen"
    assert place.shards_of_items("/f") == {str(n): [1] for n in range(6)}


@pytest.mark.parametrize("steps", range(1, 5))
def test_a_key_can_grow_after_a_drain_was_called_off(place: Place, steps: int) -> None:
    table = place.table()
    place.register("/f", 3)
    for n in range(9):
        table.put_item(Item={"path": "/f", "at": str(n)})
    drain = Drain(table)
    for _ in range(steps):
        place.clock.sleep(drain.step("/f", 1).seconds)
    while (step := drain.call_off("/f")).action is not Next.DONE:
        place.clock.sleep(step.seconds)
    for _ in range(8):
        place.clock.sleep(5)
        table.put_item(Item={"path": "/f", "at": "9"})
    shards = place.shards("/f")
    assert (shards.phase, shards.number, shards.writable, shards.readable) == (
        Phase.STEADY,
        *(3, 3, 3),
    )
    assert [item["at"] for item in table.query("/f", consistent=True)] == list("0123456789")
    assert {len(shards) for shards in place.shards_of_items("/f").values()} == {1}
    place.grow(table, "/f", 1)


def test_a_steady_write_is_one_request(place: Place) -> None:
    for settings in ({"append_only": True, "placement": "random"}, {"placement": "calculated"}):
        table = place.table(**settings)
        key = f"/{title(settings)}"
        place.register(key, 8, placement={"S": table.placement.text("_")})
        table.put_item(Item={"path": key, "at": "0"})
        before = table.usage.requests
        for n in range(1, 21):
            table.put_item(Item={"path": key, "at": str(n)})
        assert table.usage.requests - before == 20
        assert table.usage.counters["looks"] == 0


def test_pages_continue_while_the_shards_change(place: Place) -> None:
    table = place.table()
    for n in range(60):
        table.put_item(Item={"path": "/f", "at": f"{n:02}"})
    ats, token, pages = [], None, 0
    while True:
        page = table.query_page("/f", descending=True, limit=13, page_token=token)
        ats += [item["at"] for item in page.items]
        token = page.token
        pages += 1
        if token is None:
            break
        if pages == 1:
            place.grow(table, "/f", 3)
            for n in range(60, 70):
                table.put_item(Item={"path": "/f", "at": f"{n:02}"})
        if pages == 3:
            place.drain(table, "/f", 1)
    assert ats == [f"{n:02}" for n in range(59, -1, -1)]
    assert pages == 5


def test_pages_of_a_megabyte_are_merged(place: Place) -> None:
    table = place.table(placement="random", append_only=True)
    place.register("/f", 3)
    for n in range(30):
        table.put_item(Item={"path": "/f", "at": f"{n:02}", "blob": b"x" * 150_000})
    expected = [f"{n:02}" for n in range(30)]
    for consistent in (False, True):
        ats = [item["at"] for item in table.query("/f", consistent=consistent)]
        assert ats == expected
    items = table.query("/f", descending=True, consistent=True)
    assert [item["at"] for item in items] == expected[::-1]
    place.clock.sleep(60)
    drain = Drain(table)
    for _ in range(3):
        place.clock.sleep(drain.step("/f", 1).seconds)
    for descending in (False, True):  # now shards are read in order, a page at a time
        ats = [i["at"] for i in table.query("/f", descending=descending, consistent=True)]
        assert ats == (expected[::-1] if descending else expected)


def test_a_query_is_lazy(place: Place) -> None:
    table = place.table(placement="random", append_only=True)
    place.register("/f", 2)
    for n in range(20):
        table.put_item(Item={"path": "/f", "at": f"{n:02}", "blob": b"x" * 150_000})
    before = table.usage.read_units
    assert next(iter(table.query("/f", limit=1)))["at"] == "00"
    assert table.usage.read_units - before <= 2 * 2 * 150_000 / 4096 / 2 + 4


def test_keys_that_end_like_shards_are_not_confused(place: Place) -> None:
    table = place.table()
    for key in ("a", "a_1", "a_1_1", "a_2"):
        place.register(key, 2)
        for n in range(5):
            table.put_item(Item={"path": key, "at": str(n), "of": key})
    for key in ("a", "a_1", "a_1_1", "a_2"):
        items = list(table.query(key, consistent=True))
        assert len(items) == 5
        assert {item["of"] for item in items} == {item["path"] for item in items} == {key}


def test_a_batch_reports_each_failed_item(place: Place) -> None:
    for settings in SETTINGS:
        table = place.table(**settings)
        key = f"/{title(settings)}"
        place.register(key, 3)
        items: list[Any] = [{"path": key, "at": f"{n:03}", "n": n} for n in range(60)]
        items[7] = {"path": key}
        items[9] = {"path": key, "at": "x", "n": 0.5}
        items[11] = {"path": key, "at": "012", "n": "earlier"}
        result = table.batch_write(items)
        assert [place for place, _, _ in result.failed] == [7, 9]
        assert result.written == 58
        values = {item["at"]: item["n"] for item in table.query(key, consistent=True)}
        assert len(values) == 57
        assert values["012"] == 12, "of two with the same key the later one counts"


def test_queries_are_spread_over_indexes_of_the_same_schema(
    dynamodb: Database, table_name: str
) -> None:
    place = Place(dynamodb, table_name, **index("copy", "path", "at"))
    table = place.table(read_indexes=["copy"])
    place.register("/f", 2)
    for n in range(10):
        table.put_item(Item={"path": "/f", "at": str(n)})
    index_names = []

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        index_names.append(parameters.get("IndexName"))
        return send()

    hook(table, act)
    assert [item["at"] for item in table.query("/f")] == list("0123456789")
    assert sorted(map(str, index_names)) == ["None", "copy"]
    index_names.clear()
    assert len(list(table.query("/f", consistent=True))) == 10
    assert set(index_names) == {None}, "an index has no strongly consistent reads"
    with pytest.raises(CannotStart, match="no index 'none'"):
        list(place.table(read_indexes=["none"]).query("/f"))


@pytest.mark.parametrize("settings", WITH_LOOKS, ids=title)
def test_items_that_another_program_has_spread_are_found(
    place: Place, settings: dict[str, Any]
) -> None:
    """Without a placement in the metadata, the hash is unknown, so a look reads all shards."""
    place.register("/f", 4)
    for n in range(12):
        place.put_physical(f"/f_{n % 4 + 1}", f"{n:02}", v={"N": "1"})
    table = place.table(**settings)
    for n in range(12):
        key = {"path": "/f", "at": f"{n:02}"}
        assert table.get_item(Key=key, ConsistentRead=True)["Item"]["v"] == 1
        table.put_item(Item={**key, "v": 2})
    assert [item["v"] for item in table.query("/f", consistent=True)] == [2] * 12
    assert {len(shards) for shards in place.shards_of_items("/f").values()} == {1}
