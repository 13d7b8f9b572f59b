"""Checks of the service by plain Scans, without Keyhop's own code."""

import random
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.client import Connection, dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.schema import GREATEST_SORT_KEY
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.units import UNITS_PER_BLOCK
from keyhop.rekey.life_cycle.features import TABLE, unknown_members

from tests.live.fixtures import INDEX, Fixture, comparable, in_order
from tests.live.report import Report, expect, expect_equal, expect_keys
from tests.live.ways import Ways

SEGMENTS = 4
MOST_SEGMENTS = 1_000_000
MAX_ATTEMPTS = 20
"""The maximum number of random segments of a million that are read until one is empty."""


class Scans:
    """Scans of a table or index in SEGMENTS segments, with their read units."""

    def __init__(self, client: Any, table: Fixture, index: str | None = None) -> None:
        self.table = table
        self.read_units = 0.0
        self.empty_pages = 0
        self._client = client
        self._more = {} if index is None else {"IndexName": index}

    def page(self, segment: int, start: Any = None, total: int = SEGMENTS, **more: Any) -> Any:
        """Read one page. `start` is its ExclusiveStartKey."""
        if start is not None:
            more["ExclusiveStartKey"] = start
        page = self._client.scan(
            TableName=self.table.name,
            Segment=segment,
            TotalSegments=total,
            ReturnConsumedCapacity="TOTAL",
            **self._more,
            **more,
        )
        self.read_units += max(UNITS_PER_BLOCK, units(page))
        return page

    def landing(self, segment: int, start: Any = None) -> Any:
        """Read pages of one item from `start` on, until there is an item or the end.

        An empty page with a LastEvaluatedKey is not the end; such pages are counted.
        """
        page = self.page(segment, start, Limit=1)
        while not page["Items"] and "LastEvaluatedKey" in page:
            self.empty_pages += 1
            page = self.page(segment, page["LastEvaluatedKey"], Limit=1)
        return page

    def items(self, segment: int, **more: Any) -> Iterator[dict[str, Any]]:
        """Yield all items of a segment, page by page."""
        page = self.page(segment, **more)
        yield from page["Items"]
        while "LastEvaluatedKey" in page:
            page = self.page(segment, page["LastEvaluatedKey"], **more)
            yield from page["Items"]

    @cached_property
    def segments(self) -> list[list[dict[str, Any]]]:
        """The partition keys of each segment in the order of a plain Scan, once per collection."""
        return [self._keys_of(segment) for segment in range(SEGMENTS)]

    def _keys_of(self, segment: int) -> list[dict[str, Any]]:
        keys: list[dict[str, Any]] = []
        for item in self.items(segment):
            if not keys or comparable(keys[-1]) != comparable(item["pk"]):
                keys.append(item["pk"])
        return keys

    def place_of(self, key: dict[str, Any]) -> tuple[int, int]:
        """Return the segment of a partition key, and its position in it."""
        for segment, keys in enumerate(self.segments):
            for place, candidate in enumerate(keys):
                if comparable(candidate) == comparable(key):
                    return segment, place
        raise LookupError(f"{key} is in no segment of {self.table.name}")

    def hop_from(self, key: dict[str, Any]) -> dict[str, Any]:
        """Return the synthetic start key at the end of an item collection."""
        assert self.table.sort is not None
        return {"pk": key, "sk": GREATEST_SORT_KEY[self.table.sort]}


def units(page: dict[str, Any]) -> float:
    """Return the read units of a page."""
    return float(page["ConsumedCapacity"]["CapacityUnits"])


def check_service(client: Any, tables: list[Fixture], ways: Ways, report: Report) -> float:
    """Make all checks, beginning with the synthetic start key; return the read units."""
    hopping = [(t, Scans(client, t)) for t in tables if t.shape == "hops"]
    kinds = {t.name: f"partition key {t.partition}, sort key {t.sort}" for t, _ in hopping}
    for table, scans in hopping:
        report.check("hop", lambda scans=scans: hops(scans, ways), kinds[table.name])
    for table, scans in hopping:
        for name, perform in (
            ("hop-from-large", leave_large_collection),
            ("foreign-segment", foreign_start_keys),
            ("greatest-sort-key", greatest_sort_keys),
            ("empty-segment", lambda scans: empty_segments(scans, ways)),
        ):
            report.check(name, lambda p=perform, scans=scans: p(scans), kinds[table.name])
    counted = [scans for _, scans in hopping]
    for table in tables:
        report.check(
            "table-identity", lambda table=table: identity(client, table, ways), table.name
        )
        report.check("table-members", lambda table=table: members(client, table), table.name)
        if table.has_index:
            counted.append(Scans(client, table, INDEX))
            report.check("index-segments", lambda scans=counted[-1]: index_by_segments(scans))
    return sum(scans.read_units for scans in counted)


def hops(scans: Scans, ways: Ways) -> str:
    """Hop through each segment with Limit=1, and compare the keys with those of a plain Scan."""
    expect_keys((comparable(key) for keys in scans.segments for key in keys), scans.table.keys)
    count = 0
    for segment, keys in enumerate(scans.segments):
        page = scans.landing(segment)
        for key in keys:
            expect(page["Items"], f"segment {segment} ended before {comparable(key)}")
            expect_equal(comparable(page["Items"][0]["pk"]), comparable(key), "a hop landed on")
            expect_equal(units(page), UNITS_PER_BLOCK, "read units of a page of one small item")
            page = scans.landing(segment, scans.hop_from(key))
            count += 1
        expect_equal(page["Items"], [], "after the last collection")
        expect_equal(units(page), ways.empty_page_units, "read units of the page at the end")
    return f"{count} hops, {scans.empty_pages} empty pages with a LastEvaluatedKey"


def leave_large_collection(scans: Scans) -> str:
    """Check that a page from the start of the collection ends in it, and that a hop leaves it."""
    large = scans.table.large
    segment, place = scans.place_of(large)
    keys = scans.segments[segment]
    before = scans.hop_from(keys[place - 1]) if place else None
    page = scans.page(segment, before)
    page_keys = {comparable(item["pk"]) for item in page["Items"]}
    expect_equal(page_keys, {comparable(large)}, "keys on the page of 1 MB")
    last = page.get("LastEvaluatedKey")
    expect(last, "the collection fits into a page")
    expect_equal(comparable(last["pk"]), comparable(large), "the page ended at")
    next_page = scans.landing(segment, scans.hop_from(last["pk"]))
    following = [comparable(key) for key in keys[place + 1 : place + 2]]
    landed = [comparable(item["pk"]) for item in next_page["Items"]]
    expect_equal(landed, following, "the hop from it landed on")
    return f"a page held {page['Count']} of its items, for {units(page)} read units"


def foreign_start_keys(scans: Scans) -> str:
    """Start in each segment after the first key of another segment, which is refused."""
    attempts = 0
    for segment, keys in enumerate(scans.segments):
        if keys:
            attempts += 1
            try:
                scans.page((segment + 1) % SEGMENTS, scans.hop_from(keys[0]), Limit=1)
            except ClientError as error:
                expect_equal(error.response["Error"]["Code"], "ValidationException", "the error")
                message = error.response["Error"]["Message"]
            else:
                expect(False, f"a start key of segment {segment} was taken elsewhere")
    expect(attempts >= 2, "all keys are in one segment")
    return f'"{message}"'


def greatest_sort_keys(scans: Scans) -> None:
    """Check that a collection with all extreme sort keys has them in order, the greatest last."""
    assert scans.table.sort is not None
    key = scans.table.of_all_extremes
    segment, _ = scans.place_of(key)
    *_, second, greatest = in_order(scans.table.sort)
    expect_equal(greatest, GREATEST_SORT_KEY[scans.table.sort], "the greatest of EXTREMES")
    page = scans.landing(segment, {"pk": key, "sk": second})
    expect(page["Items"], "nothing was found after the second greatest sort key")
    item = page["Items"][0]
    expect_equal(comparable(item["pk"]), comparable(key), "the next item is of")
    expect_equal(comparable(item["sk"]), comparable(greatest), "the next item has the sort key")
    expected = {
        pair for pair in map(_both_keys, scans.table.items) if pair[1] == comparable(greatest)
    }
    pairs = [_both_keys(item) for segment in range(SEGMENTS) for item in scans.items(segment)]
    expect_keys((pair for pair in pairs if pair[1] == comparable(greatest)), expected)
    sort_keys = [sort for partition, sort in pairs if partition == comparable(key)]
    ordered = [comparable(value) for value in in_order(scans.table.sort)]
    expect_equal(sort_keys, ordered, "the sort keys of a collection, in the order of a Scan")


def _both_keys(item: dict[str, Any]) -> tuple[Any, Any]:
    return comparable(item["pk"]), comparable(item["sk"])


def empty_segments(scans: Scans, ways: Ways) -> None:
    """Read random segments of a million until one is empty, as most of them are."""
    for _ in range(MAX_ATTEMPTS):
        page = scans.page(random.randrange(MOST_SEGMENTS), total=MOST_SEGMENTS)
        if not page["Items"]:
            expect_equal(units(page), ways.empty_page_units, "read units of an empty page")
            return
    expect(False, f"{MAX_ATTEMPTS} of {MOST_SEGMENTS:,} segments were not empty")


def identity(client: Any, table: Fixture, ways: Ways) -> None:
    """Check what identifies a table, so that a resumed run notices that the table was replaced."""
    description = client.describe_table(TableName=table.name)["Table"]
    expect(description["TableArn"].endswith(f"table/{table.name}"), description["TableArn"])
    if ways.has_table_id:
        expect(description.get("TableId"), "there is no TableId")


def replace(client: Any, table: Fixture, make: Callable[[], None]) -> str:
    """Delete a table, let `make` create another one with its name, and compare their TableIds."""
    before = client.describe_table(TableName=table.name)["Table"]["TableId"]
    client.delete_table(TableName=table.name)
    client.get_waiter("table_not_exists").wait(TableName=table.name)
    make()
    after = client.describe_table(TableName=table.name)["Table"]["TableId"]
    expect(before != after, f"the table was replaced, and its TableId is {after} as before")
    return f"{before}, then {after}"


def members(client: Any, table: Fixture) -> None:
    """Check the members that Keyhop's client gets: boto3's drops those that botocore lacks."""
    endpoint = Endpoint(client.meta.region_name, url=client.meta.endpoint_url)
    lookup = look_up(Connection(dynamodb_client(endpoint), endpoint), table.name)
    unknown = unknown_members(lookup.description, TABLE)
    expect(not unknown, f"DescribeTable has {', '.join(unknown)}, which Keyhop does not know")


def index_by_segments(scans: Scans) -> str:
    """Read an index by small pages, each of which starts at the LastEvaluatedKey of the last."""
    segments = [list(scans.items(segment, Limit=50)) for segment in range(SEGMENTS)]
    expected = {_both_keys(item) for item in scans.table.items}
    expect_keys((_both_keys(item) for items in segments for item in items), expected)
    days = [{item["day"]["S"] for item in items} for items in segments]
    split = {day for day in set().union(*days) if sum(day in part for part in days) > 1}
    return f"{len(split)} of its keys are in more than one segment"
