"""Keys that are divided by time: items, queries over buckets, pages, and changes of buckets."""

import math
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.sharding.calendar_table import BUCKETS_OF_A_PAGE, CalendarTable
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.manage import list_keys

from testing.databases import Database
from testing.marks import prove
from tests.integration.sharding.hooks import is_operation, once
from tests.integration.sharding.single import BEGIN, Place

TODAY = datetime.fromtimestamp(BEGIN, UTC).date()  # 2027-01-15
KEY = "7"


def calendar(place: Place, bucket: Any = "day", **settings: Any) -> CalendarTable:
    arguments = {
        name: settings.pop(name) for name in ("time", "time_unit", "ahead") if name in settings
    }
    return CalendarTable(place.table(**settings), bucket=bucket, **arguments)


def hourly(days: int, first: str = "2027-01-01") -> list[str]:
    """Return the hours of so many days."""
    start = datetime.fromisoformat(first)
    return [(start + timedelta(hours=n)).isoformat() + "Z" for n in range(24 * days)]


def filled(place: Place, bucket: Any = "day", days: int = 4, **settings: Any) -> CalendarTable:
    table = calendar(place, bucket, **settings)
    assert not table.batch_write({"path": KEY, "at": at, "n": 1} for at in hourly(days)).failed
    return table


def pages(table: CalendarTable, **arguments: Any) -> list[list[dict[str, Any]]]:
    """Return the items of each page."""
    page = table.query_page(KEY, **arguments)
    items = [page.items]
    while page.token is not None:
        page = table.query_page(KEY, page_token=page.token, **arguments)
        items.append(page.items)
    return items


def keys_of(place: Place) -> set[str]:
    return {item["path"]["S"] for item in place.database.client.scan(TableName=place.name)["Items"]}


@pytest.mark.parametrize(
    ("bucket", "names"),
    [
        ("month", ["7#2027-01_1"]),
        ("day", ["7#2027-01-01_1", "7#2027-01-02_1"]),
        ("hour", [f"7#2027-01-0{d}T{h:02}_1" for d in (1, 2) for h in range(24)]),
    ],
)
def test_an_item_is_stored_in_the_bucket_of_its_time(
    place: Place, bucket: str, names: list[str]
) -> None:
    table = filled(place, bucket, days=2)
    assert sorted(keys_of(place)) == names
    items = [*table.query(KEY, between=("2027-01-01", "2027-01-02T23:00:00Z"))]
    assert [item["at"] for item in items] == hourly(2)
    assert {item["path"] for item in items} == {KEY}


def test_single_items(place: Place) -> None:
    table = calendar(place)
    item = {"path": KEY, "at": "2027-01-01T09:00:00Z", "n": 1}
    key = {"path": KEY, "at": "2027-01-01T09:00:00Z"}
    assert "Item" not in table.get_item(Key=key)
    table.put_item(Item=item)
    assert table.get_item(Key=key, ConsistentRead=True)["Item"] == item
    assert table.put_item(Item={**item, "n": 2}, ReturnValues="ALL_OLD")["Attributes"] == item
    with pytest.raises(ClientError) as caught:
        table.put_item(
            Item=item,
            ConditionExpression="attribute_not_exists(n)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert caught.value.response["Item"]["path"] == {"S": KEY}
    assert table.delete_item(Key=key, ReturnValues="ALL_OLD")["Attributes"]["path"] == KEY
    assert "Item" not in table.get_item(Key=key)


def test_a_batch_says_which_item_failed(place: Place) -> None:
    table = calendar(place)
    items: list[Any] = [
        {"path": KEY, "at": "2027-01-01T09"},
        {"path": KEY, "at": "yesterday"},
        {"path": KEY},
        {"path": KEY, "at": "2027-01-02T09", "bad": 1.5},
        "no item",
        {"path": KEY, "at": "2027-01-03T09"},
    ]
    result = table.batch_write(iter(items))
    assert result.written == 2
    assert [(place, item) for place, item, _ in result.failed] == [
        (n, items[n]) for n in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize(
    ("settings", "descending"),
    [
        prove({}, False),
        ({}, True),
        prove({"policy": Policy(start_shards={"7#*": 4})}, False),
        prove({"policy": Policy(start_shards={"7#*": 4})}, True),
    ],
    ids=str,
)
def test_queries_over_buckets_and_shards(
    place: Place, descending: bool, settings: dict[str, Any]
) -> None:
    table = filled(place, **settings)
    assert len(keys_of(place)) == (16 if settings else 4)
    for between in [
        ("2027-01-01T05:00:00Z", "2027-01-03T05:00:00Z"),
        ("2027-01-02", "2027-01-02T23~"),
        ("2026", "2027-01-02~"),
        ("2027-01-04T23:00:00Z", "2029"),
        ("2027-01-02T00:30", "2027-01-02T00:40"),
    ]:
        expected = [at for at in hourly(4) if between[0] <= at <= between[1]]
        if descending:
            expected = expected[::-1]
        query: dict[str, Any] = {"between": between, "descending": descending, "consistent": True}
        assert [item["at"] for item in table.query(KEY, **query)] == expected
        assert [item["at"] for item in table.query(KEY, limit=7, **query)] == expected[:7]
        paged = pages(table, limit=7, **query)
        assert max(map(len, paged)) <= 7
        assert [item["at"] for page in paged for item in page] == expected
    assert [*table.query("8", between=("2027-01-01", "2027-01-05"))] == []


def test_a_new_bucket_starts_with_the_shards_of_the_previous_one(place: Place) -> None:
    """Otherwise a hot key would be throttled at each midnight."""
    table = calendar(place)
    table.put_item(Item={"path": KEY, "at": "2027-01-10T08:00:00Z"})
    place.grow(table.table, f"{KEY}#2027-01-10", 3)
    calendar(place).put_item(Item={"path": KEY, "at": "2027-01-11T08:00:00Z"})
    few = calendar(place, policy=Policy(most=2, start_shards={"7#2027-01-13": 2}))
    few.batch_write([{"path": KEY, "at": f"2027-01-{day}T08:00:00Z"} for day in ("12", "13", "05")])
    days = ("05", "10", "11", "12", "13")
    numbers = [place.shards(f"{KEY}#2027-01-{day}").number for day in days]
    assert numbers == [1, 4, 4, 2, 2]


def test_a_query_is_lazy(place: Place) -> None:
    table = filled(place)
    before = table.table.usage.requests
    first = next(table.query(KEY, between=("2027-01-01", "2027-01-05")))
    assert first["at"] == hourly(1)[0]
    assert table.table.usage.requests - before <= 3


def test_a_page_ends_after_a_number_of_buckets(place: Place) -> None:
    table = calendar(place, "hour")
    for at in ("2027-01-01T00:00:00Z", "2027-01-10T00:00:00Z"):
        table.put_item(Item={"path": KEY, "at": at})
    between = ("2027-01-01", "2027-01-11")
    assert [len(page) for page in pages(table, between=between)] == [1, 0, 1]
    assert BUCKETS_OF_A_PAGE == 100


def test_tokens_of_other_queries_are_refused(place: Place) -> None:
    table = filled(place)
    arguments: dict[str, Any] = {"between": ("2027-01-01", "2027-01-05"), "limit": 5}
    token = table.query_page(KEY, **arguments).token
    assert token is not None
    for changed in (
        {**arguments, "between": ("2027-01-01", "2027-01-04")},
        {**arguments, "descending": True},
    ):
        with pytest.raises(CannotStart, match="another query"):
            table.query_page(KEY, page_token=token, **changed)
    with pytest.raises(CannotStart, match="another query"):
        table.query_page("8", page_token=token, **arguments)
    sharded = table.table.query_page(f"{KEY}#2027-01-01", limit=5).token
    for damaged in (token[:-8], "x", "", sharded):
        with pytest.raises(CannotStart, match="damaged"):
            table.query_page(KEY, page_token=damaged, **arguments)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_that_are_numbers(dynamodb: Database, table_name: str, unit: str) -> None:
    place = Place(dynamodb, table_name, sort="N")
    table = calendar(place, time_unit=unit)
    scale = 1000 if unit == "ms" else 1
    times = [(int(BEGIN) - 3600 * n) * scale for n in range(48)][::-1]
    for at in times:
        table.put_item(Item={"path": KEY, "at": at})
    assert len(keys_of(place)) == 3
    items = table.query(KEY, between=(times[5], times[30]))
    assert [int(item["at"]) for item in items] == times[5:31]
    assert table.get_item(Key={"path": KEY, "at": times[0]})["Item"]["path"] == KEY


@pytest.mark.parametrize("descending", [False, True])
def test_a_time_that_is_not_the_sort_key(place: Place, descending: bool) -> None:
    """Buckets are in the order of time, and the items of a bucket in the order of sort keys."""
    table = calendar(place, time="made")
    for n, at in enumerate(hourly(3)):
        table.put_item(Item={"path": KEY, "at": f"id-{(n * 7) % 72:02}", "made": at})
    between = ("2027-01-01T05:00:00Z", "2027-01-03T05:00:00Z")
    arguments: dict[str, Any] = {"between": between, "descending": descending}
    items = [*table.query(KEY, **arguments)]
    assert {item["made"] for item in items} == {
        at for at in hourly(3) if between[0] <= at <= between[1]
    }
    order = [(item["made"][:10], item["at"]) for item in items]
    assert order == sorted(order, reverse=descending)
    assert [item for page in pages(table, limit=7, **arguments) for item in page] == items
    first = items[0]
    key = {name: first[name] for name in ("path", "at", "made")}
    assert table.get_item(Key=key)["Item"] == first
    table.delete_item(Key=key)
    assert "Item" not in table.get_item(Key=key)
    with pytest.raises(CannotStart, match="has no made"):
        table.get_item(Key={"path": KEY, "at": first["at"]})


def test_binary_keys(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name, partition="B", sort="B")
    with pytest.raises(CannotStart, match="binary sort key"):
        calendar(place).put_item(Item={"path": b"\xff", "at": b"a"})
    table = calendar(place, time="made")
    table.put_item(Item={"path": b"\xff", "at": b"a", "made": "2027-01-01"})
    (item,) = table.query(b"\xff", between=("2027", "2028"))
    assert item["path"] == b"\xff"


def test_buckets_change_from_a_day_on(place: Place) -> None:
    table, peer = calendar(place, "month"), calendar(place, "month")
    peer.put_item(Item={"path": KEY, "at": "2027-01-15T08:00:00Z"})
    table.change_bucket("day", date(2027, 2, 1))
    assert table.change_bucket("day", date(2027, 2, 1)) == table.calendar(), "done before"
    place.clock.sleep(40 * 86_400)
    for day in ("2027-01-31T23:00:00Z", "2027-02-01T00:00:00Z", "2027-02-20T00:00:00Z"):
        peer.put_item(Item={"path": KEY, "at": day})
    assert {key[2:-2] for key in keys_of(place)} == {"2027-01", "2027-02-01", "2027-02-20"}
    ats = [item["at"] for item in table.query(KEY, between=("2027", "2028"))]
    assert len(ats) == 4
    assert ats == sorted(ats)
    items = table.query(KEY, between=("2027", "2028"), descending=True)
    assert [item["at"] for item in items] == ats[::-1]
    late = calendar(place, "hour")
    assert late.calendar().text == "month 2027-02-01:day", "it uses the agreed buckets"


def test_a_table_with_old_buckets_writes_no_item_of_a_changed_day(place: Place) -> None:
    """The first day whose buckets can change is later than any time that can be written."""
    early, late = calendar(place), calendar(place)
    early.put_item(Item={"path": KEY, "at": "2027-01-15T08:00:00Z"})
    with pytest.raises(CannotStart, match="first day on which they can is 2027-01-17"):
        late.change_bucket("hour", TODAY + timedelta(days=1))
    late.change_bucket("hour", date(2027, 1, 17))
    with pytest.raises(CannotStart, match="more than 86400 s in the future"):
        early.put_item(Item={"path": KEY, "at": "2027-01-17T00:00:00Z"})
    place.clock.sleep(301 + 86_400)
    early.put_item(Item={"path": KEY, "at": "2027-01-17T00:00:00Z"})
    assert "7#2027-01-17T00_1" in keys_of(place)


def test_one_of_two_concurrent_changes_is_refused(place: Place) -> None:
    table, peer = calendar(place), calendar(place)
    table.put_item(Item={"path": KEY, "at": "2027-01-15"})
    change = partial(table.change_bucket, "hour", date(2027, 3, 1))
    once(peer.table, is_operation("update_item"), change)
    with pytest.raises(CannotStart, match="has changed the buckets"):
        peer.change_bucket("month", date(2027, 3, 1))
    assert table.calendar().text == "day 2027-03-01:hour"


@pytest.mark.parametrize("other", [{"time": "made"}, {"time_unit": "ms"}, {"ahead": 60}], ids=str)
def test_other_settings_are_refused(place: Place, other: dict[str, Any]) -> None:
    calendar(place).put_item(Item={"path": KEY, "at": "2027-01-15"})
    with pytest.raises(CannotStart, match="all users of a table"):
        calendar(place, **other).put_item(Item={"path": KEY, "at": "2027-01-15", "made": "2027-01"})


def test_a_calendar_that_cannot_be_read(place: Place) -> None:
    calendar(place).put_item(Item={"path": KEY, "at": "2027-01-15"})
    place.database.client.update_item(
        TableName=place.metadata,
        Key={"path": {"S": "!keyhop-total"}},
        UpdateExpression="SET calendar = :week",
        ExpressionAttributeValues={":week": {"S": "week"}},
    )
    with pytest.raises(BrokenPromise, match="calendar"):
        calendar(place).calendar()


@pytest.mark.parametrize(
    ("between", "message"),
    [
        (None, "no first and last"),
        (("2027", None), "no first and last"),
        ((None, "2027"), "no first and last"),
        (("2028", "2027"), "earlier time first"),
        (("2027", 7), "both be texts"),
        (("soon", "x"), "not a time"),
    ],
)
def test_invalid_times_of_a_query_are_refused(place: Place, between: Any, message: str) -> None:
    with pytest.raises(CannotStart, match=message):
        list(calendar(place).query(KEY, between=between))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bucket": "week"}, "'month', 'day' or 'hour'"),
        ({"bucket": "day", "time_unit": "us"}, "'s' or 'ms'"),
        ({"bucket": "day", "ahead": -1}, r"ahead is -1; it must be a number from 0 to 1e\+11\."),
        ({"bucket": "day", "ahead": math.nan}, "ahead is nan"),
        ({"bucket": "day", "ahead": math.inf}, "ahead is inf"),
        ({"bucket": "day", "ahead": 1e15}, "ahead is 10000"),
    ],
)
def test_invalid_arguments_are_refused(
    place: Place, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(CannotStart, match=message):
        CalendarTable(place.table(), **arguments)


@pytest.mark.parametrize("item", [{"at": "2027-01-15"}, {"path": KEY}, {}], ids=str)
def test_an_item_without_key_or_time_is_refused(place: Place, item: dict[str, Any]) -> None:
    table = calendar(place)
    for call in (
        lambda: table.put_item(Item=item),
        lambda: table.get_item(Key=item),
        lambda: table.delete_item(Key=item),
    ):
        with pytest.raises(CannotStart, match="which gives its place"):
            call()


def test_a_key_that_is_neither_text_nor_bytes(place: Place) -> None:
    with pytest.raises(CannotStart, match="text or bytes"):
        calendar(place).put_item(Item={"path": 7, "at": "2027-01-15"})


def test_a_hint_by_size_and_by_rate(place: Place) -> None:
    table = filled(place, days=1)
    hint = table.hint(KEY, "2027-01-01")
    assert hint is not None
    assert "a month would have" in hint
    minutes = {"28000000": {"N": str(60 * 4_000)}}
    place.register(f"{KEY}#2027-01-02", 2, traffic={"M": minutes})
    busy = calendar(place).hint(KEY, "2027-01-02")
    assert busy is not None
    assert "4000 write units a second" in busy


def test_the_calendar_is_not_listed_as_a_key(place: Place) -> None:
    """It is stored in the metadata item of the whole table."""
    table = filled(place, days=2)
    assert {key.key for key in list_keys(table.table)} == {f"{KEY}#2027-01-0{d}" for d in (1, 2)}
