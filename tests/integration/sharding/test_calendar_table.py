"""Keys that are divided by time: single items, queries over buckets, pages, changes."""

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
from tests.integration.sharding.hooks import is_a, once
from tests.integration.sharding.single import BEGIN, Place

TODAY = datetime.fromtimestamp(BEGIN, UTC).date()  # 2027-01-15
KEY = "7"


def calendar(place: Place, bucket: Any = "day", **settings: Any) -> CalendarTable:
    given = {
        name: settings.pop(name) for name in ("time", "time_unit", "ahead") if name in settings
    }
    return CalendarTable(place.table(**settings), bucket=bucket, **given)


def hourly(days: int, first: str = "2027-01-01") -> list[str]:
    """Times, an hour after the other."""
    begin = datetime.fromisoformat(first)
    return [(begin + timedelta(hours=n)).isoformat() + "Z" for n in range(24 * days)]


def filled(place: Place, bucket: Any = "day", days: int = 4, **settings: Any) -> CalendarTable:
    table = calendar(place, bucket, **settings)
    assert not table.batch_write({"path": KEY, "at": at, "n": 1} for at in hourly(days)).failed
    return table


def pages(table: CalendarTable, **how: Any) -> list[list[dict[str, Any]]]:
    """The items of each page, by its token."""
    page = table.query_page(KEY, **how)
    found = [page.items]
    while page.token is not None:
        page = table.query_page(KEY, page_token=page.token, **how)
        found.append(page.items)
    return found


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
def test_an_item_lies_in_the_bucket_of_its_time(
    place: Place, bucket: str, names: list[str]
) -> None:
    table = filled(place, bucket, days=2)
    assert sorted(keys_of(place)) == names
    found = [*table.query(KEY, between=("2027-01-01", "2027-01-02T23:00:00Z"))]
    assert [item["at"] for item in found] == hourly(2)
    assert {item["path"] for item in found} == {KEY}


def test_single_items(place: Place) -> None:
    table = calendar(place)
    item = {"path": KEY, "at": "2027-01-01T09:00:00Z", "n": 1}
    key = {"path": KEY, "at": "2027-01-01T09:00:00Z"}
    assert "Item" not in table.get_item(Key=key)
    table.put_item(Item=item)
    assert table.get_item(Key=key, ConsistentRead=True)["Item"] == item
    assert table.put_item(Item={**item, "n": 2}, ReturnValues="ALL_OLD")["Attributes"] == item
    with pytest.raises(ClientError) as failed:
        table.put_item(
            Item=item,
            ConditionExpression="attribute_not_exists(n)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert failed.value.response["Item"]["path"] == {"S": KEY}
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
        how: dict[str, Any] = {"between": between, "descending": descending, "consistent": True}
        assert [item["at"] for item in table.query(KEY, **how)] == expected
        assert [item["at"] for item in table.query(KEY, limit=7, **how)] == expected[:7]
        paged = pages(table, limit=7, **how)
        assert max(map(len, paged)) <= 7
        assert [item["at"] for page in paged for item in page] == expected
    assert [*table.query("8", between=("2027-01-01", "2027-01-05"))] == []


def test_a_new_bucket_has_as_many_shards_as_the_one_before(place: Place) -> None:
    """Else a hot key would be throttled at each midnight."""
    table = calendar(place)
    table.put_item(Item={"path": KEY, "at": "2027-01-10T08:00:00Z"})
    place.grow(table.table, f"{KEY}#2027-01-10", 3)
    calendar(place).put_item(Item={"path": KEY, "at": "2027-01-11T08:00:00Z"})
    few = calendar(place, policy=Policy(most=2, start_shards={"7#2027-01-13": 2}))
    few.batch_write([{"path": KEY, "at": f"2027-01-{day}T08:00:00Z"} for day in ("12", "13", "05")])
    days = ("05", "10", "11", "12", "13")
    found = [place.shards(f"{KEY}#2027-01-{day}").number for day in days]
    assert found == [1, 4, 4, 2, 2]


def test_a_query_reads_no_further_than_asked(place: Place) -> None:
    table = filled(place)
    before = table.table.usage.requests
    first = next(table.query(KEY, between=("2027-01-01", "2027-01-05")))
    assert first["at"] == hourly(1)[0]
    assert table.table.usage.requests - before <= 3


def test_a_page_ends_after_so_many_buckets(place: Place) -> None:
    table = calendar(place, "hour")
    for at in ("2027-01-01T00:00:00Z", "2027-01-10T00:00:00Z"):
        table.put_item(Item={"path": KEY, "at": at})
    between = ("2027-01-01", "2027-01-11")
    assert [len(page) for page in pages(table, between=between)] == [1, 0, 1]
    assert BUCKETS_OF_A_PAGE == 100


def test_tokens_of_others_are_refused(place: Place) -> None:
    table = filled(place)
    how: dict[str, Any] = {"between": ("2027-01-01", "2027-01-05"), "limit": 5}
    token = table.query_page(KEY, **how).token
    assert token is not None
    for other in (
        {**how, "between": ("2027-01-01", "2027-01-04")},
        {**how, "descending": True},
    ):
        with pytest.raises(CannotStart, match="another query"):
            table.query_page(KEY, page_token=token, **other)
    with pytest.raises(CannotStart, match="another query"):
        table.query_page("8", page_token=token, **how)
    sharded = table.table.query_page(f"{KEY}#2027-01-01", limit=5).token
    for damaged in (token[:-8], "x", "", sharded):
        with pytest.raises(CannotStart, match="damaged"):
            table.query_page(KEY, page_token=damaged, **how)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_numbers(dynamodb: Database, table_name: str, unit: str) -> None:
    place = Place(dynamodb, table_name, sort="N")
    table = calendar(place, time_unit=unit)
    scale = 1000 if unit == "ms" else 1
    times = [(int(BEGIN) - 3600 * n) * scale for n in range(48)][::-1]
    for at in times:
        table.put_item(Item={"path": KEY, "at": at})
    assert len(keys_of(place)) == 3
    found = table.query(KEY, between=(times[5], times[30]))
    assert [int(item["at"]) for item in found] == times[5:31]
    assert table.get_item(Key={"path": KEY, "at": times[0]})["Item"]["path"] == KEY


@pytest.mark.parametrize("descending", [False, True])
def test_a_time_that_is_no_sort_key(place: Place, descending: bool) -> None:
    """Buckets are in the order of time, items of a bucket in that of their sort key."""
    table = calendar(place, time="made")
    for n, at in enumerate(hourly(3)):
        table.put_item(Item={"path": KEY, "at": f"id-{(n * 7) % 72:02}", "made": at})
    between = ("2027-01-01T05:00:00Z", "2027-01-03T05:00:00Z")
    how: dict[str, Any] = {"between": between, "descending": descending}
    found = [*table.query(KEY, **how)]
    assert {item["made"] for item in found} == {
        at for at in hourly(3) if between[0] <= at <= between[1]
    }
    order = [(item["made"][:10], item["at"]) for item in found]
    assert order == sorted(order, reverse=descending)
    assert [item for page in pages(table, limit=7, **how) for item in page] == found
    one = found[0]
    key = {name: one[name] for name in ("path", "at", "made")}
    assert table.get_item(Key=key)["Item"] == one
    table.delete_item(Key=key)
    assert "Item" not in table.get_item(Key=key)
    with pytest.raises(CannotStart, match="has no made"):
        table.get_item(Key={"path": KEY, "at": one["at"]})


def test_binary_keys(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name, partition="B", sort="B")
    with pytest.raises(CannotStart, match="binary sort key"):
        calendar(place).put_item(Item={"path": b"\xff", "at": b"a"})
    table = calendar(place, time="made")
    table.put_item(Item={"path": b"\xff", "at": b"a", "made": "2027-01-01"})
    (item,) = table.query(b"\xff", between=("2027", "2028"))
    assert item["path"] == b"\xff"


def test_granularity_changes_from_a_day_on(place: Place) -> None:
    table, other = calendar(place, "month"), calendar(place, "month")
    other.put_item(Item={"path": KEY, "at": "2027-01-15T08:00:00Z"})
    table.change_bucket("day", date(2027, 2, 1))
    assert table.change_bucket("day", date(2027, 2, 1)) == table.calendar(), "done before"
    place.clock.sleep(40 * 86_400)
    for day in ("2027-01-31T23:00:00Z", "2027-02-01T00:00:00Z", "2027-02-20T00:00:00Z"):
        other.put_item(Item={"path": KEY, "at": day})
    assert {key[2:-2] for key in keys_of(place)} == {"2027-01", "2027-02-01", "2027-02-20"}
    found = [item["at"] for item in table.query(KEY, between=("2027", "2028"))]
    assert len(found) == 4
    assert found == sorted(found)
    back = [item["at"] for item in table.query(KEY, between=("2027", "2028"), descending=True)]
    assert back == found[::-1]
    late = calendar(place, "hour")
    assert late.calendar().text == "month 2027-02-01:day", "what is agreed upon holds"


def test_a_user_who_has_not_heard_of_a_change_writes_nothing_of_that_day(place: Place) -> None:
    """The first day that can be changed is later than anything that can be written."""
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


def test_of_two_changes_at_once_one_is_refused(place: Place) -> None:
    table, other = calendar(place), calendar(place)
    table.put_item(Item={"path": KEY, "at": "2027-01-15"})
    change = partial(table.change_bucket, "hour", date(2027, 3, 1))
    once(other.table, is_a("update_item"), change)
    with pytest.raises(CannotStart, match="has changed the buckets"):
        other.change_bucket("month", date(2027, 3, 1))
    assert table.calendar().text == "day 2027-03-01:hour"


@pytest.mark.parametrize("given", [{"time": "made"}, {"time_unit": "ms"}, {"ahead": 60}], ids=str)
def test_all_users_agree(place: Place, given: dict[str, Any]) -> None:
    calendar(place).put_item(Item={"path": KEY, "at": "2027-01-15"})
    with pytest.raises(CannotStart, match="all users of a table"):
        calendar(place, **given).put_item(Item={"path": KEY, "at": "2027-01-15", "made": "2027-01"})


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
    ("between", "why"),
    [
        (None, "no first and last"),
        (("2027", None), "no first and last"),
        ((None, "2027"), "no first and last"),
        (("2028", "2027"), "earlier time first"),
        (("2027", 7), "both be texts"),
        (("soon", "x"), "not a time"),
    ],
)
def test_what_no_query_can_be_about(place: Place, between: Any, why: str) -> None:
    with pytest.raises(CannotStart, match=why):
        list(calendar(place).query(KEY, between=between))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"bucket": "week"}, "'month', 'day' or 'hour'"),
        ({"bucket": "day", "time_unit": "us"}, "'s' or 'ms'"),
        ({"bucket": "day", "ahead": -1}, r"ahead is -1; it must be a number from 0 to 1e\+11\."),
        ({"bucket": "day", "ahead": math.nan}, "ahead is nan"),
        ({"bucket": "day", "ahead": math.inf}, "ahead is inf"),
        ({"bucket": "day", "ahead": 1e15}, "ahead is 10000"),
    ],
)
def test_what_no_calendar_can_be(place: Place, given: dict[str, Any], why: str) -> None:
    with pytest.raises(CannotStart, match=why):
        CalendarTable(place.table(), **given)


@pytest.mark.parametrize("item", [{"at": "2027-01-15"}, {"path": KEY}, {}], ids=str)
def test_an_item_without_its_place(place: Place, item: dict[str, Any]) -> None:
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
    told = table.hint(KEY, "2027-01-01")
    assert told is not None
    assert "a month would have" in told
    minutes = {"28000000": {"N": str(60 * 4_000)}}
    place.register(f"{KEY}#2027-01-02", 2, traffic={"M": minutes})
    busy = calendar(place).hint(KEY, "2027-01-02")
    assert busy is not None
    assert "4000 write units a second" in busy


def test_a_calendar_is_no_key_of_the_table(place: Place) -> None:
    """It is in the item that the metadata has for the table as a whole."""
    table = filled(place, days=2)
    assert {one.key for one in list_keys(table.table)} == {f"{KEY}#2027-01-0{d}" for d in (1, 2)}
